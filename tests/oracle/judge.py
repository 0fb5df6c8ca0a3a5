#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Judges collapsed stacks of an oracle's program: judge.py STACKS --program FILE --as FILE-IN-TARGET --witness JSON --pid PID.

Each distinct path is judged once, with its count. Exit 1: an impossible stack or a wrong line; 2: nothing to judge."""
import argparse
import json
import re
import sys

import grammar

EXAMPLES = 3
SHOWN_FRAMES = 14


class Verdict:
    def __init__(self):
        self.samples = self.paths = self.impossible = self.wrong_lines = self.empty = 0
        self.examples = {"path": [], "lines": []}

    def add(self, other):
        for name in ("samples", "paths", "impossible", "wrong_lines", "empty"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        for kind, found in other.examples.items():
            self.examples[kind] = (self.examples[kind] + found)[:EXAMPLES]

    @property
    def failed(self):
        return self.impossible + self.wrong_lines > 0


FRAME = re.compile(r"(.*) \((.*):(\d+)\)$")


def read_stacks(data):
    """(tid, 0 for unknown; frames, root first; count) of each line; a trailing <GC> is no frame of the program."""
    text = data.decode("utf-8")
    if text and not text.endswith("\n"):
        raise ValueError("the last line is not whole")
    frame_of = {}
    for line in text.split("\n")[:-1]:
        stack, _, count = line.rpartition(" ")
        head, *parts = stack.split(";")
        tid = re.match(r"thread (\d+|\?)", head)
        if not tid:
            raise ValueError("no thread in %r" % line[:200])
        if parts and parts[-1] == "<GC>":
            parts.pop()
        frames = []
        for part in parts:
            if part not in frame_of:
                match = FRAME.match(part)
                frame_of[part] = (match.group(1), match.group(2), int(match.group(3))) if match else (part, "", 0)
            frames.append(frame_of[part])
        yield int(tid.group(1).replace("?", "0")), tuple(frames), int(count)


def text_of(frames, path, wrong_at):
    """The frames as text, those that no stack of the program has from here on behind `>>`; long recursion is cut."""
    texts = ["%s:%d" % (name, line) if file == path else "%s(%s:%d)" % (name, file.rpartition("/")[2], line)
             for name, file, line in frames]
    parts = [(" >> " if at == wrong_at else " > ") + text for at, text in enumerate(texts)]
    if len(parts) > SHOWN_FRAMES:
        first = max(4, min(wrong_at - 3, len(parts) - 6))
        parts = parts[:4] + [" … %d frames …" % (first - 4)] * (first > 4) + parts[first:first + 6] + [" …, depth %d" % len(parts)]
    return "".join(parts)[1:]


def judge(data, rules, pid):
    verdict = Verdict()
    worst = {"path": [], "lines": []}
    for tid, frames, count in read_stacks(data):
        verdict.samples += count
        verdict.paths += 1
        verdict.empty += count if not frames else 0
        kind = rules.judge(frames, tid == pid)
        if kind == "ok":
            continue
        if kind == "path":
            verdict.impossible += count
        else:
            verdict.wrong_lines += count
        worst[kind].append((count, text_of(frames, rules.path, rules.wrong_at) or "(empty)"))
    for kind, found in worst.items():
        verdict.examples[kind] = ["%d × %s" % item for item in sorted(found, reverse=True)[:EXAMPLES]]
    return verdict


def load(program, path, witness):
    with open(program, encoding="utf-8") as file:
        return grammar.Grammar(file.read(), path, witness)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("stacks")
    parser.add_argument("--program", required=True)
    parser.add_argument("--as", dest="path", required=True)
    parser.add_argument("--witness", required=True)
    parser.add_argument("--pid", type=int, required=True)
    options = parser.parse_args()
    with open(options.witness, encoding="utf-8") as file:
        rules = load(options.program, options.path, json.load(file))
    with open(options.stacks, "rb") as file:
        verdict = judge(file.read(), rules, options.pid)
    print("%d samples, %d paths: %d impossible, %d with wrong lines" %
          (verdict.samples, verdict.paths, verdict.impossible, verdict.wrong_lines))
    for kind, found in verdict.examples.items():
        for text in found:
            print("  %s: %s" % (kind, text))
    return 2 if verdict.samples == 0 else 1 if verdict.failed else 0


if __name__ == "__main__":
    sys.exit(main())
