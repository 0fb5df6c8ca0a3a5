# SPDX-License-Identifier: Apache-2.0
"""Shares of functions at a fixed rate against those of the same process stopped at random instants. tests/oracle/run --bias has all oracles."""
import os
import sys
import unittest

import support

sys.path.insert(0, os.path.join(support.TOP, "tests", "oracle"))
import bias  # noqa: E402
import together  # noqa: E402
import workloads  # noqa: E402

RATE = "10000"
STOPS = 4000
# Beyond four standard deviations. Before the thread state told which function ran, tasks was 5 to 14 off, and tree up to 10; 1 and 8 before what looks alike was told apart.
POINTS = {"tasks": 5, "tree": 3}


def stacks():
    """To 3.10 frames lie on the heap, and what is torn is reported, not bounded."""
    return [python for python in support.few() if python.version >= (3, 11)]


@unittest.skipUnless(together.allowed(), "needs two CPUs, and the permission to go before others")
@support.each_python
class Bias(unittest.TestCase):
    @support.on(stacks)
    def check_tasks(self, python):
        """An event loop's functions, most of which run for less than the copy of a stack takes, some on top of coroutines."""
        self.compare(python, "tasks")

    @support.on(stacks)
    def check_tree(self, python):
        """Functions of 100 ns that call nothing through C."""
        self.compare(python, "tree")

    def compare(self, python, workload):
        program = workloads.Program(python, workload)
        try:
            rules = program.rules()
            with program:
                found = bias.measure(program, rules, STOPS, RATE, True)
        finally:
            program.remove()
        self.assertLess(max([0] + [abs(points) - bias.SIGMAS * sigma for points, sigma, _ in found.self_points]), POINTS[workload],
                        "\n".join(found.details()))


if __name__ == "__main__":
    unittest.main()
