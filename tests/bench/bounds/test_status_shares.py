# SPDX-License-Identifier: Apache-2.0
"""How threads share the GIL, and what a program in step with the sampler is seen doing, beside the programs' own accounts."""
import os
import re
import unittest

import htmlprofile
import support
from account import Table, difference

TOLERANCE = 0.03
SECONDS = 6 if support.LONG else 4


class Shares(unittest.TestCase):
    def profile(self, target, rate=1000):
        page = target.path("out.html")
        done = support.sampled("attach", target.pid, "-d", SECONDS, "-r", rate, "-f", "flamegraph", "-o", page)
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(page, "rb") as file:
            return htmlprofile.Profile(file.read())

    def assert_share(self, thread, value, least, most, why):
        share = thread.share(value)
        text = "%s of %s is %.3f, should be %.3f to %.3f: %s" % (value, thread.name, share, least, most, why)
        self.assertGreaterEqual(share, least - TOLERANCE, text)
        self.assertLessEqual(share, most + TOLERANCE, text)

    def assert_whole(self, thread, profile):
        """Wall is every sample, and what was not sampled is accounted for; idle and unknown exclude what they must."""
        self.assertGreater(thread.total("wall") + profile.facts["unsampled_ns"], 0.95e9 * SECONDS)
        self.assertLessEqual(thread.total("wall"), 1.05e9 * SECONDS)
        self.assertLessEqual(thread.total("gil") + thread.total("gil_wait") + thread.total("idle"), thread.total("wall"))
        self.assertLessEqual(thread.total("runnable") + thread.total("idle") + thread.total("unknown"), thread.total("wall"))


@support.each_python
class Status(Shares):
    @support.on(support.each_version)
    def check_gil_fight(self, python):
        """Four threads that always want the GIL: holding and waiting are shares of their own account."""
        with support.Target(python, "gilfight.py", "@/table") as target:
            table = Table(target.path("table"))
            before = table.read()
            profile = self.profile(target)
            rows = difference(before, table.read())
        whole = sum(held + handed for held, handed, _, _ in rows)
        gil = 0
        for tid, row in target.facts["threads"].items():
            thread = profile.thread(int(tid))
            held, handed = (number / whole for number in rows[row][:2])
            why = "held %.3f of the time, hand-overs to it took %.3f" % (held, handed)
            self.assert_whole(thread, profile)
            self.assert_share(thread, "gil", held, held + handed, why)
            self.assert_share(thread, "gil_wait", 1 - held - handed, 1 - held, why)
            self.assert_share(thread, "idle", 0, 0, "it always wants the GIL")
            gil += thread.share("gil")
        self.assertLessEqual(gil, 1 + TOLERANCE, "only one thread holds the GIL")

    @support.on(support.each_version)
    def check_status(self, python):
        """One burns, one sleeps, one waits for a lock, and C code with the GIL released keeps a core busy."""
        natives = max(1, (os.cpu_count() or 1) - 1)
        with support.Target(python, "status.py", "@/table", natives) as target:
            table = Table(target.path("table"))
            before = table.read()
            profile = self.profile(target)
            rows = difference(before, table.read())
        for tid, name in target.facts["threads"].items():
            thread = profile.thread(int(tid))
            self.assertEqual(thread.name, name)
            self.assert_whole(thread, profile)
            if name == "burner":
                self.assert_share(thread, "gil", 1, 1, "nothing else wants the GIL for long")
                self.assert_share(thread, "runnable", 1, 1, "it burns")
                self.assert_share(thread, "idle", 0, 0, "it burns")
            elif name in ("sleeper", "waiter"):
                for value, share in (("gil", 0), ("gil_wait", 0), ("runnable", 0), ("idle", 1)):
                    self.assert_share(thread, value, share, share, "it is parked")
            else:
                inside, outside, off_cpu = rows[int(name.split()[1])][:3]
                share = outside / max(1, inside + outside)
                waited = off_cpu / max(1, inside + outside)
                why = "in C for %.3f of its time, off the CPU for %.3f" % (1 - share, waited)
                self.assert_share(thread, "gil", 0, share, why)
                self.assert_share(thread, "gil_wait", 0, share + waited, why)
                self.assert_share(thread, "idle", 0, 0, "it is runnable or wants the GIL")
                self.assert_share(thread, "runnable", 1 - share - waited, 1, why)
        self.assertEqual(
            sum(thread.total("unknown") for thread in profile.threads), 0, "this machine tells whether a thread runs"
        )

    @support.on(support.few)
    def check_lockstep(self, python):
        """A program that goes in step with the sampler is met at all that it does; at any other place of its period, too."""
        for period_ns in (1000000, 200000):
            self.first(python, period_ns, 0, 1000)

    @support.on(support.few)
    def check_one_cpu(self, python):
        """A program that works a little and sleeps, with the sampler on the same CPU: a tick must not wait until it sleeps."""
        if tuple(int(re.match(r"\d+", part).group()) for part in os.uname().release.split(".")[:2]) < (6, 12):
            self.skipTest("before Linux 6.12 none can ask to be let in at once")
        cpus = os.sched_getaffinity(0)
        os.sched_setaffinity(0, {min(cpus)})
        try:
            self.first(python, 2000000, 1, 500)
        finally:
            os.sched_setaffinity(0, cpus)

    def first(self, python, period_ns, sleeps, rate):
        """lockstep.py's first() has the share of its own account."""
        with support.Target(python, "lockstep.py", "@/table", period_ns, sleeps) as target:
            table = Table(target.path("table"))
            before = table.read()
            thread = self.profile(target, rate).threads[0]
            first, whole = difference(before, table.read())[0][:2]
        share = sum(node.self.get("wall", 0) for node in thread.nodes if node.name == "first") / thread.total("wall")
        self.assertAlmostEqual(share, first / whole, delta=2 * TOLERANCE, msg="first() of periods of %d ns" % period_ns)


if __name__ == "__main__":
    unittest.main()
