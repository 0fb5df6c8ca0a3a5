# SPDX-License-Identifier: Apache-2.0
"""What share of the time collections and exceptions in hand take, beside the program's own """
import unittest

import support
from account import Table, difference
from test_special import SECONDS, profile, stacks

TOLERANCE = 0.02


def allowance(found, seconds=SECONDS):
    """How far a share may be off: what was not sampled, on a busy machine, may have been either."""
    return TOLERANCE + found.facts["unsampled_ns"] / (seconds * 1e9)


@support.each_python
class Collecting(unittest.TestCase):
    def share(self, python, kind, rate, seconds=SECONDS):
        with support.Target(python, "collecting.py", "@/table", kind) as target:
            table = Table(target.path("table"))
            before = table.read()
            whole = profile(target, "-r", rate, seconds=seconds)
            collected, passed = difference(before, table.read())[0][:2]
        thread = whole.threads[0]
        found = stacks(thread)
        share = sum(wall for names, wall in found.items() if "<GC>" in names) / thread.total("wall")
        self.assertAlmostEqual(
            share, collected / passed, delta=allowance(whole, seconds), msg="<GC> in %s collections at a rate of %s" % (kind, rate)
        )
        self.assertAlmostEqual(thread.share("gc"), share, delta=0.001)
        outside = sum(wall for names, wall in found.items() if "<GC>" in names and "collect" not in names)
        self.assertLess(outside / thread.total("wall"), 0.005, "<GC> where nothing is collected: %r" % found)
        return found

    @support.on(support.few)
    def check_long(self, python):
        self.share(python, "long", 1000)

    @support.on(support.each_version)
    def check_short(self, python):
        """Collections that are shorter than the time between two samples."""
        self.share(python, "short", 1000, 2 * SECONDS)  # of 3,000 samples, shares have a standard deviation of 0.7 points

    @support.on(support.few)
    def check_short_at_a_high_rate(self, python):
        """At which they are longer than that."""
        self.share(python, "short", 10000)

    @support.on(support.few)
    def check_called(self, python):
        for kind in ("callback", "finalizer"):
            self.share(python, kind, 1000, 3 * SECONDS)  # a millisecond each: by chance alone 3,000 samples would be 1.8 points off in one run of 20


@support.each_python
class Handling(unittest.TestCase):
    @support.on(support.each_version)
    def check_nested(self, python):
        self.shares(python, "nested")

    @support.on(support.few)
    def check_others(self, python):
        self.shares(python, "finals", "generators", "coroutines")

    def shares(self, python, *kinds):
        """--mode exception counts what a program spends with an exception in hand."""
        for kind in kinds:
            with self.subTest(kind), support.Target(python, "handling.py", "@/table", kind) as target:
                table = Table(target.path("table"))
                before = table.read()
                found = profile(target, "-r", "1000", "--mode", "exception")
                handled, free = difference(before, table.read())[0][:2]
                counted = sum(thread.total("samples") for thread in found.threads)
                share = counted / found.facts["samples"]
                self.assertAlmostEqual(share, handled / (handled + free), delta=allowance(found), msg=kind)
                walls = stacks(found.threads[0])
                known = sum(wall for names, wall in walls.items() if "in_hand" in names)
                self.assertGreater(known / sum(walls.values()), 0.98, walls)


if __name__ == "__main__":
    unittest.main()
