# SPDX-License-Identifier: Apache-2.0
"""sampled diff: tables, JSON, exit statuses, the differential flame graph, on files whose numbers are known and on a real program."""
import cProfile
import json
import marshal
import os
import subprocess
import textwrap
import time
import unittest

import cli
import htmlprofile
import support

ABOVE = 6
OLD = "main (/srv/job.py:50);parse (/srv/job.py:12) 400\nmain (/srv/job.py:50);steady (/srv/job.py:21) 300\nmain (/srv/job.py:50);old (/srv/job.py:31) 300\n"
NEW = "main (/srv/job.py:57);parse (/srv/job.py:19) 900\nmain (/srv/job.py:57);steady (/srv/job.py:28) 600\nmain (/srv/job.py:57);new (/srv/job.py:38) 500\n"


class Diff(cli.Folder):
    def setUp(self):
        super().setUp()
        for name, text in (("old.collapsed", OLD), ("new.collapsed", NEW)):
            with open(self.path(name), "w") as file:
                file.write(text)

    def json(self, *args):
        done = self.sampled("diff", *args, "--json")
        self.assertEqual((done.returncode, done.stderr), (cli.DONE, b""))
        data = json.loads(done.stdout)
        data["by_name"] = {function["name"]: function for function in data["functions"]}
        return data

    def test_json(self):
        data = self.json("old.collapsed", "new.collapsed")
        parse, steady = data["by_name"]["parse"], data["by_name"]["steady"]
        self.assertEqual({name: function["change"] for name, function in data["by_name"].items()},
                         {"main": "same", "parse": "grew", "steady": "same", "old": "gone", "new": "new"})
        self.assertEqual((parse["self"]["before"]["percent"], parse["self"]["after"]["percent"], parse["self"]["points"]), (40, 45, 5))
        self.assertEqual((parse["self"]["before"]["samples"], parse["self"]["after"]["samples"]), (400, 900))
        self.assertTrue(parse["self"]["significant"])
        self.assertFalse(steady["self"]["significant"])
        self.assertEqual(data["by_name"]["main"]["total"]["after"]["percent"], 100)
        self.assertEqual([function["name"] for function in data["functions"][:3]], ["old", "new", "parse"])
        self.assertEqual((data["before"]["samples"], data["after"]["samples"]), (1000, 2000))
        for key in ("before", "after"):
            self.assertAlmostEqual(sum(f["self"][key]["percent"] for f in data["functions"]), 100, places=3)

    def test_table(self):
        done = self.sampled("diff", "old.collapsed", "new.collapsed")
        text = done.stdout.decode()
        self.assertEqual((done.returncode, done.stderr), (cli.DONE, b""))
        grew, shrank = text.split("\nSHRANK\n")
        self.assertRegex(grew.split("\nGREW\n")[1], r"\n +0\.00 +25\.00 +\+25\.00 .*new  new \(/srv/job\.py.*\n +40\.00 +45\.00 +\+5\.00")
        self.assertRegex(shrank, r"\n +30\.00 +0\.00 +-30\.00 .*gone old \(/srv/job\.py")
        self.assertTrue(text.endswith("\n2 functions without change\n"), text)
        self.assertIn("1,000 samples", text)
        text = self.sampled("diff", "old.collapsed", "new.collapsed", "--limit", "1").stdout.decode()
        self.assertIn("and 1 more functions", text)
        self.assertNotIn("parse", text)

    def test_names_that_begin_alike_have_their_lines(self):
        for name, seconds in (("a.pstats", (1.0, 3.0)), ("b.pstats", (3.0, 1.0))):
            with open(self.path(name), "wb") as file:
                marshal.dump({("/srv/json/encoder.py", line, "make_iterencode.<locals>." * 4 + last): (1, 1, self_s, self_s, {})
                              for line, last, self_s in ((334, "dict", seconds[0]), (278, "list", seconds[1]))}, file)
        done = self.sampled("diff", "a.pstats", "b.pstats")
        self.assertEqual((done.returncode, done.stderr), (cli.DONE, b""))
        rows = [line for line in done.stdout.decode().splitlines() if "make_iterencode." in line]
        self.assertEqual([line.split()[-1] for line in rows], ["(…:334)", "(…:278)"])
        self.assertLessEqual(max(map(len, rows)), 120)

    def test_moved_files(self):
        """A module that was renamed is not all gone and all new; its functions are marked."""
        with open(self.path("moved.collapsed"), "w") as file:
            file.write(OLD.replace("/srv/job.py", "/srv/work/task.py"))
        done = self.sampled("diff", "old.collapsed", "moved.collapsed")
        self.assertIn("\n4 functions without change\n", done.stdout.decode())
        self.assertNotRegex(done.stdout.decode(), r"(?m) (new|gone) ")
        with open(self.path("moved.collapsed"), "w") as file:
            file.write(NEW.replace("/srv/job.py", "/srv/work/task.py"))
        text = self.sampled("diff", "old.collapsed", "moved.collapsed").stdout.decode()
        self.assertRegex(text, r"\+5\.00 .* parse \(~/srv/work/task\.py")
        self.assertRegex(text, r" new  new \(/srv/work/task\.py")
        self.assertIn("(~FILE): ", text)
        data = self.json("old.collapsed", "moved.collapsed")["by_name"]
        self.assertEqual((data["parse"]["change"], data["parse"]["file"], data["parse"]["file_before"]), ("grew", "/srv/work/task.py", "/srv/job.py"))
        self.assertNotIn("file_before", data["old"])
        self.assertNotIn("(~", self.sampled("diff", "old.collapsed", "new.collapsed").stdout.decode())

    def test_fail_above(self):
        for args, status, says in ((("--fail-above", "20"), ABOVE, "new: its share of self time grew by 25.00 points (--fail-above 20: 1 function did)"),
                                   (("--fail-above", "4.9"), ABOVE, "2 functions did"), (("--fail-above", "25"), cli.DONE, ""),
                                   (("--fail-above", "20", "--sort", "total"), ABOVE, "share of total time"),
                                   (("--fail-above", "0", "--ignore", "new|parse|old"), cli.DONE, "")):
            done = self.sampled("diff", "old.collapsed", "new.collapsed", *args)
            self.assertEqual(done.returncode, status, done.stderr)
            self.assertIn(says, done.stderr.decode())
            self.assertEqual(done.stderr == b"", status == cli.DONE)
        # Growth within the noise is none: 10 of 100 to 15 of 100.
        with open(self.path("a"), "w") as a, open(self.path("b"), "w") as b:
            a.write("m;f 10\nm;g 90\n")
            b.write("m;f 15\nm;g 85\n")
        self.assertEqual(self.sampled("diff", "a", "b", "--fail-above", "1").returncode, cli.DONE)

    def test_pictures(self):
        for name in ("out.html", "out.svg"):
            done = self.sampled("diff", "old.collapsed", "new.collapsed", "-o", name)
            self.assertEqual((done.returncode, done.stdout.decode(), done.stderr), (cli.DONE, name + "\n", b""))
            first = open(self.path(name), "rb").read()
            self.sampled("diff", "old.collapsed", "new.collapsed", "-o", name)
            self.assertEqual(open(self.path(name), "rb").read(), first, "the same input gives the same bytes")
        data = htmlprofile.Profile(open(self.path("out.html"), "rb").read()).data
        self.assertEqual(data["comparison"]["titles"], ["old.collapsed", "new.collapsed"])
        self.assertEqual({change[0]: change[3] for change in data["comparison"]["changes"]}, {"parse": "grew", "old": "gone", "new": "new"})
        page = self.sampled("diff", "old.collapsed", "new.collapsed", "-o", "-", "-f", "svg").stdout
        self.assertEqual(page, open(self.path("out.svg"), "rb").read())

    def test_call_graphs(self):
        """Function totals can be compared, also with stacks; what was counted exactly has no noise."""
        source = "def f(n): return sum(range(n))\ndef g(n): return max(range(n))\n"
        for name, times in (("a.pstats", 1), ("b.pstats", 8)):
            profile = cProfile.Profile(time.process_time)
            code = compile(source, "job.py", "exec")
            functions = {}
            exec(code, functions)
            profile.enable()
            for _ in range(20):
                functions["f"](20000 * times)
                functions["g"](20000)
            profile.disable()
            profile.dump_stats(self.path(name))
        done = self.sampled("diff", "a.pstats", "b.pstats", "--json")
        if done.returncode == cli.FAILED and b"unrecognised format" in done.stderr:
            self.skipTest("pstats is not read yet")
        functions = {function["name"]: function for function in json.loads(done.stdout)["functions"]}
        self.assertGreater(functions["f"]["total"]["points"], 10)
        self.assertIsNone(functions["f"]["self"]["significant"])
        self.assertEqual(self.sampled("diff", "a.pstats", "b.pstats", "--fail-above", "10").returncode, ABOVE)
        with open(self.path("t.collapsed"), "w") as file:
            file.write("# value: wall, in nanoseconds\nf (job.py:1) 3000000\nf (job.py:1);g (job.py:2) 1000000\n")
        self.assertEqual(self.sampled("diff", "a.pstats", "t.collapsed").returncode, cli.DONE)
        self.assert_error(self.sampled("diff", "a.pstats", "t.collapsed", "-o", "x.html"), cli.USAGE, "no stacks")
        self.assert_error(self.sampled("diff", "a.pstats", "new.collapsed"), cli.USAGE,
                          "cannot compare a.pstats with new.collapsed: the first counts seconds, the second samples")

    def test_other_units(self):
        """Counts and seconds have no shares in common: they are refused, unless both can be told in one of them."""
        rows = {"$schema": "https://www.speedscope.app/file-format-schema.json", "shared": {"frames": [{"name": "a"}, {"name": "b"}]},
                "profiles": [{"type": "sampled", "name": "t", "unit": "seconds", "startValue": 0, "endValue": 1, "samples": [[0, 1]], "weights": [1]}]}
        with open(self.path("t.speedscope.json"), "w") as file:
            json.dump(rows, file)
        for files, says in ((("old.collapsed", "t.speedscope.json"), "the first counts samples, the second seconds"),
                            (("t.speedscope.json", "old.collapsed"), "the first counts seconds, the second samples")):
            for more in ((), ("-o", "x.html"), ("--json",)):
                self.assert_error(self.sampled("diff", *files, *more), cli.USAGE, "cannot compare %s with %s: %s" % (*files, says))
        self.assertEqual(self.json("old.collapsed", "t.speedscope.json", "--value", "samples")["after"]["samples"], 1)

    def test_filters_and_standard_input(self):
        data = self.json("old.collapsed", "new.collapsed", "--focus", "parse|steady")
        self.assertEqual(set(data["by_name"]), {"main", "parse", "steady"})
        self.assertAlmostEqual(data["by_name"]["parse"]["self"]["before"]["percent"], 400 / 7, places=3)
        done = self.sampled("diff", "old.collapsed", "new.collapsed", "--focus", "new", "--json")
        self.assertEqual((done.returncode, done.stderr.count(b"no samples are left")), (cli.DONE, 1), "what is new was not there before")
        done = self.sampled("diff", "old.collapsed", "new.collapsed", "--focus", "no such function")
        self.assertEqual((done.returncode, done.stdout, done.stderr.count(b"no samples are left")), (cli.FAILED, b"", 2))
        done = subprocess.run([support.SAMPLED, "diff", "-", "new.collapsed", "--json"], input=OLD.encode(), cwd=self.folder, capture_output=True, timeout=30)
        self.assertEqual(json.loads(done.stdout)["before"]["samples"], 1000)

    def test_one_of_a_kind(self):
        with open(self.path("one.collapsed"), "w") as file:
            file.write("main (/srv/job.py:50) 1\n")
        table = self.sampled("diff", "one.collapsed", "one.collapsed").stdout.decode()
        self.assertRegex(table, r"before +one.collapsed: 1 sample\n")
        self.assertIn(" 1 frame sampled in 1 sample\n", self.sampled("report", "one.collapsed").stdout.decode())

    def test_usage(self):
        for args, says in (((), "two inputs are needed"), (("old.collapsed",), "two inputs"), (("a", "b", "c"), "more than two"),
                           (("-", "-"), "cannot be both"), (("a", "b", "--json", "-o", "x.html"), "one of them"),
                           (("a", "b", "-f", "svg"), "no output named"), (("a", "b", "-o", "x.txt"), "cannot show two"),
                           (("a", "b", "--sort", "size"), "no such order"), (("a", "b", "--limit", "x"), "not a number"),
                           (("a", "b", "--fail-above", "nan"), "not a percentage"), (("a", "b", "--line-level"), "goes by function"),
                           (("old.collapsed", "new.collapsed", "--from", "1"), "no time order")):
            with self.subTest(args=args):
                self.assert_error(self.sampled("diff", *args), cli.USAGE, says)
        self.assert_error(self.sampled("diff", "none", "new.collapsed"), cli.FAILED, "cannot read none")
        self.assertEqual(sorted(os.listdir(self.folder)), ["new.collapsed", "old.collapsed"])

    def test_names_do_not_steer_the_terminal(self):
        with open(self.path("a"), "w") as file:
            file.write("x\x1b[31m\u202e\u00e9;\x9b2J 5\n")
        text = self.sampled("diff", "a", "new.collapsed").stdout.decode()
        self.assertNotIn("\x1b", text)
        self.assertNotIn("\u202e", text)

    @support.needs_python
    def test_real_program(self):
        """A function that takes twice as long in the second run is said to have grown; --fail-above finds it."""
        with open(self.path("job.py"), "w") as file:
            file.write(textwrap.dedent("""\
                import sys, time
                def spin(seconds):
                    end = time.process_time() + seconds
                    while time.process_time() < end:
                        pass
                def slow(seconds):
                    spin(seconds)
                def same(seconds):
                    spin(seconds)
                for _ in range(20):
                    slow(float(sys.argv[1]))
                    same(0.05)
                """))
        python = cli.python_for_all()
        for name, seconds in (("one.collapsed", "0.05"), ("two.collapsed", "0.15")):
            done = self.sampled("run", "-q", "-o", name, "--", *python.argv, self.path("job.py"), seconds)
            self.assertEqual(done.returncode, 0, done.stderr)
        slow = self.json("one.collapsed", "two.collapsed")["by_name"]["slow"]
        self.assertTrue(slow["total"]["significant"])
        self.assertGreater(slow["total"]["points"], 15)
        done = self.sampled("diff", "one.collapsed", "two.collapsed", "--sort", "total", "--fail-above", "10")
        self.assertEqual(done.returncode, ABOVE)
        self.assertIn(b"slow: its share of total time grew", done.stderr)

    @support.needs_python
    def test_sleep_does_not_rank(self):
        """A thread that sleeps in the second run only takes no share of CPU time from the others; it is told apart, and with --value wall it counts."""
        with open(self.path("job.py"), "w") as file:
            file.write(textwrap.dedent("""\
                import sys, threading, time
                def spin(seconds):
                    end = time.process_time() + seconds
                    while time.process_time() < end:
                        pass
                def pause():
                    over.wait()
                over = threading.Event()
                if sys.argv[1] == "pause":
                    threads = [threading.Thread(target=pause) for _ in range(4)]
                    for thread in threads:
                        thread.start()
                spin(0.5)
                over.set()
                """))
        python = cli.python_for_all()
        for name in ("spin", "pause"):
            done = self.sampled("run", "-q", "--record", name + ".sampled", "-o", "/dev/null", "-f", "collapsed", "--", *python.argv, self.path("job.py"), name)
            self.assertEqual(done.returncode, 0, done.stderr)
        cpu, wall = self.json("spin.sampled", "pause.sampled"), self.json("spin.sampled", "pause.sampled", "--value", "wall")
        self.assertEqual((cpu["shares_of"], wall["shares_of"], "waiting" in wall), ("cpu", "all", False))
        share = {key: data["by_name"]["pause"]["total"]["after"]["percent"] for key, data in (("cpu", cpu), ("wall", wall))}
        self.assertGreater(share["wall"], 50, "four threads of five")
        self.assertLess(share["cpu"], 50)
        self.assertEqual({f["name"]: f["change"] for f in cpu["waiting"]}["pause"], "new")
        table = self.sampled("diff", "spin.sampled", "pause.sampled").stdout.decode()
        self.assertIn("in shares of CPU time on each side (--value wall: of all)", table)
        self.assertRegex(table.split("\nWAITING\n")[1], r"new +(Event|Condition)?\.?wait \(")
        page = self.sampled("diff", "spin.sampled", "pause.sampled", "-o", "-", "-f", "flamegraph").stdout
        self.assertEqual(htmlprofile.Profile(page).data["comparison"]["of"], "CPU time")
        done = self.sampled("diff", "spin.sampled", "pause.sampled", "--value", "wall", "--sort", "total", "--fail-above", "30")
        self.assertEqual(done.returncode, ABOVE)
        self.assertEqual(self.sampled("diff", "spin.sampled", "pause.sampled", "--sort", "total", "--fail-above", "50").returncode, cli.DONE)


if __name__ == "__main__":
    unittest.main()
