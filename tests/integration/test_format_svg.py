# SPDX-License-Identifier: Apache-2.0
"""The flame graph SVG, read by xmllint (libxml2) and drawn by rsvg-convert where that is there; Chromium draws it in tests/browser."""
import os
import shutil
import subprocess
import unittest

import cli
import support

MAKE_PROFILE = os.path.join(support.TOP, os.environ.get("BUILD", "build"), "tests/browser/make_profile")
SHAPES = ("hostile", "large", "huge", "deep", "deep2000", "one", "empty", "imported", "compared")


@unittest.skipUnless(shutil.which("xmllint"), "xmllint (libxml2-utils) is not installed")
class Svg(cli.Folder):
    @classmethod
    def setUpClass(cls):
        subprocess.run(["make", "-s", "browser"], cwd=support.TOP, check=True, stdout=subprocess.DEVNULL, env={**os.environ, "MAKEFLAGS": ""})

    def lint(self, name):
        done = subprocess.run(["xmllint", "--noout", "--nonet", self.path(name)], capture_output=True, timeout=60)
        self.assertEqual((done.returncode, done.stderr), (0, b""), name)

    def test_shapes(self):
        for shape in SHAPES:
            with self.subTest(shape=shape):
                subprocess.run([MAKE_PROFILE, shape, self.path("x.svg")], check=True)
                self.lint("x.svg")
                self.assertLess(os.path.getsize(self.path("x.svg")), 2 << 20)

    @unittest.skipUnless(shutil.which("rsvg-convert"), "rsvg-convert (librsvg2-bin) is not installed")
    def test_drawn_by_librsvg(self):
        for shape in SHAPES:
            with self.subTest(shape=shape):
                subprocess.run([MAKE_PROFILE, shape, self.path("x.svg")], check=True)
                subprocess.run(["rsvg-convert", "-o", self.path("x.png"), self.path("x.svg")], check=True, timeout=60)
                self.assertGreater(os.path.getsize(self.path("x.png")), 1000)

    @support.needs_python
    def test_real_program(self):
        python = cli.python_for_all()
        done = self.sampled("run", "-q", "-o", "x.svg", "--", *python.argv, "-c", "def work():\n  return sum(i * i for i in range(3000000))\nwork()\nwork()")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.lint("x.svg")
        with open(self.path("x.svg"), encoding="utf-8") as file:
            text = file.read()
        self.assertIn("<title>work (&lt;string&gt;:1), ", text)
        self.assertIn(">rate reached: ", text)


if __name__ == "__main__":
    unittest.main()
