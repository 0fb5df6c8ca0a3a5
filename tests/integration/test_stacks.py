# SPDX-License-Identifier: Apache-2.0
"""Every frame of every thread: what sampled says of a parked program against what the interpreter itself says of it."""
import collections
import glob
import json
import os
import re
import signal
import unittest

import htmlprofile
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


def named(told, got):
    """Whether a thread's name is `told`, or its beginning with an ellipsis where it is longer than 63 bytes."""
    return got == told or len(told) > 63 and got is not None and got[-1:] == "…" and told.startswith(got[:-1]) and len(got) > 50


def collapsed_text(text):
    """A name as it stands in a collapsed line, where ; would end a frame."""
    return text.replace(";", ":").replace("\x7f", " ")


def truth(target):
    """Threads as the target told them: {tid: (thread name, [(function, file, line)] leaf first)}."""
    return {
        int(tid): (thread["name"], [tuple(frame) for frame in thread["frames"]])
        for tid, thread in target.facts["threads"].items()
    }


def frame_problem(told, got, clean):
    """What is wrong with a stack, leaf first, or None."""
    if len(told) != len(got):
        return "told %d frames %.300r…, got %d %.300r…" % (len(told), told[:4], len(got), got[:4])
    for depth, (expected, found) in enumerate(zip(told, got)):
        if expected[2] != found[2] or not kept(clean(expected[0]), found[0]) or not kept(clean(expected[1]), found[1]):
            return "frame %d: told %.300r, got %.300r" % (depth, expected, found)
    return None


@support.each_python
class Stacks(unittest.TestCase):
    def check_parked_dump(self, python):
        with support.Target(python, "parked.py") as target:
            done = support.sampled("dump", target.pid, "--json")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn(target.state(), "RSD", "the target goes on")
        got = {
            thread["tid"]: (thread["name"], [(frame["name"], frame["file"], frame["line"]) for frame in thread["frames"]])
            for thread in json.loads(done.stdout)["threads"]
        }
        self.compare(truth(target), got, plain)

    @support.on(support.each_version)
    def check_a_place_that_called_one_function_for_long_calls_others(self, python):
        """What was seen of a place does not refute what it calls later, for good."""
        ways = ("second", "third", "fourth")
        with support.Target(python, "places.py") as target:
            process = support.start_sampled("attach", target.pid, "-r", "1000", "-f", "collapsed", "-o", target.path("out.txt"))
            try:
                support.wait_until(lambda: all(self.counted(target, process)[way] for way in ways), "all are seen", said=lambda: repr(self.counts))
                process.send_signal(signal.SIGINT)
                self.assertEqual(process.wait(support.PATIENCE_S), 0)
            finally:
                process.kill()
                process.communicate()

    def counted(self, target, process):
        """How often each way was seen, by one snapshot more."""
        support.wait_sampling(process, 300)
        number = len(glob.glob(target.path("out.0*.txt"))) + 1
        path = target.path("out.%04d.txt" % number)
        process.send_signal(signal.SIGUSR1)
        support.wait_until(lambda: os.path.exists(path), path)
        self.counts = collections.Counter()
        for line in support.read_collapsed(path):
            self.counts.update({name: line.count for name in {name for name, _file, _line in line.frames}})
        return self.counts

    def check_parked_attach(self, python):
        with support.Target(python, "parked.py") as target:
            process = support.start_sampled("attach", target.pid, "-r", "200", "-f", "collapsed", "-o", "-")
            try:
                support.wait_sampling(process, 100)
                process.send_signal(signal.SIGINT)
                out, error = process.communicate(timeout=support.PATIENCE_S)
                self.assertEqual(process.returncode, 0, error)
            finally:
                process.kill()
                process.communicate()
            self.assertIn(target.state(), "RSD", "the target goes on")
        told, got, counts = truth(target), {}, {}
        for line in support.parse_collapsed(out):
            if line.tid in told:
                self.assertNotIn(line.tid, got, "a parked thread has one stack: %.2000s" % line.text)
                counts[line.tid] = line.count
            got[line.tid] = (line.thread, line.frames[::-1])
        self.assertGreater(min(counts.values()), max(counts.values()) / 2, "a parked thread has no part in most ticks")
        self.compare(told, got, lambda text: collapsed_text(plain(text)))

    def compare(self, told, got, clean):
        """Every thread that the target told of, with its name and all its frames; all that is wrong is said at once."""
        problems = []
        for tid, (name, frames) in told.items():
            if tid not in got:
                problems.append("thread %d (%s) is missing" % (tid, name))
                continue
            if not named(clean(name), got[tid][0]):
                problems.append("thread %d (%s) is named %r" % (tid, name, got[tid][0]))
            problem = frame_problem(frames, got[tid][1], clean)
            if problem:
                problems.append("thread %d (%s): %s" % (tid, name, problem))
        if problems:
            self.fail("%d of %d threads:\n%s" % (len(problems), len(told), "\n".join(problems)))

    @support.on(support.each_version)
    def check_churn(self, python):
        """Threads that come and go: each stack of such a thread is one that its source allows, and none is lost track of."""
        chain = ["life", "outer", "inner"]
        with support.Target(python, "churn.py") as target:
            done = support.sampled("attach", target.pid, "-d", "3", "-r", "1000", "-f", "collapsed", "-o", "-")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn(target.state(), "RSD")
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
        self.assertGreater(seen, 0, "samples of threads that come and go")


@support.each_python
class Interpreters(unittest.TestCase):
    def check_subinterpreters(self, python):
        with support.Target(python, "subinterp.py") as target:
            if "unavailable" in target.facts:
                self.skipTest(target.facts["unavailable"])
            for options in ((), ("--blocking",)):
                with self.subTest(options=options):
                    self.assert_inside(target, options)

    def check_busy(self, python):
        """Their threads' states are those threads', not those of who made the interpreters."""
        with support.Target(python, "subinterp.py", "busy") as target:
            if "unavailable" in target.facts:
                self.skipTest(target.facts["unavailable"])
            page = target.path("out.html")
            done = support.sampled("attach", target.pid, "-d", "1", "-f", "flamegraph", "-o", page)
            self.assertEqual(done.returncode, 0, done.stderr)
            with open(page, "rb") as file:
                threads = {(thread.interpreter, thread.tid): thread for thread in htmlprofile.Profile(file.read()).threads}
            self.assertEqual(
                set(threads), {(0, target.pid)} | set(zip(target.facts["interpreters"], target.facts["threads"])), "each system thread once"
            )
            for number, tid in enumerate(target.facts["threads"]):
                thread = threads[target.facts["interpreters"][number], tid]
                self.assertEqual((thread.name, thread.share("unknown")), ("sub %d" % number, 0))
                self.assertIn("inside_%d" % number, [node.name for node in thread.nodes])
                self.assertGreater(thread.share("gil") + thread.share("gil_wait"), 0)
            self.assertGreater(threads[0, target.pid].share("idle"), 0)

    @support.on(support.each_version)
    def check_native(self, python):
        """C frames within an interpreter that was entered from another one, and of who entered it; to 3.10 none."""
        if python.version < (3, 8) or python.root:
            self.skipTest("native stacks are for 3.8 and later, on this host")
        with support.Target(python, "subinterp.py") as target:
            if "unavailable" in target.facts:
                self.skipTest(target.facts["unavailable"])
            done = support.sampled("dump", target.pid, "--native", "--json")
            self.assertEqual(done.returncode, 0, done.stderr)
            threads = {thread["tid"]: thread for thread in json.loads(done.stdout)["threads"]}
            for number, tid in enumerate(target.facts["threads"]):
                names = [frame["name"] for frame in threads[tid]["frames"]]
                inside = names.index("inside_%d" % number)
                self.assertEqual(names[inside:][:3], ["inside_%d" % number, "enter_%d" % number, "<module>"], names)
                self.assertEqual((inside > 0, len(names) > inside + 3), (python.version >= (3, 11),) * 2, names)

    def assert_inside(self, target, options):
        done = support.sampled("attach", target.pid, "-d", "0.5", "-r", "100", "-f", "collapsed", "-o", "-", *options)
        self.assertEqual(done.returncode, 0, done.stderr)
        lines = support.parse_collapsed(done.stdout)
        text = "\n".join(line.text for line in lines)
        for number, interpreter in enumerate(target.facts["interpreters"]):
            names = ["<module>", "enter_%d" % number, "inside_%d" % number]
            found = [line for line in lines if [frame[0] for frame in line.frames][-3:] == names]
            self.assertEqual([line.interpreter for line in found], [interpreter], text)
            # All of the system thread's time is there, and under its name, though it has a state in the main interpreter, too.
            tid = target.facts["threads"][number]
            self.assertEqual([(line.interpreter, line.thread) for line in lines if line.tid == tid], [(interpreter, "sub %d" % number)], text)
        # The states that their maker left behind in them are no threads.
        self.assertEqual([line.text for line in lines if not line.frames], [], text)


if __name__ == "__main__":
    unittest.main()
