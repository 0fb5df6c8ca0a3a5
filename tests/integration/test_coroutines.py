# SPDX-License-Identifier: Apache-2.0
"""Programs whose functions run on top of coroutines, which go on before their frames can be read."""
import collections
import unittest

import support

SECONDS = 4
RATE = 100
ROUNDS = 30  # of a second, until what there is to be seen was seen: on a busy machine a second is few samples


@support.each_python
class Coroutines(unittest.TestCase):
    @support.on(support.few)
    def check_tasks(self, python):
        """Who awaits whom is shown whole, and what is lost is counted. (How much that is: tests/bench/bounds.)"""
        with support.Target(python, "coroutines.py") as target:
            path = target.path("stacks")
            done = support.sampled("attach", target.pid, "-d", SECONDS, "-r", RATE, "-f", "collapsed", "-o", path, "--stats")
            self.assertEqual(done.returncode, 0, done.stderr)
            lines = support.read_collapsed(path)
        for line in lines:
            own = ">".join(name for name, file, _ in line.frames if file.endswith("coroutines.py"))
            self.assertRegex(own, r"^<module>(>tasks|>task(>level){0,6}|>task(>level){1,6}>compute(>add)?)?$")
        self.assertEqual(sum(line.count for line in lines), support.samples_tried(done.stderr)[1])
        self.assertGreater(len(lines), 1)

    @support.on(support.each_version)
    def check_closing(self, python):
        """What a generator does while it is closed is shown below whoever gave up the last reference to it."""
        stacks = ("<module>>run>cleans>work", "<module>>run>deletes>cleans>work")
        found = collections.Counter()
        with support.Target(python, "closing.py") as target:
            path = target.path("stacks")
            for _ in range(ROUNDS):
                done = support.sampled("attach", target.pid, "-d", 1, "-r", 1000, "-f", "collapsed", "-o", path)
                self.assertEqual(done.returncode, 0, done.stderr)
                for line in support.read_collapsed(path):
                    found[">".join(name for name, _, _ in line.frames)] += line.count
                if all(found[stack] for stack in stacks):
                    break
        for stack in stacks:
            self.assertGreater(found[stack], 0, found)


if __name__ == "__main__":
    unittest.main()
