# SPDX-License-Identifier: Apache-2.0
"""The stacks that each profiler wrote, in the form of sampled's collapsed format, so that one judge reads them all.

A reader is FILE -> iterable of (thread id, 0 for unknown; frames, root first; count). Frames stay the profiler's own text until
as_sampled() translates them: on a deep stack that is most of the work. Stacks that a profiler itself calls invalid are left out:
its report counts them among its failures, and a stack that says it is none has not lied."""
import collections
import re

GC = "<GC>"


def sampled(file):
    """thread TID "NAME";FUNCTION (FILE:LINE);… COUNT"""
    for stack, count in lines(file):
        head, *frames = stack.split(";")
        yield number_in(head), frames, count


def tachyon(file):
    """tid:TID;BASENAME:FUNCTION:LINE;… COUNT; the collector's own frame is ~:<GC>:0."""
    for stack, count in lines(file):
        head, *frames = stack.split(";")
        if frames and frames[-1].startswith("~:" + GC):
            frames[-1] = GC
        yield number_in(head), frames, count


def austin(file):
    """PPID;TINTERPRETER:TID;FILE:FUNCTION:LINE;… MICROSECONDS, a line a sample; # before what it says of itself."""
    for stack, _time in lines(file):
        process, thread, *frames = stack.split(";")
        if frames and frames[0] == ":INVALID:":
            continue
        yield number_in(thread.partition(":")[2]), frames, 1


def py_spy(file):
    """thread (TID);FUNCTION (FILE:LINE);… COUNT"""
    for stack, count in lines(file):
        head, *frames = stack.split(";")
        yield number_in(head), frames, count


def lines(file):
    """(stack, count); empty lines and comments are none."""
    for line in file:
        stack, _, count = line.rstrip("\n").rpartition(" ")
        if stack and count.isdigit() and not stack.startswith("#"):
            yield stack, int(count)


def number_in(text):
    match = re.search(r"\d+", text)
    return int(match.group()) if match else 0


def function_in_parentheses(frame, _path):
    """As sampled writes it."""
    return frame


def file_first(frame, path):
    """FILE:FUNCTION:LINE, where FILE may be the last part of the program's path only."""
    if frame == GC:
        return frame
    file, function, line = frame.rsplit(":", 2)
    return "%s (%s:%s)" % (function, path if file == path.rpartition("/")[2] else file, line)


class Format:
    """How a profiler's stacks are read, and a frame of them translated."""

    def __init__(self, read, translate):
        self.read, self.translate = read, translate

    def as_sampled(self, output, path):
        """The file `output` as collapsed lines, each distinct one once; path: the program's, as the target sees it."""
        counts, known = collections.Counter(), {}
        with open(output, encoding="utf-8", errors="replace") as file:
            for tid, frames, count in self.read(file):
                counts[tid, tuple(frames)] += count
        text = []
        for (tid, frames), count in counts.items():
            for frame in frames:
                if frame not in known:
                    known[frame] = self.translate(frame, path)
            text.append(";".join(["thread %d" % tid] + [known[frame] for frame in frames]) + " %d\n" % count)
        return "".join(text).encode()

    def deeper_than(self, output, depth):
        """How many samples in the file `output` have so many frames or more."""
        with open(output, encoding="utf-8", errors="replace") as file:
            return sum(count for _tid, frames, count in self.read(file) if len(frames) >= depth)


SAMPLED = Format(sampled, function_in_parentheses)
TACHYON = Format(tachyon, file_first)
AUSTIN = Format(austin, file_first)
PY_SPY = Format(py_spy, function_in_parentheses)
