# SPDX-License-Identifier: Apache-2.0
"""How many samples of programs whose functions run on top of coroutines are lost at a low rate."""
import unittest

import support

SECONDS = 6
RATE = 100
# Read from another CPU, where a piece of a read takes 0.3 µs, a tenth to a quarter, and to 3.10 at times three of four; on the target's own (near.h), none.
MOST_LOST = 0.02 if support.short_turns() else 0.5


@support.each_python
class Coroutines(unittest.TestCase):
    @support.on(support.few)
    def check_loss(self, python):
        """What is called on top of coroutines is learnt within seconds, too."""
        with support.Target(python, "coroutines.py") as target:
            done = support.sampled("attach", target.pid, "-d", SECONDS, "-r", RATE, "-f", "collapsed", "-o", target.path("stacks"), "--stats")
            self.assertEqual(done.returncode, 0, done.stderr)
        tried, taken = support.samples_tried(done.stderr)
        self.assertGreater(tried, SECONDS * RATE / 2)
        self.assertGreater(taken, (1 - MOST_LOST) * tried)


if __name__ == "__main__":
    unittest.main()
