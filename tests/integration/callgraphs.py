# SPDX-License-Identifier: Apache-2.0
"""What the tests of the call graphs' formats share: profiles of known shape, and a real program's in several formats at once."""
import functools
import os
import shutil
import subprocess
import unittest

import cli
import support

MAKE_PROFILE = os.path.join(support.TOP, "build", "tests", "browser", "make_profile")
SHAPES = ("hostile", "huge", "deep2000", "one", "native", "empty")
CONSUMERS = os.path.join(support.CACHE, "consumers", "pstats", "bin")


@functools.lru_cache(maxsize=None)
def build_shapes():
    subprocess.run(["make", "-s", "browser"], cwd=support.TOP, check=True, timeout=600, stdout=subprocess.DEVNULL)


def write_shape(kind, format_name, path):
    build_shapes()
    subprocess.run([MAKE_PROFILE, kind, path], env=dict(os.environ, FORMAT=format_name), check=True, timeout=120)
    return path


def needs(program):
    return unittest.skipUnless(shutil.which(program), "%s is not installed" % program)


def run(*argv, timeout=300, stdin=None):
    """A consumer, which must end well; a CompletedProcess with text."""
    done = subprocess.run(argv, stdin=stdin or subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=timeout,
                          encoding="utf-8", errors="surrogateescape")
    if done.returncode != 0:
        raise AssertionError("%s: exit status %d\n%s" % (" ".join(argv), done.returncode, done.stderr[-3000:]))
    return done


class Profiles(cli.Folder):
    """Tests that profile a real program."""

    def profile(self, *formats):
        """Of a program with recursion, in these formats, of one and the same profile: their paths."""
        with support.Target(support.newest(), "busy.py") as target:
            args = [arg for name in formats for arg in ("-f", name)]
            outs = [arg for name in formats for arg in ("-o", "real." + name)]
            done = self.sampled("attach", target.pid, "-d", "2", "-q", *args, *outs)
            self.assertEqual(done.returncode, cli.DONE, done.stderr)
        return [self.path("real." + name) for name in formats]
