# SPDX-License-Identifier: Apache-2.0
"""Whether sampling favours some functions: shares of the samples against those of the process stopped at random instants.

The truth is read by tests/oracle/truth.c, which stops the process with ptrace and follows CPython's own chain of frames; it
shares no code with the sampler's walk. Runs of both alternate, so that a program that drifts does not count as bias."""
import collections
import math
import os
import statistics
import subprocess

import judge

TRUTH = os.path.abspath(os.environ.get("SAMPLED_TRUTH", os.path.join(
    os.path.dirname(os.path.abspath(__file__)), "..", "..", "build", "tests", "oracle", "truth")))
ROUNDS = 8
SAMPLE_S = 0.5
NICE = -20  # where permitted: samples of a process that waits for a CPU are many of one instant
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


def hurry(pid, nice):
    try:
        os.setpriority(os.PRIO_PROCESS, pid, nice)
    except PermissionError:
        pass


def measure(program, rules, stops, sample):
    """sample(seconds) runs sampled and returns collapsed stacks. All that is started meanwhile inherits our priority."""
    before = os.getpriority(os.PRIO_PROCESS, 0)
    for pid in (0, program.process.pid):
        hurry(pid, NICE)
    try:
        return compare(program, rules, stops, sample)
    finally:
        hurry(0, before)


def compare(program, rules, stops, sample):
    result = Bias()
    functions, depths, true_functions, true_depths = ([collections.Counter() for _ in range(ROUNDS)] for _ in range(4))
    for turn in range(ROUNDS):
        count(sample(SAMPLE_S), functions[turn], depths[turn])
        command = [TRUTH, str(program.process.pid), str(stops // ROUNDS), str(turn + 1)]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=300)
        if done.returncode != 0:
            raise RuntimeError("truth: exit status %d: %s" % (done.returncode, done.stderr.decode()[-300:]))
        verdict = judge.judge(done.stdout, rules, program.process.pid)
        result.impossible += verdict.impossible + verdict.wrong_lines
        result.examples += verdict.examples["path"] + verdict.examples["lines"]
        count(done.stdout, true_functions[turn], true_depths[turn])
    result.stops = sum(sum(counts.values()) for counts in true_functions)
    if result.stops < stops / 2:
        raise RuntimeError("truth: most stops could not be read: %s" % done.stderr.decode()[-300:])
    result.self_points = differences(functions, true_functions, result.stops)
    result.depth_points = differences(depths, true_depths, result.stops)
    return result
