# SPDX-License-Identifier: Apache-2.0
"""Whether sampling favours some functions: shares of the samples against those of the process stopped at random instants.

The truth is read by tests/oracle/truth.c, which stops the process with ptrace and follows CPython's own chain of frames; it
shares no code with the sampler's walk. Runs of both alternate, so that a program that drifts does not count as bias. On a busy
machine only `run --together` tells anything: else most samples are of a target that waits for a CPU, which it does at other places
than it runs."""
import collections
import contextlib
import math
import os
import select
import shutil
import signal
import statistics
import subprocess
import tempfile
import time

import judge
import support
import together

TRUTH = os.path.abspath(os.environ.get("SAMPLED_TRUTH", os.path.join(
    os.path.dirname(os.path.abspath(__file__)), "..", "..", "build", "tests", "oracle", "truth")))
ROUNDS = 4
WINDOWS = 2   # of sampling a round
SAMPLE_S = 0.5
WARM_S = 1.0  # until the calls of the program are known
CHUNK = 1000  # stops at a time: less than a second
SHOWN = 4
SIGMAS = 4.0  # the largest of some dozens of differences stays below this by chance


def applies(workload):
    """Only one thread is stopped, and names of redefined functions are too many to have shares."""
    return workload not in ("threads", "redefine")


class Bias:
    def __init__(self):
        self.self_points = []  # (difference in points, its standard deviation, function)
        self.depth_points = []
        self.stops = self.impossible = 0
        self.examples = []

    def text(self):
        return "%.2f, %.2f (%.2f beyond chance)" % (worst(self.self_points), worst(self.depth_points), self.beyond_chance())

    def beyond_chance(self):
        return max([0] + [abs(points) - SIGMAS * sigma for points, sigma, _ in self.self_points + self.depth_points])

    def details(self):
        for kind, found in (("self", self.self_points), ("depth", self.depth_points)):
            largest = sorted(found, key=lambda item: -abs(item[0]))[:SHOWN]
            yield "bias %s: %s" % (kind, ", ".join("%s %+.2f ± %.2f" % (name, points, sigma) for points, sigma, name in largest))


def worst(found):
    return max((abs(points) for points, _, _ in found), default=0)


def count(data, functions, depths):
    """Adds a run's samples up by innermost function and by depth."""
    for _tid, frames, number in judge.read_stacks(data):
        functions[frames[-1][0] if frames else "(empty)"] += number
        depths[len(frames)] += number


def shares(counts):
    total = sum(counts.values()) or 1
    return {key: number / total for key, number in counts.items()}


def differences(sampled, true, stops):
    """Points of each key: sampled less true, with its standard deviation, from how much the rounds differ among themselves; the
    stops' is at least what so few of them allow."""
    sampled, true = [shares(counts) for counts in sampled], [shares(counts) for counts in true]
    found = []
    for key in set().union(*sampled, *true):
        mean = [statistics.mean(one.get(key, 0) for one in side) for side in (sampled, true)]
        spread = [statistics.variance(one.get(key, 0) for one in side) / len(side) for side in (sampled, true)]
        chance = max(mean[1] * (1 - mean[1]), 1 / stops) / stops
        found.append((100 * (mean[0] - mean[1]), 100 * math.sqrt(spread[0] + max(spread[1], chance)), str(key)))
    return found


class Sampling:
    """sampled at work all the time; window() is what it saw within some time, at its steady state."""

    def __init__(self, program, rate):
        self.target = program.process.pid
        self.folder = tempfile.mkdtemp(prefix="sampled-bias-")
        stem = os.path.join(self.folder, "stacks.collapsed")
        self.process = subprocess.Popen(
            [support.SAMPLED, "attach", str(self.target), "-r", rate, "-f", "collapsed", "-o", stem],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
        time.sleep(WARM_S)

    def snapshot(self):
        """Stacks and their counts up to now."""
        self.process.send_signal(signal.SIGUSR1)
        if not select.select([self.process.stdout], [], [], 60)[0]:
            raise RuntimeError("sampled wrote no snapshot")
        name = b""
        while not name.endswith(b"\n"):
            piece = os.read(self.process.stdout.fileno(), 1)
            if not piece:
                raise RuntimeError("sampled ended")
            name += piece
        path = name.decode().rstrip("\n")
        with open(path, encoding="utf-8") as file:
            lines = (line.rpartition(" ") for line in file.read().split("\n")[:-1])
            counts = {stack: int(number) for stack, _, number in lines}
        os.remove(path)
        return counts

    def window(self, parallel):
        """The stacks seen in SAMPLE_S, as collapsed text."""
        with together.window(self.target, self.process.pid) if parallel else contextlib.nullcontext():
            before = self.snapshot()
            time.sleep(SAMPLE_S)
            after = self.snapshot()
        return "".join("%s %d\n" % (stack, number - before.get(stack, 0)) for stack, number in after.items()).encode()

    def stop(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()
        shutil.rmtree(self.folder, ignore_errors=True)


@contextlib.contextmanager
def one_cpu(target):
    """Target and whoever stops it on one CPU: the timer that wakes the latter interrupts the target at any instruction. From another
    CPU the stop takes microseconds to arrive, and system calls, which look for it when they return, would catch most of them."""
    before = os.sched_getaffinity(0)
    try:
        for pid in (0, target):
            os.sched_setaffinity(pid, {min(before)})
        yield
    finally:
        for pid in (0, target):
            os.sched_setaffinity(pid, before)


def stopped(program, stops, seed, parallel):
    """The stacks of the stopped process, as collapsed text."""
    target = program.process.pid
    with together.window(target) if parallel else contextlib.nullcontext(), one_cpu(target):
        command = [TRUTH, str(target), str(stops), str(seed)]
        done = subprocess.run(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=300,
            preexec_fn=together.go_first if parallel else None,  # pylint: disable=subprocess-popen-preexec-fn
        )
    if done.returncode != 0:
        raise RuntimeError("truth: exit status %d: %s" % (done.returncode, done.stderr.decode()[-300:]))
    return done.stdout


def sampled_windows(program, rate, parallel):
    """What a run of sampled saw, window by window, as collapsed text."""
    sampling = Sampling(program, rate)
    try:
        for _ in range(WINDOWS):
            yield sampling.window(parallel)
    finally:
        sampling.stop()


def measure(program, rules, stops, rate, parallel):
    """sampled's bias."""
    return compare(program, rules, stops, parallel, {"sampled": lambda: sampled_windows(program, rate, parallel)})["sampled"]


def compare(program, rules, stops, parallel, sources):
    """The bias of several profilers against the same stops: {name: Bias}. sources: {name: function that samples for a while and
    gives collapsed texts}; it is called once a round. One that gave no samples in some round is left out."""
    true = Bias()
    true_functions, true_depths = ([collections.Counter() for _ in range(ROUNDS)] for _ in range(2))
    seen = {name: tuple([collections.Counter() for _ in range(ROUNDS)] for _ in range(2)) for name in sources}
    for turn in range(ROUNDS):
        left = stops // ROUNDS
        while left > 0:
            data = stopped(program, min(left, CHUNK), turn * stops + left, parallel)
            verdict = judge.judge(data, rules, program.process.pid)
            true.impossible += verdict.impossible + verdict.wrong_lines
            true.examples += verdict.examples["path"] + verdict.examples["lines"]
            count(data, true_functions[turn], true_depths[turn])
            left -= CHUNK
        for name, source in sources.items():
            functions, depths = seen[name]
            for data in source():
                count(data, functions[turn], depths[turn])
    true.stops = sum(sum(counts.values()) for counts in true_functions)
    if true.stops < stops / 2:
        raise RuntimeError("truth: most stops could not be read")
    found = {}
    for name, (functions, depths) in seen.items():
        if all(sum(counts.values()) for counts in functions):
            result = found[name] = Bias()
            result.stops, result.impossible, result.examples = true.stops, true.impossible, true.examples
            result.self_points = differences(functions, true_functions, result.stops)
            result.depth_points = differences(depths, true_depths, result.stops)
    return found
