# SPDX-License-Identifier: Apache-2.0
"""Programs whose functions run on top of coroutines, which go on before their frames can be read."""
import collections
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
        """At a low rate what is called on top of coroutines is learnt within seconds, too, and who awaits whom is shown whole."""
        with support.Target(python, "coroutines.py") as target:
            path = target.path("stacks")
            done = support.sampled("attach", target.pid, "-d", SECONDS, "-r", RATE, "-f", "collapsed", "-o", path, "--stats")
            self.assertEqual(done.returncode, 0, done.stderr)
            lines = support.read_collapsed(path)
        for line in lines:
            own = ">".join(name for name, file, _ in line.frames if file.endswith("coroutines.py"))
            self.assertRegex(own, r"^<module>(>tasks|>task(>level){0,6}|>task(>level){1,6}>compute(>add)?)?$")
        tried, taken = support.samples_tried(done.stderr)
        self.assertEqual(sum(line.count for line in lines), taken)
        self.assertGreater(tried, SECONDS * RATE / 2)
        self.assertGreater(taken, (1 - MOST_LOST) * tried)

    @support.on(support.each_version)
    def check_closing(self, python):
        """What a generator does while it is closed is shown below whoever gave up the last reference to it."""
        with support.Target(python, "closing.py") as target:
            path = target.path("stacks")
            done = support.sampled("attach", target.pid, "-d", 1, "-r", 1000, "-f", "collapsed", "-o", path)
            self.assertEqual(done.returncode, 0, done.stderr)
            lines = support.read_collapsed(path)
        found = collections.Counter()
        for line in lines:
            found[">".join(name for name, _, _ in line.frames)] += line.count
        for stack in ("<module>>run>cleans>work", "<module>>run>deletes>cleans>work"):
            self.assertGreater(found[stack], 0.3 * sum(found.values()), found)
            self.assertGreater(found[stack], 100)


if __name__ == "__main__":
    unittest.main()
