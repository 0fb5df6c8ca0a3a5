# SPDX-License-Identifier: Apache-2.0
"""A process that did not run is not read: its time is credited, and adds up to what reading it all the time shows."""
import json
import unittest

import support

RATE = 49
LOSSES = ("lost_torn", "lost_unreadable", "lost_invalid", "lost_gone", "lost_dropped")


def works(line):
    return any(name == "work_hard" for name, _file, _line in line.frames)


def main_thread(path):
    """Its lines: the others wait in wait_nested()."""
    return [line for line in support.read_collapsed(path) if line.frames and line.frames[0][0] == "<module>"]


@support.needs_python
class Parked(unittest.TestCase):
    """On the oldest and the newest Python: which threads there are is read in other ways, parking is the same for all."""

    def each(self):
        for python in {support.pythons()[0], support.newest()}:
            with self.subTest(python=python.label):
                yield python

    def test_waiting(self):
        """All its threads wait: nearly every tick is credited, and the sums are those of reading it."""
        for python in self.each():
            with support.Target(python, "resting.py", 1000, 0) as target:
                facts = self.facts(target, 4)
            self.assertGreater(facts["ticks_credited"], 0.6 * facts["ticks"])
            self.assertEqual(facts["attempts"], facts["samples"] + sum(facts[key] for key in LOSSES))
            self.assertEqual(facts["samples"], facts["in_profile"])
            self.assertAlmostEqual(facts["attempts"], 5 * facts["ticks"], delta=10)

    def facts(self, target, seconds):
        path = target.path("p.jsonl")
        done = support.sampled("attach", target.pid, "-d", seconds, "-r", RATE, "-f", "jsonl", "-o", path)
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(path, encoding="utf-8") as file:
            return json.loads(file.readline())["facts"]

    def counted(self, target, seconds):
        """How many samples of its main thread are work, and how many there are."""
        path = target.path("stacks")
        done = support.sampled("attach", target.pid, "-d", seconds, "-r", RATE, "-f", "collapsed", "-o", path)
        self.assertEqual(done.returncode, 0, done.stderr)
        lines = main_thread(path)
        return sum(line.count for line in lines if works(line)), sum(line.count for line in lines)

    def test_working_now_and_then(self):
        """A little work ten times a second is not lost between two looks, nor is it taken for all. (How much of it is seen: tests/bench/bounds.)"""
        for python in self.each():
            with support.Target(python, "resting.py", 0.09, 0.01) as target:
                seen, whole = self.counted(target, 4)
            self.assertGreater(seen, 0)
            self.assertGreater(whole, seen)

    def test_wakes(self):
        """A second of rest and one of work, in turns: both are seen."""
        for python in self.each():
            with support.Target(python, "resting.py", 1, 1) as target:
                seen, whole = self.counted(target, 4)
            self.assertGreater(seen, 0)
            self.assertGreater(whole, seen)


if __name__ == "__main__":
    unittest.main()
