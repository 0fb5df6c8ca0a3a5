# SPDX-License-Identifier: Apache-2.0
"""Stops cannot hurt: whatever becomes of sampled, and whatever the target does meanwhile, it goes on, is held by nobody, and loses nothing.
SAMPLED_LONG=1: 200 kills, a minute of waits, all oracles."""
import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import time
import unittest

import native
import stopping
import support

sys.path.insert(0, os.path.join(support.TOP, "tests", "oracle"))
import workloads  # noqa: E402

LONG = os.environ.get("SAMPLED_LONG") == "1"
KILLS = 200 if LONG else 20
WAIT_S = 60 if LONG else 10
MODES = ("--blocking", "--native")
ORACLES = tuple(workloads.WORKLOADS) if LONG else ("tree", "middle", "generators", "threads")
ENDING = ("threads",)  # of which threads end
ORACLE_S = 10 if LONG else 1.5
BESIDE_S = 60 if LONG else 3


class Stops(unittest.TestCase):
    def setUp(self):
        if not support.pythons():
            self.skipTest("no supported Python was found")
        native.modules()

    def each_mode(self, check, *args):
        for mode in MODES:
            with self.subTest(mode=mode):
                check(mode, *args)

    def attach(self, target, mode, seconds, rate="1000"):
        """The facts of an attach that ends well and leaves nothing behind."""
        profile, _summary = native.profile(target, seconds, mode, rate=rate)
        self.assertEqual(stopping.harm(target.pid), "")
        return profile.facts

    def start(self, target, mode, rate="max", seconds=3600, *options):
        """sampled, at work on the target until it is killed or done."""
        process = support.start_sampled("attach", target.pid, mode, "-r", rate, "-d", seconds, "-f", "collapsed", "-o", target.path("out"), *options,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        self.addCleanup(end, process)
        return process


def end(process):
    process.kill()
    process.wait()
    if process.stderr:
        process.stderr.close()


class Killed(Stops):
    def test_kill(self):
        """kill -9 at a random moment: within a moment no thread is stopped or held, and all that worked works on."""
        self.each_mode(self.kill)

    def kill(self, mode):
        moments = random.Random(len(mode))
        with stopping.target("work") as target:
            facts = self.attach(target, mode, 1, rate="max")
            self.assertGreater(facts["stops"], 0, "kills are to meet stops")
            for number in range(KILLS):
                process = self.start(target, mode)
                time.sleep(moments.uniform(0.02, 0.4))
                self.assertIsNone(process.poll(), process.poll() is not None and process.stderr.read())
                end(process)
                support.wait_until(lambda: not stopping.harm(target.pid), "kill %d: %s" % (number, stopping.harm(target.pid)))
                stopping.goes_on(target, (0, 1))
            self.assertEqual(target.counted(2, 1), 0, "the thread that waits was woken")


class Stopped(Stops):
    def test_stopped_before(self):
        self.each_mode(self.stopped_before)

    def stopped_before(self, mode):
        """A target that SIGSTOP stopped stays so, during and after, and runs on at SIGCONT."""
        with stopping.target("work") as target:
            os.kill(target.pid, signal.SIGSTOP)
            support.wait_until(lambda: all(state == "T" for state, _ in stopping.threads(target.pid).values()), "it is stopped")
            process = self.start(target, mode, "1000", 1)
            seen, before = set(), stopping.words(target)
            while process.poll() is None:
                seen |= {state for state, _ in stopping.threads(target.pid).values()}
                time.sleep(0.002)
            self.assertEqual((process.returncode, seen), (0, {"T"}), process.stderr.read())
            self.assertEqual(set(stopping.threads(target.pid).values()), {("T", 0)})
            self.assertEqual(stopping.words(target), before, "something ran")
            os.kill(target.pid, signal.SIGCONT)
            stopping.goes_on(target, (0, 1))

    def test_stopped_meanwhile(self):
        self.each_mode(self.stopped_meanwhile)

    def stopped_meanwhile(self, mode):
        """SIGSTOP among stops of ours is not forgotten, nor is SIGCONT."""
        with stopping.target("work") as target:
            process = self.start(target, mode)
            support.wait_sampling(process)
            for _ in range(50 if LONG else 10):
                os.kill(target.pid, signal.SIGSTOP)
                support.wait_until(lambda: all(state == "T" for state, _ in stopping.threads(target.pid).values()), "all threads are stopped")
                before = stopping.words(target)
                time.sleep(0.05)
                self.assertEqual(stopping.words(target), before, "something ran")
                os.kill(target.pid, signal.SIGCONT)
                stopping.goes_on(target, (0, 1))
            process.send_signal(signal.SIGINT)
            self.assertEqual(process.wait(support.PATIENCE_S), 0, process.stderr.read())
            self.assertEqual(stopping.harm(target.pid), "")


class Traced(Stops):
    def test_traced_before(self):
        """One line that says who holds it, exit 4; and nothing is changed for who does. Sampling without stops works beside it."""
        with stopping.target("work") as target, stopping.traced(target.pid) as tracer:
            for mode in MODES:
                with self.subTest(mode=mode):
                    done = support.sampled("attach", target.pid, mode, "-d", "1", "-o", "-", "-f", "collapsed")
                    error = done.stderr.decode()
                    self.assertEqual((done.returncode, done.stdout, error.count("\n")), (4, b"", 1), error)
                    self.assertRegex(error, r"^sampled: cannot attach to process %d: process %d traces it.*\(.*\)$" % (target.pid, tracer.pid))
            self.assertEqual({found[1] for found in stopping.threads(target.pid).values()}, {tracer.pid})
            self.assertEqual(support.sampled("attach", target.pid, "-d", "0.3", "-o", "-", "-f", "collapsed").returncode, 0)
            stopping.goes_on(target, (0, 1))

    def test_traced_meanwhile(self):
        self.each_mode(self.traced_meanwhile)

    def traced_meanwhile(self, mode):
        """A debugger that comes while we sample gets the process, and we go on without stops, which is counted."""
        with stopping.target("work") as target:
            output = target.path("out.jsonl")
            process = support.start_sampled("attach", target.pid, mode, "-r", "200", "-f", "jsonl", "-o", output)
            self.addCleanup(end, process)
            support.wait_sampling(process)
            with stopping.traced(target.pid):
                support.wait_sampling(process)
                stopping.goes_on(target, (0, 1))
            process.send_signal(signal.SIGINT)
            self.assertEqual(process.wait(support.PATIENCE_S), 0, process.stderr.read())
            process.stdout.close()
            facts = native.Profile(output).facts
            self.assertGreater(facts["stops_given_up"], 0, facts)
            self.assertGreater(facts["stops"], 0, facts)
            self.assertEqual(stopping.harm(target.pid), "")
            stopping.goes_on(target, (0, 1))


class Refused(Stops):
    def test_filtered(self):
        """A seccomp filter that forbids ptrace: refused at the start, with the reason. Without stops all is as ever."""
        with stopping.target("work") as target:
            for command in (("attach", target.pid, "-d", "1", "-f", "collapsed", "-o", "-"), ("dump", target.pid), ("run", "--", "true")):
                for mode in MODES:
                    with self.subTest(command=command[0], mode=mode):
                        done = self.filtered(command[0], mode, *command[1:])
                        self.assertEqual((done.returncode, done.stdout), (125 if command[0] == "run" else 4, b""), done.stderr)
                        self.assertRegex(done.stderr.decode(), r"^sampled: cannot .*: a seccomp filter forbids sampled to stop threads \(.*\)\n$")
            self.assertEqual(self.filtered("attach", target.pid, "-d", "0.3", "-f", "collapsed", "-o", "-").returncode, 0)
            self.assertIn(b"threads cannot be stopped", self.filtered("doctor").stdout)

    def filtered(self, *args):
        return subprocess.run([support.SAMPLED, *map(str, args)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              preexec_fn=stopping.forbid_ptrace, timeout=support.PATIENCE_S)

    def test_none_ended(self):
        """A debugger holds the process at the end, so that samples still wait for stops: no thread has ended, and none is said to have."""
        for mode in MODES:
            with self.subTest(mode=mode), stopping.target("work") as target:
                output = target.path("out.jsonl")
                process = support.start_sampled("attach", target.pid, mode, "-r", "2000", "-f", "jsonl", "-o", output)
                self.addCleanup(end, process)
                support.wait_sampling(process)
                with stopping.traced(target.pid):
                    support.wait_sampling(process)
                    process.send_signal(signal.SIGINT)
                    self.assertEqual(process.wait(support.PATIENCE_S), 0)
                process.stdout.close()
                facts = native.Profile(output).facts
                self.assertGreater(facts["stops_given_up"], 0, facts)
                self.assertEqual(facts["lost_gone"], 0, facts)


class Waits(Stops):
    def check(self, mode, milliseconds, seconds):
        """(ended, interrupted) of all waits, and the facts."""
        with stopping.target("waiting", milliseconds) as target:
            try:
                facts = self.attach(target, mode, seconds)
                self.assertIn(target.state(), "RSD")
                return sum(target.counted(row) for row in (1, 2, 3)), sum(target.counted(row, 1) for row in (1, 2, 3)), facts
            finally:
                subprocess.run(["ipcrm", "-s", str(target.counted(2, 2))], check=False, stderr=subprocess.DEVNULL)

    def test_waits_are_not_interrupted(self):
        """epoll_wait, semtimedop and sigtimedwait, which a stop ends with EINTR: none ends while they wait, though another thread is stopped."""
        for mode in MODES:
            with self.subTest(mode=mode):
                ended, interrupted, facts = self.check(mode, 1000000000, WAIT_S if mode == "--blocking" else WAIT_S / 2)
                self.assertEqual((ended, interrupted), (0, 0), facts)
                self.assertGreater(facts["stops"], 0, facts)

    def test_what_is_interrupted_is_counted(self):
        """Waits of 2 ms: between looking at a thread and stopping it, it may begin to wait. That is counted."""
        for mode in MODES:
            with self.subTest(mode=mode):
                ended, interrupted, facts = self.check(mode, 2, 3)
                self.assertGreater(ended, 0)
                self.assertLessEqual(interrupted, facts["eintr_risk"], facts)


class Signals(Stops):
    STRETCH_S = 3 if LONG else 1

    def test_signals(self):
        self.each_mode(self.signals)

    def signals(self, mode):
        """1,000 queued signals a second, SIGUSR1 and a timer: none of those that queue is lost, and the others come. (How late they are: tests/bench/bounds.)"""
        with stopping.target("signals", "@/taken") as target:
            numbers = (target.facts["realtime"], int(signal.SIGUSR1), int(signal.SIGALRM))
            found = self.stretch(target, mode, numbers, [])
            self.assertEqual(stopping.harm(target.pid), "")
        self.assertEqual(found["taken"][numbers[0]][0], found["sent"][numbers[0]], "queued signals")
        for number in numbers[1:]:
            self.assertGreater(found["taken"][number][0], 0, "signal %d, of which the kernel keeps one" % number)

    def stretch(self, target, mode, numbers, options):
        """What was sent and taken in a second, with sampling where there is a mode."""
        path = target.path("taken")
        process = self.start(target, mode, "1000", 3600, *options) if mode else None
        if process:
            support.wait_sampling(process)
        stopping.taken(target, path, numbers)
        stolen = stopping.stolen()
        sent = stopping.send_queued(target.pid, numbers[:2], self.STRETCH_S)
        support.wait_until(lambda: not stopping.pending(target.pid, numbers[:1]), "it has taken those that were sent")
        found = stopping.taken(target, path, numbers)
        stolen = stopping.stolen() - stolen
        if process:
            self.assertIsNone(process.poll())
            process.send_signal(signal.SIGINT)
            self.assertEqual(process.wait(support.PATIENCE_S), 0)
        return {"sent": sent, "taken": found, "stolen": stolen}


class Lives(Stops):
    def test_exec(self):
        self.each_mode(self.exec)

    def exec(self, mode):
        """A thread other than the main one becomes a new program: the process ends as it would, and so does sampled."""
        with stopping.target("execs", 8) as target:
            process = self.start(target, mode)
            self.assertEqual(target.process.wait(support.PATIENCE_S), 7, stopping.words(target))
            error = process.communicate(timeout=support.PATIENCE_S)[1].decode()
            self.assertEqual(process.returncode, 0, error)

    def test_passing_threads(self):
        self.each_mode(self.passing_threads)

    def passing_threads(self, mode):
        """Threads that end while they are stopped, or about to be."""
        with stopping.target("passing") as target:
            facts = self.attach(target, mode, 8, rate="max")
            self.assertGreater(target.counted(0), 0)
            self.assertGreater(facts["stops"], 0, facts)
            stopping.goes_on(target)

    def test_forks(self):
        self.each_mode(self.forks)

    def forks(self, mode):
        """Children of a process that is stopped all the time run and end as they should."""
        with stopping.target("forks") as target:
            facts = self.attach(target, mode, 2, rate="max")
            self.assertGreater(target.counted(0), 0)
            self.assertEqual(target.counted(0, 1), 0, "children that ended in another way")
            self.assertGreater(facts["stops"], 0, facts)
            stopping.goes_on(target, (0, 1))


HOG = """
import os, sys
os.sched_setaffinity(0, {int(sys.argv[1])})
os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
while True: pass
"""


class GivenUp(Stops):
    def test_uninterruptible(self):
        self.each_mode(self.uninterruptible)

    def uninterruptible(self, mode):
        """A parent of vfork() cannot be stopped: it is not waited for, and goes on."""
        with stopping.target("vfork", 300) as target:
            facts = self.attach(target, mode, 1)
            self.assertGreater(facts["ticks"], 0, facts)
            stopping.goes_on(target)

    @unittest.skipUnless(os.geteuid() == 0, "only root may go before all others")
    def test_never_scheduled(self):
        self.each_mode(self.never_scheduled)

    def never_scheduled(self, mode):
        """A thread that could run and gets no CPU, since another goes before it at all times, does not come to its stop: after 5 ms it is given up, and
        does no stop later."""
        cpu = min(os.sched_getaffinity(0))
        with stopping.target("idle", cpu) as target:
            hog = subprocess.Popen([sys.executable, "-c", HOG, str(cpu)])
            try:
                time.sleep(0.2)
                facts = self.attach_among_others(target, mode)
                self.assertGreater(facts["stops_given_up"], 0, facts)
            finally:
                hog.kill()
                hog.wait()
            support.wait_until(lambda: not stopping.harm(target.pid), "nobody holds it")
            stopping.goes_on(target)

    def attach_among_others(self, target, mode):
        """As attach(); a stop may be on its way to a thread that has had no CPU yet."""
        return native.profile(target, 2, mode, rate="100")[0].facts


class Exact(Stops):
    ended_most = None  # beside other work a thread that gets no CPU does not come to its stop; tests/bench/bounds has the bound

    def pythons(self):
        found = [python for python in support.pythons() if python.version >= (3, 8)]
        old = [python for python in found if python.version < (3, 11)]
        return found if LONG else list(dict.fromkeys(old[-1:] + found[-1:]))

    def test_exact(self):
        """--blocking on programs whose true stacks are known: no impossible one, no wrong line, and none dropped."""
        for python in self.pythons():
            for name in ORACLES:
                with self.subTest(python=repr(python), oracle=name):
                    self.exact(python, name, ORACLE_S)

    def test_exact_beside_others(self):
        """The same where every CPU has other work. A thread that ends is slow to leave the kernel then, while its thread state's memory is another
        thread's already: to stop the one does not make the other stand. (It takes about a minute to meet that.)"""
        with contextlib.ExitStack() as stack:
            for cpu in sorted(os.sched_getaffinity(0)):
                burner = stack.enter_context(subprocess.Popen(["taskset", "-c", str(cpu), "sh", "-c", "while :; do :; done"]))
                stack.callback(burner.kill)
            for python in self.pythons():
                for name in ENDING:
                    with self.subTest(python=repr(python), oracle=name):
                        self.exact(python, name, BESIDE_S)

    def exact(self, python, name, seconds):
        program = workloads.Program(python, name)
        result = workloads.Result()
        try:
            rules = program.rules()
            with program:
                workloads.sample(program, rules, seconds, result, False, blocking=True)
        finally:
            program.remove()
        verdict = result.verdict
        self.assertEqual((verdict.impossible, verdict.wrong_lines), (0, 0), "of %d samples: %s" % (verdict.samples, verdict.examples))
        if name not in ENDING:  # one that has not begun, or is ending, runs no Python
            self.assertEqual(verdict.empty, 0, "a thread is shown without its frames")
        # A sample that waits for its thread to stop is lost if the thread ends first, or sampling, or the time that is given to it.
        waited = result.causes.pop("ended", 0) + result.causes.pop("torn", 0)
        if name not in ENDING and self.ended_most is not None:
            self.assertLessEqual(waited, self.ended_most)
        self.assertEqual({cause: count for cause, count in result.causes.items() if count}, {}, "of %d tried" % result.tried)


class Blocked(Stops):
    def test_blocked(self):
        self.each_mode(self.blocked)

    def blocked(self, mode):
        """A thread that waits is not stopped, and its stack is as exact as one that is: the summary says so."""
        with support.Target(support.newest(), "values.py") as target:
            target.wait_still()
            facts = self.attach(target, mode, 0.5)
        self.assertGreater(facts["samples"], 0)
        self.assertEqual(facts["near"] + facts["stops"], facts["samples"])


class Dump(Stops):
    def test_dump(self):
        """The same, once, of every thread."""
        self.each_mode(self.dump)

    def dump(self, mode):
        with stopping.target("work") as target:
            for _ in range(5):
                done = support.sampled("dump", target.pid, mode, "--json")
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertEqual(len(json.loads(done.stdout)["threads"]), 3)
                self.assertEqual(stopping.harm(target.pid), "")
            stopping.goes_on(target, (0, 1))


if __name__ == "__main__":
    unittest.main()
