# SPDX-License-Identifier: Apache-2.0
"""The time of a process that is not read while it rests is credited: its shares are those that reading it all the time shows."""
import unittest

import support
from test_parked import RATE, main_thread, works


@support.needs_python
class Parked(unittest.TestCase):
    def each(self):
        for python in {support.pythons()[0], support.newest()}:
            with self.subTest(python=python.label):
                yield python

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
