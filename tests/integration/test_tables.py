# SPDX-License-Identifier: Apache-2.0
"""What the tables of sampler/pyabi say of instructions is what the interpreters themselves say."""
import os
import re
import subprocess
import unittest

import support

GENERATOR = os.path.join(support.TOP, "tests", "tools", "make_calling.py")
NAMES = os.path.join(support.TOP, "tests", "tools", "make_opnames.py")


class Tables(unittest.TestCase):
    def test_calling(self):
        """Which instructions can call and which run no Python code, from 3.11 on; those of older versions are tests/unit/test_callsites.c's."""
        pythons = [python for python in support.pythons() if python.version >= (3, 11)]
        if not pythons:
            self.skipTest("no Python 3.11 or later was found")
        for python in pythons:
            with self.subTest(python=python), open(GENERATOR, "rb") as file:
                done = subprocess.run(python.argv + ["-"], stdin=file, stdout=subprocess.PIPE, check=True)
                table = os.path.join(support.TOP, "sampler", "pyabi", "py%d%d.c" % python.version[:2])
                with open(table, encoding="utf-8") as text:
                    found = re.search(r"\t\.calling = \{\n.*?\n\t\},\n\t\.plain_opcodes = .*?\n", text.read(), re.S)
                self.assertEqual(found.group(), done.stdout.decode())

    @support.needs_python
    def test_opnames(self):
        """The names of opcodes, specialised and instrumented ones too."""
        for python in support.pythons():
            with self.subTest(python=python), open(NAMES, "rb") as file:
                done = subprocess.run(python.argv + ["-"], stdin=file, stdout=subprocess.PIPE, check=True)
                table = os.path.join(support.TOP, "sampler", "pyabi", "opnames%d%d.c" % python.version[:2])
                with open(table, encoding="utf-8") as text:
                    self.assertEqual(text.read(), done.stdout.decode())


if __name__ == "__main__":
    unittest.main()
