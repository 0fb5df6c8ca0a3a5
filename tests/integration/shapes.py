# SPDX-License-Identifier: Apache-2.0
"""Profiles of known shape, in every format (tests/browser/make_profile), and what is in them: what the tests of formats share."""
import collections
import os
import shutil
import subprocess
import tempfile
import unittest

import cli
import support

MAKE_PROFILE = os.path.join(support.TOP, "build", "tests", "browser", "make_profile")
CONSUMERS = os.path.join(support.CACHE, "consumers")
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
KINDS = ("empty", "one", "native", "hostile", "deep2000", "huge")


def consumer(name, *parts):
    """The path of an installed consumer's file; skips the test where it is not there."""
    path = os.path.join(CONSUMERS, name, *parts)
    if not os.path.exists(path):
        raise unittest.SkipTest("%s is not installed (tests/consumers/setup-%s)" % (name, name))
    return path


def need_chromium():
    if not CHROMIUM or not shutil.which("node"):
        raise unittest.SkipTest("Chromium or node is not installed")
    return CHROMIUM


def make(kind, form, path):
    if not os.path.exists(MAKE_PROFILE):
        subprocess.run(["make", "-s", "browser"], cwd=support.TOP, check=True, env=dict(os.environ, MAKEFLAGS=""))
    subprocess.run([MAKE_PROFILE, kind, path], check=True, env=dict(os.environ, FORMAT=form))
    return path


def wall_ms(line):
    """A sample of these profiles weighs a millisecond; those of a function tiny_… 20 µs."""
    return line.count * (0.02 if line.frames and line.frames[-1][0].startswith("tiny_") else 1)


def chrome_spans(test, told):
    """tid: milliseconds in each function itself and the deepest stack; fails where spans overlap, callees come before their callers, or
    what was spent in functions is not what the outermost ones lasted."""
    spans, own, deepest = collections.defaultdict(list), collections.defaultdict(collections.Counter), collections.Counter()
    outermost = collections.Counter()
    for event in told["traceEvents"]:
        if event["ph"] == "M":
            test.assertIn(event["name"], ("process_name", "thread_name"))
            continue
        test.assertEqual(event["ph"], "X")
        start, length = event["ts"] * 8, event["dur"] * 8
        test.assertEqual((start % 1, length % 1), (0, 0), "whole eighths of a microsecond, of which sums are exact")
        test.assertGreaterEqual(length, 0)
        spans[event["tid"]].append((start, start + length + 1, event["name"]))  # it ends one before what follows
    for tid, found in spans.items():
        test.assertEqual([end for _, end, _ in found], sorted(end for _, end, _ in found), "written when they end")
        stack = []
        for start, end, name in sorted(found, key=lambda span: (span[0], -span[1])):  # of the same time: as they are in the file
            while stack and stack[-1][0] <= start:
                stack.pop()
            ms = (end - start) / 8000
            if stack:
                test.assertLessEqual(end, stack[-1][0], "a callee ends with its caller")
                own[tid][stack[-1][1]] -= ms
            else:
                outermost[tid] += ms
            stack.append((end, name))
            own[tid][name] += ms
            deepest[tid] = max(deepest[tid], len(stack))
        test.assertAlmostEqual(sum(own[tid].values()), outermost[tid], delta=1e-6 * len(found))
    test.assertIn("samples", told["otherData"]["facts"])
    return own, deepest


class Shapes(cli.Folder):
    """A test of a format on all shapes, which are made once."""

    FORMAT = SUFFIX = None

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="sampled-shapes-")
        cls.addClassCleanup(folder.cleanup)
        cls.files = {kind: make(kind, cls.FORMAT, os.path.join(folder.name, kind + cls.SUFFIX)) for kind in KINDS}
        cls.lines = {}
        for kind in KINDS:
            cls.lines[kind] = support.read_collapsed(make(kind, "collapsed", os.path.join(folder.name, kind + ".collapsed")))

    def threads(self, kind):
        """tid: its lines."""
        found = collections.defaultdict(list)
        for line in self.lines[kind]:
            found[line.tid].append(line)
        return found


def record(test, folder):
    """A recording of a real program; skips where sampled cannot make one yet."""
    path = os.path.join(folder, "real.sampled")
    with support.Target(support.newest(), "busy.py") as target:
        done = support.sampled("attach", target.pid, "-d", "1.5", "--record", path, cwd=folder)
    if b"not built yet" in done.stderr or b"unknown option" in done.stderr:
        test.skipTest("--record is not built yet")
    test.assertEqual(done.returncode, 0, done.stderr)
    return path
