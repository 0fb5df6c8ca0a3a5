# SPDX-License-Identifier: Apache-2.0
"""What threads were seen doing, on programs whose threads do one thing each. Shares are of a thread's sampled time."""
import itertools
import json
import os
import re
import resource
import signal
import subprocess
import unittest

import cli
import htmlprofile
import support

SECONDS = 3


def shares(thread):
    return {value: round(thread.share(value), 3) for value in ("gil", "gil_wait", "runnable", "idle", "unknown")}


@support.each_python
class Status(unittest.TestCase):
    """Sample by sample, in programs of which each thread can be seen in one state only. How the GIL is shared between threads that fight for it: tests/bench/bounds."""

    def profile(self, target, rate=500):
        page = target.path("out.html")
        done = support.sampled("attach", target.pid, "-d", SECONDS, "-r", rate, "-f", "flamegraph", "-o", page)
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(page, "rb") as file:
            return htmlprofile.Profile(file.read())

    def assert_always(self, thread, *values):
        """All its samples, but what may be told of another instant than the stack, count as each of the values."""
        for value in values:
            self.assertGreater(thread.share(value), 0.9, "%s is always %s: %r" % (thread.name, value, shares(thread)))

    def assert_never(self, thread, *values):
        for value in values:
            self.assertLess(thread.share(value), 0.05, "%s is never %s: %r" % (thread.name, value, shares(thread)))

    def assert_whole(self, thread):
        """Idle and unknown exclude what they must."""
        self.assertLessEqual(thread.total("gil") + thread.total("gil_wait") + thread.total("idle"), thread.total("wall"))
        self.assertLessEqual(thread.total("runnable") + thread.total("idle") + thread.total("unknown"), thread.total("wall"))

    @support.on(support.each_version)
    def check_gil_fight(self, python):
        """Four threads that always want the GIL: each has it at times and waits for it else, and only one at a time has it."""
        with support.Target(python, "gilfight.py", "@/table") as target:
            profile = self.profile(target)
        threads = [profile.thread(int(tid)) for tid in target.facts["threads"]]
        for thread in threads:
            self.assert_whole(thread)
            self.assert_never(thread, "idle")
            self.assertGreater(thread.total("gil"), 0)
            self.assertGreater(thread.total("gil_wait"), 0)
        self.assertLessEqual(sum(thread.share("gil") for thread in threads), 1.03, "only one thread holds the GIL")

    @support.on(support.each_version)
    def check_status(self, python):
        """One burns, one sleeps, one waits for a lock, and C code with the GIL released keeps a core busy."""
        natives = max(1, (os.cpu_count() or 1) - 1)
        with support.Target(python, "status.py", "@/table", natives) as target:
            profile = self.profile(target)
        for tid, name in target.facts["threads"].items():
            thread = profile.thread(int(tid))
            self.assertEqual(thread.name, name)
            self.assert_whole(thread)
            if name == "burner":
                self.assert_always(thread, "gil", "runnable")
                self.assert_never(thread, "idle")
            elif name in ("sleeper", "waiter"):
                self.assert_always(thread, "idle")
                self.assert_never(thread, "gil", "gil_wait", "runnable")
            else:
                # It is in C without the GIL, or wants it: which of them how often is the machine's affair.
                self.assert_never(thread, "idle")
                self.assertGreater(thread.total("runnable"), 0)
        self.assertEqual(
            sum(thread.total("unknown") for thread in profile.threads), 0, "this machine tells whether a thread runs"
        )

    @support.on(support.few)
    def check_modes(self, python):
        """--mode gil and cpu, --no-idle and -t count what they say."""
        with support.Target(python, "status.py", "@/table") as target:
            tids = {name: int(tid) for tid, name in target.facts["threads"].items()}
            shares = {}
            for key, options in {
                "wall": [], "gil": ["--mode", "gil"], "cpu": ["--mode", "cpu"], "busy": ["--no-idle"],
                "one": ["-t", "sleeper"], "tid": ["-t", str(tids["burner"])],
            }.items():
                page = target.path("out.html")
                done = support.sampled("attach", target.pid, "-d", "1", "-r", "500", "-o", page, *options)
                self.assertEqual(done.returncode, 0, done.stderr)
                with open(page, "rb") as file:
                    profile = htmlprofile.Profile(file.read())
                # Of the ticks that there were: a busy machine has fewer than were asked for.
                shares[key] = {
                    thread.name: thread.total("samples") / profile.facts["ticks"]
                    for thread in profile.threads
                    if thread.total("samples")
                }
        for key, name in (
            ("wall", "burner"), ("wall", "sleeper"), ("wall", "native 0"), ("gil", "burner"), ("cpu", "burner"),
            ("cpu", "native 0"), ("busy", "native 0"), ("one", "sleeper"), ("tid", "burner"),
        ):
            self.assertGreater(shares[key].get(name, 0), 0.5, "%s in a profile of %s: %r" % (name, key, shares))
        for key, name in (("gil", "sleeper"), ("gil", "waiter"), ("cpu", "sleeper"), ("cpu", "waiter"), ("busy", "waiter")):
            self.assertNotIn(name, shares[key], "in a profile of " + key)
        self.assertEqual(set(shares["one"]), {"sleeper"})
        self.assertEqual(set(shares["tid"]), {"burner"})

    @support.on(support.few)
    def check_what_options_leave_out(self, python):
        """Samples that options leave out were taken; a name that no thread has is told, with those that there are, and is a failure."""
        with support.Target(python, "status.py", "@/table") as target:
            recording = target.path("out.sampled")
            done = support.sampled("attach", target.pid, "-d", "1", "--mode", "exception", "-f", "jsonl", "-o", target.path("out.jsonl"))
            self.assertEqual(done.returncode, 0, done.stderr)
            whole = support.sampled("attach", target.pid, "-d", "1", "-f", "collapsed", "-o", target.path("out.collapsed"), "--record", recording)
            self.assertEqual(whole.returncode, 0, whole.stderr)
            with open(target.path("out.jsonl"), encoding="utf-8") as file:
                facts = json.loads(file.readline())["facts"]
            self.assertEqual((facts["in_profile"], facts["filtered"]), (0, facts["samples"]))
            self.assertRegex(done.stderr.decode(), r"the profile is empty: [\d,]+ samples were taken, and options leave out all")
            not_sampled = re.search(r"([\d.]+) %\)? of thread time", done.stderr.decode())
            self.assertLess(float(not_sampled.group(1)) if not_sampled else 0, 99, done.stderr)
            wrong = support.sampled("attach", target.pid, "-d", "1", "-t", "slepeer", "-o", target.path("out.html"))
            reported = support.sampled("report", recording, "--thread", "burner ")
        self.assertEqual(wrong.returncode, 1, wrong.stderr)
        self.assertRegex(wrong.stderr.decode(), r"-t slepeer: there was no such thread \(is it sleeper\? threads: .*burner")
        self.assertEqual(reported.returncode, 1, reported.stderr)
        self.assertRegex(reported.stderr.decode(), r"-t burner : there was no such thread \(is it burner\? threads: .*sleeper")


LATER = """
import sys, threading, time
print("ready", flush=True)
sys.stdin.readline()
threading.Thread(target=time.sleep, args=(600,), name="late", daemon=True).start()
sys.stdin.readline()
"""


@support.needs_python
class ThreadsAskedFor(cli.Folder):
    def test_a_thread_that_is_not_there_yet_is_noted_and_waited_for(self):
        target = subprocess.Popen(support.newest().argv + ["-c", LATER], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        target.stdout.readline()
        process = support.start_sampled("attach", target.pid, "-t", "lafe", "-t", "late", "-f", "collapsed", "-o", "a.txt", cwd=self.folder)
        try:
            noted = [process.stderr.readline().decode() for _ in range(2)]
            for name, line in zip(("lafe", "late"), noted):
                self.assertIn("-t %s: no such thread so far, waiting for it (" % name, line)
            target.stdin.write(b"\n")
            target.stdin.flush()
            snapshots = self.snapshots(process)
            support.wait_until(lambda: cli.samples_in(self.path(next(snapshots))) > 0, "the thread is sampled")
            process.send_signal(signal.SIGINT)
            said = process.communicate(timeout=60)[1].decode()
        finally:
            target.kill()
            target.communicate()
            process.kill()
        self.assertEqual(process.returncode, cli.FAILED, said)
        self.assertIn("-t lafe: there was no such thread (is it late? threads: MainThread, late)", said)
        self.assertNotIn("-t late:", said)

    def snapshots(self, process):
        for number in itertools.count(1):
            name = "a.%04d.txt" % number
            process.send_signal(signal.SIGUSR1)
            support.wait_until(lambda: os.path.exists(self.path(name)), name)
            yield name


IDLE_THREADS = """
import threading, time
for i in range(150):
    threading.Thread(target=threading.Event().wait, daemon=True).start()
print("ready", flush=True)
time.sleep(60)
"""


@support.needs_python
class ManyThreads(unittest.TestCase):
    def test_a_low_soft_limit_on_open_files_hides_no_state(self):
        """Descriptors are kept for each thread: more than the soft limit, which is raised, lets us have."""
        target = subprocess.Popen(support.newest().argv + ["-c", IDLE_THREADS], stdout=subprocess.PIPE)
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        try:
            self.assertEqual(target.stdout.readline(), b"ready\n")
            process = support.start_sampled(
                "attach", target.pid, "-d", "1", "-r", "50", "-f", "collapsed", "-o", "-",
                preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (64, hard)),
            )
            _out, error = process.communicate(timeout=60)
        finally:
            target.kill()
            target.wait()
            target.stdout.close()
        self.assertEqual(process.returncode, 0, error)
        self.assertRegex(error.decode(), "time +.*idle")
        self.assertNotRegex(error.decode(), "unknown")


if __name__ == "__main__":
    unittest.main()
