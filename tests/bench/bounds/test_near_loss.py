# SPDX-License-Identifier: Apache-2.0
"""Ticks are taken on the CPU that the target runs on, where the kernel lets the sampler in at once: then nothing is torn."""
import os
import re
import unittest

import support
from test_near import sampler_cpus

RATE = 250


@unittest.skipUnless(support.short_turns(), "this kernel makes who wakes up wait for its turn")
@unittest.skipUnless(len(os.sched_getaffinity(0)) > 1, "one CPU only")
@support.each_python
class Near(unittest.TestCase):
    def start(self, target, seconds):
        process = support.start_sampled("attach", target.pid, "-d", seconds, "-r", RATE, "-f", "collapsed", "-o", target.path("stacks"), "--stats")
        self.addCleanup(process.wait)
        return process

    def samples(self, target, process):
        """How many there were to take, and how many were taken."""
        said = process.communicate(timeout=support.SAMPLED_TIMEOUT_S)[1]
        self.assertEqual(process.returncode, 0, said)
        tried, taken = support.samples_tried(said)
        self.standing_percent = float(re.search(rb"\(standing ([\d.]+)", said).group(1))
        self.assertEqual(sum(line.count for line in support.read_collapsed(target.path("stacks"))), taken)
        return tried, taken

    @support.on(support.few)
    def check_place(self, python):
        """It goes where the target is, and follows it. Then nothing is torn, whatever the target runs."""
        with support.Target(python, "coroutines.py") as target:
            process = self.start(target, 5)
            for cpu in sorted(os.sched_getaffinity(0))[:2]:
                os.sched_setaffinity(target.pid, {cpu})
                support.wait_until(lambda: sampler_cpus(process.pid) == {cpu}, "the sampler is on CPU %d" % cpu)
            tried, taken = self.samples(target, process)
        self.assertGreater(tried, 5 * RATE / 2)
        self.assertGreater(taken, 0.99 * tried - 2)
        self.assertGreater(self.standing_percent, 90)


if __name__ == "__main__":
    unittest.main()
