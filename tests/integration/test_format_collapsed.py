# SPDX-License-Identifier: Apache-2.0
"""Folded text of every origin, read: our own in both styles, py-spy's and Austin's of a real program (tests/bench/setup-peers)."""
import os
import re
import subprocess
import unittest

import cli
import support

MAKE_PROFILE = os.path.join(os.path.dirname(support.SAMPLED), "tests", "browser", "make_profile")
PY_SPY = os.path.join(support.CACHE, "peers", "py-spy", "bin", "py-spy")
AUSTIN = os.path.join(support.CACHE, "peers", "austin", "austin")


def known():
    """An interpreter that all of these profilers know, outside of any root of its own."""
    found = [python for python in support.all_pythons() if not python.root and (3, 8) <= python.version < (3, 13)]
    if not found:
        raise unittest.SkipTest("no Python from 3.8 to 3.12")
    return found[-1]


def total(data):
    return sum(int(line.rpartition(b" ")[2]) for line in data.splitlines())


class Collapsed(cli.Folder):
    def convert(self, *args):
        done = self.sampled("convert", *args, "-f", "collapsed", "-o", "-")
        self.assertEqual((done.returncode, done.stderr), (cli.DONE, b""))
        return done.stdout

    def read(self, name):
        with open(self.path(name), "rb") as file:
            return file.read()

    @support.needs_python
    def test_ours_of_a_real_program(self):
        with support.Target(support.newest(), "busy.py", 4) as target:
            for style in ("sampled", "tachyon"):
                done = self.sampled("attach", target.pid, "-d", "1", "-o", style + ".collapsed", "--collapsed-style", style)
                self.assertEqual(done.returncode, cli.DONE, done.stderr)
                text = self.read(style + ".collapsed")
                self.assertGreater(total(text), 0)
                self.assertEqual(self.convert(style + ".collapsed", "--collapsed-style", style), text)

    def test_ours_of_all_shapes(self):
        if not os.access(MAKE_PROFILE, os.X_OK):
            self.skipTest("make browser has not built make_profile")
        for kind in ("hostile", "huge", "deep2000", "deep", "one"):
            subprocess.run([MAKE_PROFILE, kind, self.path(kind)], check=True, env={**os.environ, "FORMAT": "collapsed"})
            self.assertTrue(self.convert(kind) == self.read(kind), kind)
        open(self.path("empty"), "w").close()
        self.assert_error(self.sampled("convert", "empty", "-o", "x.txt"), cli.FAILED, "it is empty")

    @support.needs_python
    @unittest.skipUnless(os.access(PY_SPY, os.X_OK), "py-spy is not installed (tests/bench/setup-peers py-spy)")
    def test_py_spy(self):
        with support.Target(known(), "busy.py", 4) as target:
            done = subprocess.run([PY_SPY, "record", "-d", "2", "-f", "raw", "-t", "-s", "-p", str(target.pid), "-o", "raw.txt"],
                                  cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60)
        if done.returncode != 0:
            self.skipTest("py-spy cannot sample it: %s" % done.stdout.decode(errors="replace").strip()[-200:])
        lines = support.parse_collapsed(self.convert("raw.txt"))
        self.assertEqual(sum(line.count for line in lines), total(self.read("raw.txt")))
        self.assertLessEqual({"worker 0", "worker 1", "worker 2"}, {line.thread for line in lines})
        self.assertTrue(any(frame[0] == "descend" and frame[1] == "busy.py" and frame[2] > 0 for line in lines for frame in line.frames))

    @support.needs_python
    @unittest.skipUnless(os.access(AUSTIN, os.X_OK), "Austin is not installed (tests/bench/setup-peers austin)")
    def test_austin(self):
        with support.Target(known(), "busy.py", 4) as target:
            done = subprocess.run(["timeout", "30", AUSTIN, "-x", "2", "-i", "2ms", "-p", str(target.pid), "-o", "austin.txt"],
                                  cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60)
        if not os.path.exists(self.path("austin.txt")) or not total(self.metrics()):
            self.skipTest("Austin cannot sample it: %s" % done.stdout.decode(errors="replace").strip()[-200:])
        lines = support.parse_collapsed(self.convert("austin.txt"))
        self.assertEqual(sum(line.count for line in lines), 1000 * total(self.metrics()), "the weight, in nanoseconds")
        self.assertIn(target.pid, {line.tid for line in lines})
        self.sampled("convert", "austin.txt", "-f", "jsonl", "-o", "austin.jsonl")
        weight = sum(map(int, re.findall(rb'"self":\{[^}]*"wall":(\d+)', self.read("austin.jsonl"))))
        self.assertEqual(weight, 1000 * total(self.metrics()), "its microseconds")

    def metrics(self):
        return b"\n".join(line for line in self.read("austin.txt").splitlines() if line.startswith(b"P"))

    def test_refused(self):
        for text, says in ((b"hello\nworld\n", "unrecognised format"), (b"\x1f\x8bnot gzip at all", "damaged")):
            with open(self.path("bad"), "wb") as file:
                file.write(text)
            self.assert_error(self.sampled("convert", "bad", "-o", "x.txt"), cli.FAILED, says)
        with open(self.path("folded"), "wb") as file:
            file.write(b"a;b 3\n")
        self.assert_error(self.sampled("convert", "folded", "--from", "1", "-o", "x.txt"), cli.USAGE, "hold no time order")
