# SPDX-License-Identifier: Apache-2.0
"""Ticks are taken on the CPU that the target runs on, where the kernel lets the sampler in at once."""
import os
import re
import signal
import subprocess
import sys
import unittest

import support

RATE = 250
HOG = """
import os, sys
os.sched_setaffinity(0, {int(sys.argv[1])})
os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
while True: pass
"""


def sampler_cpus(pid):
    """Where the sampler's thread of this process may run; None: there is no such thread yet."""
    for tid in os.listdir("/proc/%d/task" % pid):
        with open("/proc/%d/task/%s/comm" % (pid, tid)) as file:
            if file.read().strip() == "sampled-sampler":
                return os.sched_getaffinity(int(tid))
    return None


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
        self.assertEqual(sum(line.count for line in support.read_collapsed(target.path("stacks"))), taken)
        return tried, taken

    @support.on(support.few)
    def check_place(self, python):
        """It goes where the target is, and follows it."""
        with support.Target(python, "coroutines.py") as target:
            process = self.start(target, 300)
            for cpu in sorted(os.sched_getaffinity(0))[:2]:
                os.sched_setaffinity(target.pid, {cpu})
                # Where it had to wait for a CPU of other programs it keeps away for a while, up to 16 s.
                support.wait_until(lambda: sampler_cpus(process.pid) == {cpu}, "the sampler is on CPU %d" % cpu)
            process.send_signal(signal.SIGINT)
            self.samples(target, process)

    @support.on(support.few)
    def check_summary(self, python):
        """The closing summary says by which reader samples were taken; without a budget all that move are read moving."""
        with support.Target(python, "coroutines.py") as target:
            said = {}
            for share in ("2%", "0%"):
                process = support.start_sampled("attach", target.pid, "-d", 2, "--visit-budget", share, "-f", "collapsed", "-o", target.path("stacks"))
                said[share] = process.communicate(timeout=support.SAMPLED_TIMEOUT_S)[1]
                self.assertEqual(process.returncode, 0, said[share])
        exact = {share: [float(number) for number in re.search(
            rb"exact +([\d.]+) % \(standing ([\d.]+), stopped ([\d.]+)\), moving ([\d.]+) %", text).groups()] for share, text in said.items()}
        for numbers in exact.values():
            self.assertAlmostEqual(numbers[0] + numbers[3], 100, delta=0.2)
            self.assertEqual(numbers[2], 0)
        self.assertGreater(exact["2%"][0], 0)
        self.assertEqual(exact["0%"][1], 0)

    @support.on(lambda: [support.newest()])
    def check_starved(self, python):
        """A CPU that a real-time program has is none to wait on."""
        if os.geteuid() != 0:
            self.skipTest("only root may go before all others")
        cpu = min(os.sched_getaffinity(0))
        with support.Target(python, "coroutines.py") as target:
            os.sched_setaffinity(target.pid, {cpu})
            hog = subprocess.Popen([sys.executable, "-c", HOG, str(cpu)])
            try:
                taken = self.samples(target, self.start(target, 4))[1]
            finally:
                hog.kill()
                hog.wait()
        self.assertGreater(taken, 0, "nobody waits until the other program is killed")


if __name__ == "__main__":
    unittest.main()
