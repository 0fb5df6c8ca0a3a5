# SPDX-License-Identifier: Apache-2.0
"""Programs whose functions run on top of coroutines, which go on before their frames can be read."""
import unittest

import support

SECONDS = 6
RATE = 100
TRIES = 3
MOST_LOST = 0.5  # a twentieth as a rule; where calls on top of coroutines are learnt from samples alone, four of five


@support.each_python
class Coroutines(unittest.TestCase):
    @support.on(support.few)
    def check_loss(self, python):
        """At a low rate what is called on top of coroutines is learnt within seconds, too, and who awaits whom is shown whole. Now and then one
        call is learnt late, that of the tasks' own coroutines by C: so one attempt of three must do."""
        self.assertTrue(any(self.attach(python) for _ in range(TRIES)), "%d times more than %d %% were lost" % (TRIES, 100 * MOST_LOST))

    def attach(self, python):
        """Whether enough samples were taken."""
        with support.Target(python, "coroutines.py") as target:
            path = target.path("stacks")
            done = support.sampled("attach", target.pid, "-d", SECONDS, "-r", RATE, "-f", "collapsed", "-o", path)
            self.assertEqual(done.returncode, 0, done.stderr)
            lines = support.read_collapsed(path)
        for line in lines:
            own = ">".join(name for name, file, _ in line.frames if file.endswith("coroutines.py"))
            self.assertRegex(own, r"^<module>(>tasks|>task(>level){0,6}|>task(>level){1,6}>compute(>add)?)?$")
        return sum(line.count for line in lines) > (1 - MOST_LOST) * SECONDS * RATE


if __name__ == "__main__":
    unittest.main()
