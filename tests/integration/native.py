# SPDX-License-Identifier: Apache-2.0
"""What the tests of native stacks share: targets with modules of ours, the stacks that sampled saw of them, and those that perf saw."""
import bisect
import collections
import functools
import glob
import json
import os
import re
import subprocess
import tempfile
import unittest

import native_grammar
import support
from native_grammar import Frame

SOURCES = os.path.join(support.TOP, "tests", "native")
BUILT = os.path.join(support.TOP, "build", "tests", "native")
VARIANTS = ("fp", "nofp", "stripped", "lto", "lines", "notables")


@functools.lru_cache(maxsize=None)
def modules():
    """The modules of tests/native, built; skips where that needs what is not there."""
    done = subprocess.run(["make", "-s", "native"], cwd=support.TOP, env=dict(os.environ, MAKEFLAGS=""), stderr=subprocess.PIPE, check=False)
    if b"Python.h" in done.stderr:
        raise unittest.SkipTest("Python's headers are not installed (libpython3-dev)")
    if done.returncode:
        raise AssertionError(done.stderr.decode())
    return sorted(glob.glob(os.path.join(BUILT, "*.abi3.so")))


def target(python, program, *args, **extra):
    """A program of tests/native, with the modules beside it."""
    return support.Target(python, program, *args, files=modules() + glob.glob(os.path.join(SOURCES, "*.py")), **extra)


def grammar(running, program):
    with open(os.path.join(SOURCES, program), encoding="utf-8") as file:
        source = file.read()
    lines = native_grammar.Lines([os.path.join(SOURCES, name) for name in ("chain.c", "chain_work.c")])
    return native_grammar.Grammar(source, os.path.join(running.inside, program), lines)


class Symbols:
    """Functions of a file by address, from its own table of symbols; of a stripped module, from the one that it was made from."""

    def __init__(self, path):
        whole = path.replace(".abi3.so", ".whole")
        done = subprocess.run(["nm", "--defined-only", "-S", whole if os.path.exists(whole) else path], stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, check=False)
        found = re.findall(r"^([0-9a-f]+) ([0-9a-f]+) [tTwWiu] (\S+)$", done.stdout.decode(), re.M)
        self.functions = sorted((int(start, 16), int(size, 16), name) for start, size, name in found)
        self.starts = [start for start, _, _ in self.functions]

    def name(self, address):
        at = bisect.bisect_right(self.starts, address) - 1
        if at >= 0 and address < self.starts[at] + self.functions[at][1]:
            return self.functions[at][2]
        return None


@functools.lru_cache(maxsize=None)
def symbols(name):
    """Of a module of ours, by its file's name."""
    return Symbols(os.path.join(BUILT, name))


class Stack:
    def __init__(self, thread, frames, count, values):
        self.thread, self.frames, self.count, self.values = thread, frames, count, values

    def text(self, at=0):
        """Its frames from number `at` on."""
        return " ; ".join("%s (%s)" % (frame.name, "%s:%d" % (frame.file, frame.line) if frame.file else os.path.basename(frame.module))
                          for frame in self.frames[at:])


class Profile:
    """A profile in JSON Lines: stacks, and the sampling facts."""

    def __init__(self, path):
        self.stacks, self.facts = [], collections.Counter()
        frames, threads, nodes = {}, {}, {}
        with open(path, encoding="utf-8") as file:
            for line in file:
                item = json.loads(line)
                if item["type"] == "profile":
                    self.facts = collections.Counter(item["facts"])  # which leave out zeros
                elif item["type"] == "thread":
                    threads[item["id"]] = item
                elif item["type"] == "frame":
                    frames[item["id"]] = Frame(item["kind"], item["function"], item["file"], item["line"], item.get("module") or "")
                elif item["type"] == "node":
                    parent = nodes.get((item["thread"], item.get("parent")), ())
                    stack = parent + ((frames[item["frame"]],) if item["frame"] is not None else ())
                    nodes[item["thread"], item["id"]] = stack
                    if item["self"].get("samples"):
                        self.stacks.append(Stack(threads[item["thread"]], named(stack), item["self"]["samples"], item["self"]))

    @property
    def samples(self):
        return sum(stack.count for stack in self.stacks)


def dumped(thread):
    """The Stack of a thread in the JSON of `sampled dump`."""
    frames = [Frame(frame.get("kind") or "python", frame["name"], frame["file"], frame["line"], frame.get("module") or "") for frame in thread["frames"]]
    return Stack(thread, named(frames[::-1]), 1, {})


def named(frames):
    """Frames of a stripped module by the names that it does not have any more. One that is in it must not be missing."""
    return [with_name(frame) for frame in frames]


def with_name(frame):
    match = re.search(r"\+0x([0-9a-f]+)$", frame.name)
    if frame.kind == "native" and match and native_grammar.class_of(frame.module) == native_grammar.OURS:
        return frame._replace(name=symbols(os.path.basename(frame.module)).name(int(match.group(1), 16)) or frame.name)
    return frame


def profile(running, seconds, *options, rate="1000"):
    """(Profile, the closing summary) of `sampled attach`."""
    output = running.path("native.jsonl")
    done = support.sampled("attach", running.pid, "-v", "-d", seconds, "-r", rate, "-f", "jsonl", "-o", output, *options)
    if done.returncode:
        raise AssertionError("sampled attach: status %d: %s" % (done.returncode, done.stderr.decode()))
    return Profile(output), done.stderr.decode()


class Verdict:
    """Every stack of a profile judged: by the nodes that it is made of, and by its innermost frame. leaves: CPU time by that, since a thread that waits
    for a CPU waits where it is, which perf's clock does not see. bare: those that want native frames and have
    none at all, which sampled must say; they have no part in `leaves`."""

    def __init__(self, rules, stacks):
        self.samples, self.impossible, self.bare, self.examples = 0, 0, 0, []
        self.paths, self.leaves = collections.Counter(), collections.Counter()
        for stack in stacks:
            native = any(frame.kind == "native" for frame in stack.frames)
            path, wrong_at = rules.accept(stack.frames)
            if path is None and not native:
                path = rules.accept_bare(stack.frames)
                self.bare += stack.count if path is not None else 0
            self.samples += stack.count
            if native:
                self.leaves[leaf(stack.frames)] += stack.values.get("cpu", 0)
            if path is None:
                self.impossible += stack.count
                self.examples.append("%d × at frame %d: … %s" % (stack.count, wrong_at, stack.text(max(wrong_at - 5, 0))))
            else:
                self.paths[path] += stack.count

    def of(self, *nodes, hold=0):
        """The share of samples of those with nodes[hold] in them that have all of these, in this order and without others between."""
        wanted = " ".join(("",) + nodes + ("",))
        within = {path: count for path, count in self.paths.items() if nodes[hold] in path}
        whole = sum(within.values())
        return sum(count for path, count in within.items() if wanted in " ".join(("",) + path + ("",))) / whole if whole else 0.0


def leaf(frames):
    """Where a sample's innermost instruction is: a function of ours, or a file; the interpreter and what it uses of the C library are one, since
    the interpreter's own frames are left out."""
    frame = frames[-1] if frames else None
    return leaf_of(frame.module, frame.name) if frame and frame.kind == "native" else native_grammar.INTERPRETER


def leaf_of(module, name):
    found = native_grammar.class_of(module)
    if found == native_grammar.OURS:
        # Symbols know nothing of what was inlined into lines_outer.
        return "plt" if name.endswith("@plt") else re.sub(r"^lines_\w+$", "lines", native_grammar.plain_name(name))
    if found == native_grammar.OTHER:
        return re.split(r"[.-]", os.path.basename(module))[0]
    return native_grammar.LIBM if found == native_grammar.LIBM else native_grammar.INTERPRETER


class Perf:
    """perf record beside us, by the clock of each CPU: what it saw innermost, by the mappings of the process and the symbols of its files."""

    def __init__(self, running, seconds, rate="999"):
        self.running = running
        self.file = tempfile.NamedTemporaryFile(prefix="sampled-perf-")
        command = ["perf", "record", "-q", "-e", "cpu-clock:u", "-F", rate, "-p", str(running.pid), "-o", self.file.name, "--", "sleep", "%g" % seconds]
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)

    def leaves(self):
        """Counter as Verdict.leaves."""
        error = self.process.communicate()[1].decode()
        if self.process.returncode:
            self.file.close()
            raise unittest.SkipTest("perf record does not work here: %s" % error.strip()[-300:])
        done = subprocess.run(["perf", "script", "-i", self.file.name, "-F", "ip"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True)
        self.file.close()
        mapped = mappings(self.running.pid)
        found = collections.Counter()
        for line in done.stdout.split():
            found[self.place(mapped, int(line, 16))] += 1
        return found

    def place(self, mapped, address):
        at = bisect.bisect_right(mapped, (address, 1 << 64)) - 1
        if at < 0 or address >= mapped[at][1]:
            return "nowhere"
        start, _, offset, path = mapped[at]
        if native_grammar.class_of(path) != native_grammar.OURS:
            return leaf_of(path, "")
        return leaf_of(path, symbols(os.path.basename(path)).name(address - start + offset) or "plt")


def mappings(pid):
    """[(start, end, offset, path)] of what a process can run."""
    with open("/proc/%d/maps" % pid) as file:
        lines = [line.split(None, 5) for line in file]
    found = []
    for fields in lines:
        if "x" in fields[1]:
            start, end = (int(number, 16) for number in fields[0].split("-"))
            found.append((start, end, int(fields[2], 16), fields[5].strip() if len(fields) > 5 else ""))
    return sorted(found)


def shares(counter):
    whole = sum(counter.values())
    return {key: count / whole for key, count in counter.items()} if whole else {}


def furthest(ours, theirs):
    """(points, where): the largest difference of two shares."""
    ours, theirs = shares(ours), shares(theirs)
    return max((100 * abs(ours.get(key, 0) - theirs.get(key, 0)), key) for key in set(ours) | set(theirs))
