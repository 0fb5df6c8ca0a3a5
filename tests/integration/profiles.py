# SPDX-License-Identifier: Apache-2.0
"""What the tests of pprof and OTLP share: files of known shape, what they add up to, and the programs that read them."""
import functools
import json
import os
import shutil
import subprocess
import unittest

import support

MAKE_PROFILE = os.path.join(support.TOP, "build", "tests", "browser", "make_profile")
CONSUMERS = os.path.join(support.CACHE, "consumers", "pprof")
PYTHON = os.path.join(CONSUMERS, "venv", "bin", "python")
STRICT = os.path.join(support.TOP, "tests", "consumers", "strict_profiles.py")
# setup-pprof's Go, where it made one: `go tool pprof` of Go 1.19 leaves out samples without a stack.
GO = next(filter(None, map(shutil.which, (os.path.join(CONSUMERS, "go"), "go"))), None)
SHAPES = ("hostile", "huge", "deep2000", "one", "native", "empty")
MS = 1000000


def needs(path, what):
    """Skips a test, in plain sight, where a consumer is not installed."""
    return unittest.skipUnless(os.path.exists(path), "%s is not installed: tests/consumers/setup-pprof" % what)


def run(*command, **extra):
    done = subprocess.run([str(part) for part in command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL,
                          timeout=300, **extra)
    if done.returncode != 0:
        raise AssertionError("%s: status %d\n%s" % (command, done.returncode, done.stderr.decode()[-2000:]))
    return done.stdout


@functools.lru_cache(maxsize=None)
def make_profile():
    run("make", "browser", cwd=support.TOP)
    return MAKE_PROFILE


def make(kind, format_name, path):
    run(make_profile(), kind, path, env=dict(os.environ, FORMAT=format_name))
    return path


def truth(kind, folder):
    """Samples and wall nanoseconds of a shape: by its collapsed stacks, and by how make_profile.c weighs samples."""
    with open(make(kind, "collapsed", os.path.join(folder, kind + ".collapsed")), "rb") as file:
        samples = sum(int(line.rpartition(b" ")[2]) for line in file)
    tiny = 3000 if kind == "hostile" else 0  # of 20 us each
    return samples, (samples - tiny) * MS + tiny * 20000


def strict(*arguments):
    return json.loads(run(PYTHON, STRICT, *arguments))
