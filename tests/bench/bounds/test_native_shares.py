# SPDX-License-Identifier: Apache-2.0
"""Native stacks, sampled beside perf: the shares of functions, and how many samples have all their frames."""
import unittest

import support
import test_native


class EachPython(test_native.EachPython):
    points = 3
    perf_least = 25000 if support.LONG else 3500
    part = 1


class FewPythons(test_native.FewPythons):
    part = 1


if __name__ == "__main__":
    unittest.main()
