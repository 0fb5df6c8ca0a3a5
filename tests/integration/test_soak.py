# SPDX-License-Identifier: Apache-2.0
"""The short form of the soak (make soak): the service among processes that come and go, killed, reconfigured, with a full disk."""
import os
import sys
import unittest

import support

sys.path.insert(0, os.path.join(support.TOP, "tests", "soak"))
import parts  # noqa: E402
import soaking  # noqa: E402

SECONDS, KILLS = 20, 20


@support.need_root
@unittest.skipUnless(len(soaking.interpreters()) > 1, "no two Pythons were found")
class Soak(unittest.TestCase):
    def check(self, report):
        self.assertEqual(report.wrong, [], "\n".join(report.lines))

    def test_crowd(self):
        self.check(parts.crowd(SECONDS))

    def test_kills(self):
        self.check(parts.kills(KILLS))

    def test_reloads(self):
        self.check(parts.reloads(20))

    def test_numbers(self):
        self.check(parts.numbers(4))

    def test_full_disk(self):
        self.check(parts.full_disk())


if __name__ == "__main__":
    unittest.main()
