# SPDX-License-Identifier: Apache-2.0
"""Files of integration tests, each in a process of its own, whose results come back line by line; as many at a time as there are processors."""
import glob
import json
import multiprocessing.pool
import os
import re
import sys
import time
import unittest

from results import RESULTS, TOP, execute, make

MARK = "@result "
FILE_TIMEOUT_S = 14400 if os.environ.get("SAMPLED_LONG") == "1" else 1800  # of a file; the longest takes four minutes where nothing else is at work
ASKED = re.compile(os.environ.get("SAMPLED_TEST_FILES", ""))  # of the files of a suite only those in whose name this is
SECONDS = os.path.join(TOP, "build", "tests", "seconds.json")  # how long each file took last time


def named(pattern):
    """A choice of files: those whose names without test_ match."""
    return lambda path: re.match(r"test_(%s)\.py$" % pattern, os.path.basename(path)) is not None


def last_seconds():
    try:
        with open(SECONDS, encoding="utf-8") as file:
            return json.load(file)
    except (OSError, ValueError):
        return {}


def integration(suite, env=None, chosen=lambda path: True, folder="tests/integration", at_once=os.cpu_count() or 1):
    """Those that took longest last time come first, so that no processor waits for one at the end; without a last time, the largest."""
    if not make("profiles of known shape", "browser") or not make("the reader of stopped processes", "build/tests/oracle/truth"):
        return
    took = last_seconds()
    files = [path for path in glob.glob(os.path.join(TOP, folder, "test_*.py")) if chosen(path) and ASKED.search(os.path.basename(path))]
    found = sorted(files, key=lambda path: (-took.get(suite + os.path.basename(path), 1000), -os.path.getsize(path)))

    def run(path):
        took[suite + os.path.basename(path)] = add("%s: %s" % (suite, os.path.basename(path)[:-3]), *run_apart(path, FILE_TIMEOUT_S, env))

    with multiprocessing.pool.ThreadPool(at_once) as pool:
        pool.map(run, found, 1)
    os.makedirs(os.path.dirname(SECONDS), exist_ok=True)
    with open(SECONDS, "w", encoding="utf-8") as file:
        json.dump(took, file)


def run_apart(path, timeout, env):
    """(exit status, output, seconds)"""
    return execute([sys.executable, "-B", os.path.join(TOP, "tests/run"), "--unittest", path], timeout, env)


def add(name, status, output, seconds):
    """Results of a file. Its seconds."""
    seen = 0
    whole = False
    for line in output.splitlines():
        if not line.startswith(MARK):
            continue
        kind, test, took, text = line[len(MARK) :].split(" ", 3)
        text = text.encode().decode("unicode_escape").encode("latin-1", "replace").decode("utf-8", "replace")
        if kind == "end":
            whole = True
            continue
        seen += 1
        test = "%s.%s" % (name, test)
        if kind == "ok":
            RESULTS.ok(test, float(took))
        elif kind == "skip":
            RESULTS.skip(test, text)
        else:
            RESULTS.fail(test, text, float(took))
    if not whole:
        RESULTS.fail(name, "%s\nended after %d tests, exit status: %s" % (output[-6000:], seen, status))
    print("  %-40s %3d tests, %5.1f s" % (name, seen, seconds), flush=True)
    return round(seconds, 1)


class Report(unittest.TestResult):
    """Tells the driver of each test's end, in one line."""

    began = time.monotonic()

    def startTest(self, test):
        super().startTest(test)
        self.began = time.monotonic()

    def tell(self, kind, test, text=""):
        name = re.sub(r"\s", "_", re.sub(r"^\w+\.(?=\w+\.)", "", test.id()))
        escaped = text.encode("utf-8").decode("latin-1").encode("unicode_escape").decode()
        print("%s%s %s %.2f %s" % (MARK, kind, name, time.monotonic() - self.began, escaped), flush=True)

    def addSuccess(self, test):
        self.tell("ok", test)

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self.tell("fail", test, self.failures[-1][1])

    def addError(self, test, err):
        super().addError(test, err)
        self.tell("fail", test, self.errors[-1][1])

    def addSkip(self, test, reason):
        self.tell("skip", test, reason)

    def addExpectedFailure(self, test, err):
        self.tell("fail", test, "expected failures are not accepted")

    def addUnexpectedSuccess(self, test):
        self.tell("ok", test)

    def addSubTest(self, test, subtest, err):
        super().addSubTest(test, subtest, err)
        if err:
            self.tell("fail", subtest, self.failures[-1][1] if self.failures else self.errors[-1][1])


def run_unittest(path):
    sys.path[:0] = [os.path.dirname(path), os.path.join(TOP, "tests/integration")]
    tests = unittest.defaultTestLoader.loadTestsFromName(os.path.basename(path)[:-3])
    tests.run(Report())
    print(MARK + "end - 0 ", flush=True)
