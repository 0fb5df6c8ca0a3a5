# SPDX-License-Identifier: Apache-2.0
"""Nothing is lost silently: what every output says of its samples and losses, added up."""
import unittest

import htmlprofile
import support

LOSSES = ("lost_torn", "lost_unreadable", "lost_invalid", "lost_gone", "lost_dropped")
SECONDS = 1 if support.QUICK else 2
RATE = 500



@support.each_python
class Accounting(unittest.TestCase):
    @support.on(support.few)
    def check_sums(self, python):
        for script, options in (("busy.py", []), ("churn.py", []), ("status.py", ["--mode", "cpu"]), ("busy.py", ["--omit", "busy"])):
            with self.subTest(script=script, options=options):
                args = ["@/table"] if script == "status.py" else []
                with support.Target(python, script, *args) as target:
                    self.sums(target, options)

    def sums(self, target, options):
        names = {"flamegraph": "p.html", "collapsed": "p.collapsed", "text": "p.txt"}
        arguments = []
        for format_, name in names.items():
            arguments += ["-f", format_, "-o", target.path(name)]
        done = support.sampled("attach", target.pid, "-v", "-d", SECONDS, "-r", RATE, *arguments, *options)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout.decode().split(), [target.path(name) for name in names.values()])
        with open(target.path("p.html"), "rb") as file:
            profile = htmlprofile.Profile(file.read())
        lines = support.read_collapsed(target.path("p.collapsed"))
        with open(target.path("p.txt"), encoding="utf-8") as file:
            text = file.read()
        facts = profile.facts

        # Every attempt ended as a sample or as a loss of a named cause, and every sample is in the trees or left out by name.
        self.assertEqual(facts["attempts"], facts["samples"] + sum(facts[key] for key in LOSSES))
        self.assertEqual(
            facts["samples"], facts["in_profile"] + facts["filtered"] + facts["omitted"] + facts["out_of_memory"]
        )
        self.assertEqual(sum(thread.total("samples") for thread in profile.threads), facts["in_profile"])
        self.assertEqual(sum(line.count for line in lines), facts["in_profile"])
        self.assertGreater(facts["samples"], 0)

        # Asked and reached: every deadline was met, met late, or missed.
        self.assertEqual(facts["asked_hz"], RATE)
        self.assertLessEqual(facts["ticks_late"], facts["ticks"])
        seconds = facts["duration_ns"] / 1e9
        self.assertGreater(seconds, SECONDS * 0.95)
        self.assertAlmostEqual(facts["ticks"] + facts["ticks_missed"], RATE * seconds, delta=RATE * seconds * 0.03 + 2)
        self.assertAlmostEqual(facts["reached_hz"], facts["ticks"] / seconds, delta=RATE * 0.03)

        # The same numbers stand in the text report and in the closing summary.
        summary = done.stderr.decode()
        for key in ("attempts", "samples", "in_profile"):
            words = "{:,.0f}".format(facts[key])
            self.assertIn(words, summary, key)
            self.assertIn(words, text, key)
        for word in ("late", "missed", "torn", "unreadable", "invalid", "dropped", "truncated", "asked", "reached"):
            self.assertRegex(summary, word)
        if options[:1] == ["--omit"]:
            self.assertGreater(facts["omitted"], 0)
        if options[:1] == ["--mode"]:
            self.assertGreater(facts["filtered"], 0)


@support.needs_python
class Time(unittest.TestCase):
    def test_weights_add_up_to_the_time(self):
        """Sampled and unsampled time of a thread that lives throughout are the duration, whatever the rate."""
        for rate in (100, 1000, 5000):
            with self.subTest(rate=rate), support.Target(support.newest(), "busy.py", 4) as target:
                page = target.path("p.html")
                done = support.sampled("attach", target.pid, "-d", "2", "-r", rate, "-f", "flamegraph", "-o", page)
                self.assertEqual(done.returncode, 0, done.stderr)
                with open(page, "rb") as file:
                    profile = htmlprofile.Profile(file.read())
                wall = sum(thread.total("wall") for thread in profile.threads) + profile.facts["unsampled_ns"]
                threads = len(profile.threads)
                self.assertAlmostEqual(wall / profile.facts["duration_ns"], threads, delta=0.05 * threads)

    def test_no_tick_is_made_up(self):
        """Unthrottled sampling of one thread reports no deadline at all, so none late or missed."""
        with support.Target(support.newest(), "busy.py", 1) as target:
            page = target.path("p.html")
            done = support.sampled("attach", target.pid, "-d", "1", "-r", "max", "-f", "flamegraph", "-o", page)
            self.assertEqual(done.returncode, 0, done.stderr)
            with open(page, "rb") as file:
                facts = htmlprofile.Profile(file.read()).facts
        self.assertEqual((facts["ticks_late"], facts["ticks_missed"], facts["asked_hz"]), (0, 0, 0))
        self.assertGreater(facts["ticks"], 0)


if __name__ == "__main__":
    unittest.main()
