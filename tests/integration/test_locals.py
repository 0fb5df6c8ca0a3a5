# SPDX-License-Identifier: Apache-2.0
"""`dump --locals`: each variable is shown as the program's own repr() has it."""
import json
import re
import unittest

import cli
import support
from cores import gcore, needs_gcore

ARGUMENTS = ["argument", "other", "only", "more", "rest"]


def frame_of(dump, name):
    return next(frame for thread in dump["threads"] for frame in thread["frames"] if frame["name"] == name)


def shown(frame):
    return {local["name"]: local["value"] for local in frame["locals"]}


class Case(cli.Folder):
    maxDiff = None

    def dump(self, *args, says=b""):
        done = support.sampled("dump", *args, "--json")
        self.assertEqual((done.returncode, done.stderr), (cli.DONE, says))
        return json.loads(done.stdout)


@support.each_python
class Values(Case):
    def check_values(self, python):
        with support.Target(python, "values.py") as target:
            target.wait_still()
            dump = self.dump(target.pid, "--locals")
            frame, more = frame_of(dump, "values"), frame_of(self.dump(target.pid, "--locals", "--locals"), "values")
            told = target.facts["values"]
            found = shown(frame)
            wrong = {name: (found.get(name), value) for name, value in told.items() if found.get(name) != value}
            self.assertEqual(wrong, {})
            self.assertGreater(len(told), 100)
            self.assertNotIn("unbound", found)
            self.assertEqual([local["name"] for local in frame["locals"][:5]], ARGUMENTS)
            self.assertEqual([local["argument"] for local in frame["locals"]], [True] * 5 + [False] * (len(frame["locals"]) - 5))
            self.assertTrue(dump["threads"][0]["locals_whole"])
            # 3.14 has them in the order of the class's own table.
            self.assertEqual(sorted(re.split(": |, |>", shown(more)["instance"])), sorted(re.split(": |, |>", target.facts["attributes"])))
            self.assertEqual(shown(more)["slotted"], target.facts["slots"])
            self.assertEqual(shown(more)["long_text"], repr("x" * 300))
            self.assertEqual(frame_of(dump, "<module>")["locals"], [])
            everything = json.dumps(dump) + json.dumps(more)
            self.assertNotIn("hunter2", everything)
            self.assertNotIn("swordfish", everything)
            self.assertEqual(shown(frame_of(self.dump(target.pid, "--locals", "--locals-all"), "values"))["api_key"], "'hunter2'")


# What each variable of rebinding.py can be.
POSSIBLE = {
    "number": r"\d+|<changed>",
    "label": r"'leaf'",
    "pair": r"\[\d+, \d+\]|<changed>",
    "real": r"\d+\.0|<changed>",
    "text": r"'n\d+'|<changed>",
    "start": r"1000|1",
    "kept": r"\('kept', 1\)|\{'kept': \[2\]\}",
    "returned": r"\(\[\d+, \d+\], \d+\.0, 'n\d+'\)|<changed>",
    "made": r"\[('\d'(, '\d')*)?\]|<changed>|<unreadable>",  # clear() empties it by two stores, and may stand between them
    ".0": r"<\w+ at 0x\w+>|range\(0, 5\)|<changed>",
}


@support.each_python
class Running(Case):
    def look(self, target, *options):
        done = support.sampled("dump", target.pid, "--locals", "--json", *options)
        self.assertEqual(done.returncode, cli.DONE, done.stderr)
        return json.loads(done.stdout)["threads"]

    def assert_of_one_moment(self, thread):
        """All of one moment: what one variable says of the others holds."""
        for frame in thread["frames"]:
            found = shown(frame)
            self.assertNotIn("<changed>", found.values())
            number = found.get("number")
            if frame["name"] == "leaf":
                self.assertEqual(found.get("pair", "[%s, %s]" % (number, number)), "[%s, %s]" % (number, number))
                self.assertEqual(found.get("real", number + ".0"), number + ".0")
                self.assertEqual(found.get("text", "'n%s'" % number), "'n%s'" % number)
            numbers = [shown(frame)["number"] for frame in thread["frames"] if frame["name"] in ("leaf", "spin")]
            self.assertEqual(len(set(numbers)), 1 if numbers else 0)

    @support.on(support.each_version)
    def check_running(self, python):
        """Values of a program that runs are its own, or <changed>: never what lay there later."""
        whole = 0
        with support.Target(python, "rebinding.py") as target:
            for options in [()] * 12 + [("--blocking",)] * 12:
                for thread in self.look(target, *options):
                    for frame in thread["frames"]:
                        if frame["name"] not in ("leaf", "spin", "collect", "<listcomp>") or not frame.get("locals"):
                            continue
                        for name, value in shown(frame).items():
                            self.assertRegex(value, r"\A(%s)\Z" % POSSIBLE[name], (frame["name"], name, options))
                    if thread["locals_whole"]:
                        whole += 1
                        self.assert_of_one_moment(thread)
        self.assertGreater(whole, 0)


@support.each_python
class Cores(Case):
    @needs_gcore
    @support.on(support.each_version)
    def check_core(self, python):
        """A core tells the same as the process did."""
        with support.Target(python, "values.py") as target:
            target.wait_still()
            live = frame_of(self.dump(target.pid, "--locals", "--locals"), "values")
            core = gcore(target)
            if target.holes:
                self.skipTest("gcore leaves stacks out")
            found = frame_of(self.dump("--core", core, "--locals", "--locals"), "values")
            self.assertEqual(shown(found), shown(live))


class Text(Case):
    @support.needs_python
    def test_text(self):
        with support.Target(support.newest(), "values.py") as target:
            target.wait_still()
            done = support.sampled("dump", target.pid, "--locals")
            self.assertEqual((done.returncode, done.stderr), (cli.DONE, b""))
            lines = done.stdout.decode().splitlines()
            for line in ("argument = 1", "quotes = \"it's\"", "lines = 'a\\n\\t\\r\\\\\\x00\\x7f'", "api_key = <hidden>", "captured = [1]"):
                self.assertIn(" " * 12 + line, lines)


if __name__ == "__main__":
    unittest.main()
