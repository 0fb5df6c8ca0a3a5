# SPDX-License-Identifier: Apache-2.0
"""Every frame of every thread: what sampled says of a parked program against what the interpreter itself says of it."""
import json
import re
import unittest

import support

TEXT_MAX = 4096  # bytes of a name or file that are kept: REC_TEXT_MAX of sampler/record.h


def plain(text):
    """A name of the target as sampled is to show it."""
    return re.sub("[\ud800-\udfff\x00-\x1f]", "\ufffd", text)


def kept(told, got):
    """Whether `got` is `told`, or its beginning with an ellipsis where it is longer than what is kept."""
    if len(told.encode()) < TEXT_MAX - 4:
        return got == told
    return got.endswith("…") and len(got.encode()) >= TEXT_MAX - 8 and told.startswith(got[:-1])


def collapsed_text(text):
    """A name as it stands in a collapsed line, where ; would end a frame."""
    return text.replace(";", ":").replace("\x7f", " ")


class Truth:
    """Threads as the target told them: {tid: (thread name, [(function, file, line)] leaf first)}."""

    def __init__(self, target):
        self.threads = {
            int(tid): (thread["name"], [tuple(frame) for frame in thread["frames"]])
            for tid, thread in target.facts["threads"].items()
        }


class Compare(unittest.TestCase):
    maxDiff = 4000

    def assert_frames(self, told, got, tid, name, clean=plain):
        """told: leaf first, as the target said; got: leaf first, as sampled said."""
        self.assertEqual(len(told), len(got), "thread %d (%s): told %r…, got %r…" % (tid, name, told[:6], got[:6]))
        for depth, (expected, found) in enumerate(zip(told, got)):
            where = "thread %d (%s), frame %d: told %.300r, got %.300r" % (tid, name, depth, expected, found)
            self.assertEqual(expected[2], found[2], where)
            self.assertTrue(kept(clean(expected[0]), found[0]), where)
            self.assertTrue(kept(clean(expected[1]), found[1]), where)


@support.each_python
class Stacks(Compare):
    def check_parked(self, python):
        with support.Target(python, "parked.py") as target:
            truth = Truth(target)
            self.compare_dump(target, truth)
            self.compare_attach(target, truth)
            self.assertIn(target.state(), "RS", "the target goes on")

    def compare_dump(self, target, truth):
        done = support.sampled("dump", target.pid, "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        dump = json.loads(done.stdout)
        threads = {thread["tid"]: thread for thread in dump["threads"]}
        self.assertLessEqual(set(truth.threads), set(threads), "a thread is missing")
        for tid, (name, frames) in truth.threads.items():
            got = [(frame["name"], frame["file"], frame["line"]) for frame in threads[tid]["frames"]]
            self.assert_frames(frames, got, tid, name)
            self.assertEqual(plain(name), threads[tid]["name"])

    def compare_attach(self, target, truth):
        done = support.sampled("attach", target.pid, "-d", "1", "-r", "200", "-f", "collapsed", "-o", "-")
        self.assertEqual(done.returncode, 0, done.stderr)
        lines = support.parse_collapsed(done.stdout)
        of_thread = {}
        for line in lines:
            of_thread.setdefault(line.tid, []).append(line)
        clean = lambda text: collapsed_text(plain(text))
        for tid, (name, frames) in truth.threads.items():
            self.assertIn(tid, of_thread, "thread %s is missing" % name)
            self.assertEqual(len(of_thread[tid]), 1, "a parked thread has one stack: %s" % name)
            line = of_thread[tid][0]
            self.assert_frames(frames, line.frames[::-1], tid, name, clean)
            self.assertEqual(clean(name), line.thread)
            self.assertGreater(line.count, 100, "of 200 ticks")

    def check_churn(self, python):
        """Threads that come and go: each stack of such a thread is one that its source allows, and none is lost track of."""
        chain = ["life", "outer", "inner"]
        with support.Target(python, "churn.py") as target:
            done = support.sampled("attach", target.pid, "-d", "3", "-r", "1000", "-f", "collapsed", "-o", "-")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn(target.state(), "RS")
        seen = 0
        for line in support.parse_collapsed(done.stdout):
            names = [name for name, _file, _line in line.frames]
            if "life" not in names:
                continue
            below = names[names.index("life"):]
            self.assertEqual(below[:3], chain[: len(below)], line.text)
            self.assertLessEqual(len(below), 3, line.text)
            self.assertEqual(names[: names.index("life")][-1].rpartition(".")[2], "run", line.text)
            seen += line.count
        self.assertGreater(seen, 1000, "samples of threads that come and go")


@support.each_python
class Interpreters(unittest.TestCase):
    def check_subinterpreters(self, python):
        with support.Target(python, "subinterp.py") as target:
            if "unavailable" in target.facts:
                self.skipTest(target.facts["unavailable"])
            done = support.sampled("attach", target.pid, "-d", "0.5", "-r", "100", "-f", "collapsed", "-o", "-")
            self.assertEqual(done.returncode, 0, done.stderr)
            lines = support.parse_collapsed(done.stdout)
        for number, interpreter in enumerate(target.facts["interpreters"]):
            names = ["<module>", "enter_%d" % number, "inside_%d" % number]
            found = [line for line in lines if [frame[0] for frame in line.frames][-3:] == names]
            self.assertEqual([line.interpreter for line in found], [interpreter], "\n".join(line.text for line in lines))


if __name__ == "__main__":
    unittest.main()
