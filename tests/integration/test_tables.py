# SPDX-License-Identifier: Apache-2.0
"""What the tables of sampler/pyabi say of instructions is what the interpreters themselves say."""
import os
import re
import subprocess
import unittest

import support

GENERATOR = os.path.join(support.TOP, "tests", "tools", "make_calling.py")
NAMES = os.path.join(support.TOP, "tests", "tools", "make_opnames.py")


def generated(python, *arguments):
    with open(GENERATOR, "rb") as file:
        return subprocess.run(python.argv + ["-", *arguments], stdin=file, stdout=subprocess.PIPE, check=True).stdout.decode()


def entries(name, text):
    """What a table of bytes has by opcode."""
    table = re.search(r"\t\.%s = \{\n(.*?)\n\t\}," % name, text, re.S).group(1)
    found = {}
    for first, last, units in re.findall(r"\[(\d+)(?: \.\.\. (\d+))?\] = (\d+),", table):
        found.update(dict.fromkeys(range(int(first), int(last or first) + 1), int(units)))
    return found


class Tables(unittest.TestCase):
    def pythons(self):
        found = [python for python in support.pythons() if python.version >= (3, 11)]
        if not found:
            self.skipTest("no Python 3.11 or later was found")
        return found

    def test_calling(self):
        """Which instructions can call and which run no Python code, from 3.11 on; of older versions it is not asked."""
        for python in self.pythons():
            with self.subTest(python=python):
                table = os.path.join(support.TOP, "sampler", "pyabi", "py%d%d.c" % python.version[:2])
                with open(table, encoding="utf-8") as text:
                    found = re.search(r"\t\.calling = \{\n.*?\n\t\},\n\t\.caches = \{\n.*?\n\t\},\n\t\.plain_opcodes = .*?\n\t\.push_null = .*?\},\n", text.read(), re.S)
                self.assertEqual(found.group(), generated(python))

    def test_caches(self):
        """What is found with the table of caches are the instructions, in functions that have run so often that they are specialised."""
        for python in self.pythons():
            with self.subTest(python=python):
                caches, lines = entries("caches", generated(python)), generated(python, "instructions").splitlines()
                self.assertGreater(len(lines), 10)
                for line in lines:
                    bytecode, *instructions = line.split()
                    bytecode, at, found = bytes.fromhex(bytecode), 0, []
                    while at < len(bytecode):
                        found.append(at)
                        at += 2 + 2 * caches.get(bytecode[at], 0)
                    self.assertEqual(found, [int(offset) for offset in instructions])

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
