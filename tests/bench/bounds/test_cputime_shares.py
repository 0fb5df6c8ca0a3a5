# SPDX-License-Identifier: Apache-2.0
"""CPU time of functions, held against the target's own clocks: within 2 points."""
import unittest

import test_cputime


class CpuTime(test_cputime.CpuTime):
    tolerance = 0.02


if __name__ == "__main__":
    unittest.main()
