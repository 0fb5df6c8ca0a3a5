# SPDX-License-Identifier: Apache-2.0
"""Databases of the Ascend PyTorch profiler, against totals that Python works out from the same tables. SAMPLED_LONG=1: two million
calls. There is no such profiler on this machine: tests/tools/make_ascend.py writes the documented schema."""
import collections
import gzip
import os
import sqlite3
import sys
import unittest

import cli
import htmlprofile
import support

sys.path.insert(0, os.path.join(support.TOP, "tests", "tools"))
import make_ascend  # noqa: E402

CALLS = 2_000_000 if os.environ.get("SAMPLED_LONG") else 200_000
FRAMEWORK = ("torch", "aten::", "c10::", "aten_")
CANN = ("cann", "ascendcl", "aclnn", "aclrt", "aclmdl", "aclprof", "hccl")


def category(name):
    low = name.lower()
    if any(word in low for word in CANN):
        return "<cann>"
    if any(word in low for word in FRAMEWORK):
        return "<python_framework>"
    return "<python>" if ".py" in name or "python" in low else "<unknown>"


class Expected:
    """What is in a database: {(tid, path of (name, category) …): [calls, self ns]} and the numbers of bad records."""

    def __init__(self, path):
        self.found = collections.defaultdict(lambda: [0, 0])
        self.counts = collections.Counter()
        db = sqlite3.connect(path)
        strings = dict(db.execute("SELECT id, value FROM STRING_IDS"))
        calls = []
        for start, end, tid, name in db.execute("SELECT startNs, endNs, globalTid, name FROM PYTORCH_API"):
            self.counts["calls"] += 1
            text = strings.get(name) or ""
            if text.lower().startswith("profilerstep#"):
                self.counts["skipped_steps"] += 1
            elif start is None or end is None or tid is None:
                self.counts["skipped_no_time"] += 1
            elif int(end) <= int(start):
                self.counts["skipped_backwards"] += 1
            else:
                self.counts["unknown_names"] += not text
                calls.append((tid, int(start), -int(end), name, text or "unknown"))
        db.close()
        calls.sort()
        stack = []
        for tid, start, end, _, name in calls:
            end = -end
            while stack and (stack[-1][0] != tid or stack[-1][1] <= start):
                stack.pop()
            path = (stack[-1][2] if stack else ()) + ((name, category(name)),)
            if stack and end > stack[-1][1]:
                self.counts["clipped_calls"] += 1
                end = stack[-1][1]
            self.found[tid, path][0] += 1
            self.found[tid, path][1] += end - start
            if stack:
                self.found[tid, stack[-1][2]][1] -= end - start
            stack.append((tid, end, path))


def read_page(page):
    profile = htmlprofile.Profile(page)
    found = {}
    for thread in profile.threads:
        paths = [()]
        for node in thread.nodes[1:]:
            paths.append(paths[node.parent] + ((node.name, node.file),))
            if node.self:
                key = thread.pid << 32 | thread.tid, paths[-1]
                assert key not in found
                found[key] = [node.self["samples"], node.self["wall"]]
    return profile, found


class Ascend(cli.Folder):
    def make(self, statements, name="x.db"):
        path = self.path(name)
        with sqlite3.connect(path) as db:
            db.executescript(statements)
        db.close()
        return path

    def convert(self, *args, **extra):
        done = self.sampled("convert", *args, "-f", "flamegraph", "-o", "-", **extra)
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        return read_page(done.stdout)

    def collapsed(self, path):
        done = self.sampled("convert", path, "-f", "collapsed", "-o", "-")
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        return sorted(done.stdout.decode().splitlines())

    def test_many_calls(self):
        path = self.path("ascend_pytorch_profiler_0.db")
        make_ascend.make(path, CALLS)
        expected = Expected(path)
        profile, found = self.convert(path)
        self.assertEqual(found, dict(expected.found))
        self.assertTrue(all(own >= 0 for _, own in expected.found.values()))
        for key in ("calls", "skipped_steps", "skipped_no_time", "skipped_backwards", "clipped_calls", "unknown_names"):
            self.assertGreater(expected.counts[key], 0, key)
            self.assertEqual(profile.facts[key], expected.counts[key], key)
        self.assertEqual(profile.facts["too_deep"], 0)
        kept = expected.counts["calls"] - sum(expected.counts[key] for key in expected.counts if key.startswith("skipped"))
        self.assertEqual(sum(count for count, _ in found.values()), kept)

    def test_from_standard_input_and_packed(self):
        path = self.path("a.db")
        make_ascend.make(path, 3000)
        plain = self.convert(path)[1]
        with open(path, "rb") as file:
            self.assertEqual(self.convert("-", stdin=file)[1], plain)
        with open(path, "rb") as file, gzip.open(path + ".gz", "wb") as packed:
            packed.write(file.read())
        self.assertEqual(self.convert(path + ".gz")[1], plain)
        scratch = self.path("scratch")
        os.mkdir(scratch)
        self.assertEqual(self.convert(path + ".gz", env=dict(os.environ, TMPDIR=scratch))[1], plain)
        self.assertEqual(os.listdir(scratch), [])

    def test_nothing_is_written_beside_it(self):
        path = self.path("a?b#c %41.db")
        make_ascend.make(path, 100)
        os.chmod(path, 0o400)
        before = os.stat(path).st_mtime_ns
        self.convert(path)
        self.assertEqual(os.listdir(self.folder), [os.path.basename(path)])
        self.assertEqual(os.stat(path).st_mtime_ns, before)

    def test_by_hand(self):
        """Two calls in one, one that overlaps its end, one behind it, one in another thread; times as text."""
        path = self.make("""
            CREATE TABLE STRING_IDS (id INTEGER, value TEXT);
            CREATE TABLE PYTORCH_API (startNs TEXT, endNs TEXT, globalTid INTEGER, name INTEGER);
            INSERT INTO STRING_IDS VALUES (1, 'main.py(1): main'), (2, 'aten::add'), (3, 'aclnnAdd');
            INSERT INTO PYTORCH_API VALUES ('100', '200', 42949672970, 1), ('110', '120', 42949672970, 2), ('112', '118', 42949672970, 3),
                ('190', '210', 42949672970, 2), ('200', '205', 42949672970, 2), ('5', '6', 42949672971, 3);""")
        profile, found = self.convert(path)
        first, second = 10 << 32 | 10, 10 << 32 | 11
        main, add, acl = ("main.py(1): main", "<python>"), ("aten::add", "<python_framework>"), ("aclnnAdd", "<cann>")
        self.assertEqual(found, {
            (first, (main,)): [1, 80],
            (first, (main, add)): [2, 10 - 6 + 10],
            (first, (main, add, acl)): [1, 6],
            (first, (add,)): [1, 5],
            (second, (acl,)): [1, 1],
        })
        self.assertEqual(profile.facts["clipped_calls"], 1)

    def test_older_files(self):
        """Without threads; without a key; names in another case."""
        path = self.make("""
            CREATE TABLE string_ids (ID INTEGER, VALUE TEXT);
            CREATE TABLE pytorch_api (STARTNS INTEGER, ENDNS INTEGER, NAME INTEGER);
            INSERT INTO string_ids VALUES (1, 'f'), (1, 'again');
            INSERT INTO pytorch_api VALUES (1, 5, 1), (2, 3, NULL);""")
        self.assertEqual(self.collapsed(path), ["# value: time, in nanoseconds", "f (<unknown>:0) 3", "f (<unknown>:0);unknown (<unknown>:0) 1"])

    def test_deep_nesting_is_said(self):
        path = self.make("CREATE TABLE STRING_IDS (id INTEGER PRIMARY KEY, value TEXT); INSERT INTO STRING_IDS VALUES (1, 'f');"
                         "CREATE TABLE PYTORCH_API (startNs INTEGER, endNs INTEGER, globalTid INTEGER, name INTEGER);")
        with sqlite3.connect(path) as db:
            db.executemany("INSERT INTO PYTORCH_API VALUES (?, ?, 1, 1)", ((i, 10000 - i) for i in range(1500)))
        db.close()
        profile, found = self.convert(path)
        self.assertEqual(profile.facts["too_deep"], 500)
        self.assertEqual(max(len(stack) for _, stack in found), 1000)
        self.assertEqual(sum(own for _, own in found.values()), 10000)

    def test_wrong_files_are_refused_in_one_line(self):
        other = self.make("CREATE TABLE t (x); INSERT INTO t VALUES (1);", "other.db")
        self.assert_error(self.sampled("convert", other, "-o", "x.html"), cli.FAILED, "no table PYTORCH_API")
        view = self.make(
            "CREATE TABLE STRING_IDS (id, value); CREATE VIEW PYTORCH_API AS WITH RECURSIVE c(x) AS (VALUES (1) UNION ALL "
            "SELECT x + 1 FROM c) SELECT x AS startNs, x + 1 AS endNs, 1 AS globalTid, 1 AS name FROM c;", "view.db")
        self.assert_error(self.sampled("convert", view, "-o", "x.html"), cli.FAILED, "no table PYTORCH_API")
        columns = self.make("CREATE TABLE STRING_IDS (id, value); CREATE TABLE PYTORCH_API (startNs);", "columns.db")
        self.assert_error(self.sampled("convert", columns, "-o", "x.html"), cli.FAILED, "no column endNs")
        with open(self.path("text.db"), "w") as file:
            file.write("just a text\n" * 100)
        self.assert_error(self.sampled("convert", "text.db", "-o", "x.html"), cli.FAILED, "text.db")

    def test_damaged_files_are_refused_in_one_line(self):
        path = self.path("a.db")
        make_ascend.make(path, 3000)
        with open(path, "rb") as file:
            whole = file.read()
        for bytes_ in (17, 99, 100, 4096, len(whole) // 2, len(whole) - 1):
            with open(self.path("cut.db"), "wb") as file:
                file.write(whole[:bytes_])
            self.assert_error(self.sampled("convert", "cut.db", "-o", "x.html"), cli.FAILED, "SQLite")
        for head in (whole[:16] + b"\xff" * 84, whole[:16] + bytes(84)):
            with open(self.path("bogus.db"), "wb") as file:
                file.write(head + whole[100:])
            self.assert_error(self.sampled("convert", "bogus.db", "-o", "x.html"), cli.FAILED, "SQLite")
        with open(self.path("big.db"), "wb") as file:
            file.write(whole)
            file.truncate((10 << 30) + 1)
        self.assert_error(self.sampled("convert", "big.db", "-o", "x.html"), cli.FAILED, "larger than 10240 MiB")

    def test_a_log_that_is_not_read_is_said(self):
        path = self.path("a.db")
        make_ascend.make(path, 500)
        with open(path + "-wal", "wb") as file:
            file.write(b"x")
        self.assertEqual(self.convert(path)[0].facts["unread_log"], 1)

    def test_time_order_is_refused(self):
        path = self.path("a.db")
        make_ascend.make(path, 500)
        self.assert_error(self.sampled("convert", path, "--from", "1", "-o", "x.html"), cli.USAGE, "no time order")


if __name__ == "__main__":
    unittest.main()
