# SPDX-License-Identifier: Apache-2.0
"""The profilers that are measured: how each is started, and what its own report says.

A sample here is a snapshot of the whole process; a tool that counts threads is divided by their number. `parse` gives
snapshots (in all), seconds (in which it sampled) and good (the share of them that the tool did not itself call failed)."""
import os
import re

import stacks

UNTHROTTLED = 0  # as a rate
LIMIT = "bare loop"
SAME_LINES = "bare loop, same lines"
# What stands for "as fast as it can" where a tool wants a number.
VERY_HIGH_HZ = 1_000_000
SCALES = {"": 1.0, "k": 1e3, "M": 1e6}


class Unreadable(Exception):
    """A tool's report is not what it was written for."""


def number(text):
    return float(text.replace(",", ""))


def find(pattern, text):
    match = re.search(pattern, text)
    if not match:
        raise Unreadable("no %r in %r" % (pattern, text[-400:]))
    return match.groups()


class Tool:
    """name: in tables. lead_s: after this much it certainly samples. interrupt: it is ended by SIGINT, not by its own clock.
    holds: it stops the target. stacks: how to read what it writes, or None."""

    name = ""
    stacks = None
    lead_s = 0.3
    interrupt = False
    holds = False
    whole_seconds = False

    def missing(self):
        """Why it cannot be measured, or None."""
        return None

    def can_read(self, _python):
        return True


class Bare(Tool):
    """The loops of limit.c: sleeping to deadlines at a rate, reading the target at none. What is left of a machine when a
    profiler does nothing but what it must; as for the target, what it loses to having a neighbour at all."""

    name = LIMIT
    # What one snapshot has to copy, in pieces of so many bytes: each thread's head and its frames.
    pieces = {"rec200": [256, 16384], "threads16": [256, 1024] * 16}
    pieces_default = [256, 1024]

    def __init__(self, program):
        self.program = program

    def missing(self):
        return None if os.access(self.program, os.X_OK) else "%s was not built" % self.program

    def command(self, target, rate_hz, seconds, output):
        if rate_hz != UNTHROTTLED:
            return [self.program, "sleep", str(rate_hz), "%g" % seconds]
        address, pieces = target.heap(), []
        for size in self.pieces.get(target.name, self.pieces_default):
            pieces.append("%x:%d" % (address, size))
            address += max(size, 4096)
        return [self.program, "read", "%g" % seconds, str(target.pid)] + pieces

    def parse(self, text, _threads):
        (wall_ns,) = find(r"wall_ns=(\d+)", text)
        (snapshots,) = find(r"(?:ticks|reads)=(\d+)", text)
        return {"snapshots": int(snapshots), "seconds": int(wall_ns) / 1e9}


class SameLines(Bare):
    """These loops, reading the very lines that a sampler has to copy, which the target stores to all the time: what it loses by that alone."""

    name = SAME_LINES

    def command(self, target, rate_hz, seconds, output):
        how = ["read"] if rate_hz == UNTHROTTLED else ["sleep", str(rate_hz)]
        return [self.program] + how + ["%g" % seconds, str(target.pid)] + ["%x:%d" % piece for piece in target.copied()]

    def parse(self, text, threads):
        (fell_short,) = find(r"short=(\d+)", text)
        if fell_short != "0":
            raise Unreadable("%s of its reads fell short" % fell_short)
        return super().parse(text, threads)


class Sampled(Tool):
    name = "sampled"
    stacks = stacks.SAMPLED

    def __init__(self, program):
        self.program = program

    def command(self, target, rate_hz, seconds, output):
        rate = "max" if rate_hz == UNTHROTTLED else str(rate_hz)
        return [self.program, "attach", str(target.pid), "-v", "-r", rate, "-d", "%g" % seconds, "-f", "collapsed", "-o", output]

    def parse(self, text, _threads):
        reached, scale = find(r"reached ([\d.,]+) ([kM]?)Hz", text)
        tried, taken = find(r"tried +([\d,]+): taken ([\d,]+)", text)
        minutes, amount, unit = find(r"samples of [\d,]+ threads? in (?:(\d+) m )?([\d.]+) (s|ms)\b", text)
        seconds = 60 * int(minutes or 0) + float(amount) * (1e-3 if unit == "ms" else 1)
        snapshots = number(reached) * SCALES[scale] * seconds
        return {"snapshots": snapshots, "seconds": seconds, "good": number(taken) / max(number(tried), 1)}

    def missing(self):
        return None if os.access(self.program, os.X_OK) else "%s was not built" % self.program


class Tachyon(Tool):
    """profiling.sampling of Python 3.15, which reads its own minor version only and lives in the target's root."""

    name = "Tachyon"
    stacks = stacks.TACHYON
    lead_s = 0.7
    whole_seconds = True
    extra = []

    def __init__(self, python):
        self.python = python

    def missing(self):
        return None if self.python else "no Python 3.15 (tests/bench/setup-peers tachyon)"

    def can_read(self, python):
        return python is self.python

    def command(self, target, rate_hz, seconds, output):
        module = ["-m", "profiling.sampling", "attach", "-a", "-r", str(rate_hz or VERY_HIGH_HZ), "-d", "%d" % seconds]
        return self.python.argv + module + self.extra + ["--collapsed", "-o", self.python.seen_from_inside(output), str(target.pid)]

    def parse(self, text, _threads):
        snapshots, seconds = find(r"Captured ([\d,]+) samples? in ([\d.]+) seconds", text)
        (failed,) = find(r"Error rate: ([\d.]+)", text)
        return {"snapshots": number(snapshots), "seconds": float(seconds), "good": 1 - float(failed) / 100}


class TachyonBlocking(Tachyon):
    """Stops the target for each sample."""

    name = "Tachyon --blocking"
    extra = ["--blocking"]
    holds = True


class Austin(Tool):
    """Finds the interpreter by its path, so a target in another root is none to it."""

    name = "Austin"
    stacks = stacks.AUSTIN
    whole_seconds = True

    def __init__(self, program):
        self.program = program

    def missing(self):
        return None if os.access(self.program, os.X_OK) else "not there (tests/bench/setup-peers austin)"

    def can_read(self, python):
        return python.version < (3, 14) and not python.root

    def command(self, target, rate_hz, seconds, output):
        interval_us = 1e6 / (rate_hz or VERY_HIGH_HZ)
        return [self.program, "-i", "%dus" % interval_us, "-x", "%d" % seconds, "-o", output, "-p", str(target.pid)]

    def parse(self, text, threads):
        (seconds,) = find(r"Sampling duration : ([\d.]+) s", text)
        failed, samples = find(r"Error rate : (\d+)/(\d+)", text)
        good = 1 - int(failed) / max(int(samples), 1)
        return {"snapshots": int(samples) / threads, "seconds": float(seconds), "good": good}


class PySpy(Tool):
    """Without pauses, as the others. It makes up ticks that it missed, for minutes if need be, so it is interrupted."""

    name = "py-spy"
    stacks = stacks.PY_SPY
    interrupt = True

    def __init__(self, program):
        self.program = program

    def missing(self):
        return None if os.access(self.program, os.X_OK) else "not there (tests/bench/setup-peers py-spy)"

    def can_read(self, python):
        return python.version < (3, 14)

    def command(self, target, rate_hz, _seconds, output):
        how = ["--nonblocking", "--threads", "--idle", "--full-filenames", "-r", str(rate_hz or VERY_HIGH_HZ), "-f", "raw", "-o", output]
        return [self.program, "record"] + how + ["-p", str(target.pid)]

    def parse(self, text, threads):
        samples, failed = find(r"Samples: (\d+) Errors: (\d+)", text)
        tried = int(samples) + int(failed)
        return {"snapshots": tried / threads, "seconds": None, "good": int(samples) / max(tried, 1)}
