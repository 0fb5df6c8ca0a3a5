# SPDX-License-Identifier: Apache-2.0
"""sampled daemon --check on real files: what it takes, what it refuses and how it says so."""
import os
import re
import shutil
import subprocess
import tempfile
import unittest

import support


class Check(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)
        self.path = os.path.join(self.folder, "sampled.conf")
        os.mkdir(os.path.join(self.folder, "conf.d"))

    def write(self, name, text):
        with open(os.path.join(self.folder, name), "wb") as file:
            file.write(text if isinstance(text, bytes) else text.encode())

    def check(self, *more):
        argv = [support.SAMPLED, "daemon", "--check", "--config", self.path, *more]
        return subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60)

    def refuse(self, *lines):
        done = self.check()
        self.assertEqual((done.returncode, done.stdout), (2, b""), done.stderr)
        self.assertEqual(done.stderr.decode().splitlines(), ["sampled: " + line.replace("DIR", self.folder) for line in lines])

    def test_what_is_right_is_one_line(self):
        self.write("sampled.conf", "[rule web]\ncommand = *gunicorn*\nuser = root\n")
        self.write("conf.d/10-more.conf", "[rule all]\n[service]\nrate = 99\n[push]\nspool = /var/spool/sampled\n")
        done = self.check()
        self.assertEqual((done.returncode, done.stderr), (0, b""))
        self.assertEqual(done.stdout.decode(), "2 files, 2 rules, 0 triggers, 99 samples a second, dumps in /var/lib/sampled, "
                                               "spool in /var/spool/sampled: no mistake found\n")

    def test_each_mistake_is_said_with_its_place(self):
        self.write("sampled.conf", "[service]\nrate = fast\nmdoe = cpu\n[rule a]\nuser = 1\n")
        self.write("conf.d/1.conf", "[trigger t]\ncpu = 80%\nrule = a b\n")
        self.refuse("DIR/sampled.conf:2: rate = fast: not a rate (samples a second: 1 to 1000, such as 49)",
                    "DIR/sampled.conf:3: [service] mdoe: no such key (is it mode?)",
                    "DIR/conf.d/1.conf:3: trigger t: there is no rule b")

    def test_files_that_are_none(self):
        self.refuse("DIR/sampled.conf: No such file or directory")
        self.write("sampled.conf", b"\x7fELF\0\0")
        self.refuse("DIR/sampled.conf: it holds a NUL byte, so it is no text")
        self.write("sampled.conf", b"\n" * (1 << 20) + b"\n")
        self.refuse("DIR/sampled.conf: longer than 1048576 bytes")
        os.remove(self.path)
        os.mkfifo(self.path)
        self.refuse("DIR/sampled.conf: not a regular file")

    def test_a_terminal_is_not_steered(self):
        self.write("sampled.conf", b"[service]\nx\x1b[2J = 1\n")
        self.refuse("DIR/sampled.conf:2: a control character, U+001B")

    def test_the_example_says_the_defaults(self):
        """Each key of the example, its comment taken away, is taken; what it says is what holds without it."""
        with open(os.path.join(support.TOP, "systemd", "sampled.conf"), encoding="utf-8") as file:
            text = file.read()
        self.write("sampled.conf", text)
        plain = self.check()
        self.assertEqual(plain.returncode, 0, plain.stderr)
        self.assertFalse(re.search(r"^[^#\[\n]", text, re.M), "nothing but comments and sections")
        self.write("sampled.conf", re.sub(r"^#(?=[a-z.-]+ =|\[)", "", text, flags=re.M))
        whole = self.check()
        self.assertEqual(whole.returncode, 0, whole.stderr)

    def test_operands_and_options(self):
        self.write("sampled.conf", "")
        done = self.check("1234")
        self.assertEqual(done.returncode, 2)
        self.assertIn(b"daemon takes no operands", done.stderr)
        done = self.check("--confg")
        self.assertEqual(done.returncode, 2)

    def test_a_start_that_fails_ends(self):
        """Its threads, some of which run by then, too."""
        self.write("sampled.conf", "[dump]\ndirectory = %s/none\n" % self.folder)
        argv = [support.SAMPLED, "daemon", "--config", self.path, "--socket", os.path.join(self.folder, "control.sock")]
        done = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60)
        self.assertEqual((done.returncode, done.stdout), (1, b""), done.stderr)
        self.assertIn(b"sampled: cannot start: %s/none: No such file or directory" % self.folder.encode(), done.stderr)


class Manual(unittest.TestCase):
    def test_every_key_is_in_the_manual_and_the_example(self):
        with open(os.path.join(support.TOP, "daemon", "config_keys.c"), encoding="utf-8") as file:
            keys = set(re.findall(r'\{"([a-z-]+)",\s+config_read_', file.read()))
        self.assertGreater(len(keys), 30)
        with open(os.path.join(support.TOP, "docs", "sampled.conf.5"), encoding="utf-8") as file:
            manual = set(re.findall(r"^\.It Cm ([a-z-]+) =", file.read(), re.M))
        self.assertEqual(keys, manual)
        with open(os.path.join(support.TOP, "systemd", "sampled.conf"), encoding="utf-8") as file:
            self.assertEqual(keys, set(re.findall(r"^#\s*([a-z-]+) =", file.read(), re.M)))


if __name__ == "__main__":
    unittest.main()
