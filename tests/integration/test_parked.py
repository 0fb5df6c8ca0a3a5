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

    def shares(self, target, seconds, *rates):
        """How much of its main thread's samples is work, at each of these rates, in the same time."""
        paths = [target.path("c%d.txt" % rate) for rate in rates]
        running = [support.start_sampled("attach", target.pid, "-d", seconds, "-r", rate, "-f", "collapsed", "-o", path)
                   for rate, path in zip(rates, paths)]
        for process in running:
            _out, said = process.communicate(timeout=seconds + 60)
            self.assertEqual(process.returncode, 0, said)
        lines = [main_thread(path) for path in paths]
        return [sum(line.count for line in of if works(line)) / sum(line.count for line in of) for of in lines]

    def test_working_now_and_then(self):
        """A little work ten times a second is not lost between two looks: it is as much as a rate shows at which nothing is credited."""
        for python in self.each():
            with support.Target(python, "resting.py", 0.09, 0.01) as target:
                seen, read = self.shares(target, 12, RATE, 200)
            self.assertGreater(seen, 0.04)
            self.assertAlmostEqual(seen, read, delta=0.06)

    def test_wakes(self):
        """Two seconds of rest and two of work: the work is half of its time, as far as it was sampled."""
        for python in self.each():
            with support.Target(python, "resting.py", 2, 2) as target:
                self.assertAlmostEqual(self.shares(target, 8, RATE)[0], 0.5, delta=0.06)


if __name__ == "__main__":
    unittest.main()
