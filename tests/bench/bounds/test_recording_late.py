# SPDX-License-Identifier: Apache-2.0
"""How much a recording lacks whose writer was killed."""
import unittest

import test_format_recording


class Killed(test_format_recording.Killed):
    late_s, latest_s, first_s = 0.35, 1, 1.5


if __name__ == "__main__":
    unittest.main()
