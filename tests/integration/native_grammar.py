# SPDX-License-Identifier: Apache-2.0
"""What stacks of Python and native frames a program of tests/native can have, read from its source, and whether a stack is one of them.

STACKS is a literal {node: (kind, what, next)}; "" lists the outermost nodes. A stack is accepted as a whole, frame by frame from the root:
  python     the function `what` of the program; next is {marker: nodes}: the line of a frame that has a node above it ends in `#@ marker`
  modules    a run of Python frames of files that match `what`
  glue       the function `what` (a pattern) of a module of ours, which may call the interpreter
  native     the same, of which nothing but what is in `next` is called
  library    a run of frames of a file that matches `what`, whatever their names
  extension  the same, which may call the interpreter: a module of the standard library
The interpreter's own frames may be there or be left out: below the first Python frame, and above what may call it, as may be those of the C
library, the dynamic linker and the vdso that it calls; so may be what a module of ours has inlined of the interpreter's headers, where inlined
functions are frames. A native frame of ours stands in its function's lines where they are known; and where its function has a line marked
`@function` in the C source, there when it calls."""
import ast
import collections
import os
import re

Frame = collections.namedtuple("Frame", "kind name file line module")

INTERPRETER, C_LIBRARY, LOADER, VDSO, LIBM, OURS, OTHER = "interpreter", "libc", "ld.so", "vdso", "libm", "ours", "other"
CLASSES = (
    (INTERPRETER, r"libpython[23]|python\d*(\.\d+)?$"),
    (C_LIBRARY, r"(libc|libpthread|librt|libdl)([.-]\d.*\.so|\.so)"),
    (LOADER, r"ld-|ld\.so"),
    (VDSO, r"\[vdso\]"),
    (LIBM, r"libm[.-]"),
    (OURS, r"(chain_\w+|waits)\.abi3\.so|(chain_\w+|waits)\.whole"),
)
MAY_CALL_PYTHON = ("python", "modules", "glue", "extension")
RUNS = ("modules", "library", "extension")
BOTTOM, AT, INTERPRETED, TAIL = "bottom", "at", "interpreted", "tail"
GAP = "<cut>"  # native frames that could not be told are missing here, and between all Python frames before it
HEADERS = re.compile(r"/include/python[23]\.\d+[a-z]*/")
CLONE = re.compile(r"(\.(constprop|isra|part|lto_priv|cold)(\.\d+)*)+$|\s\[clone [^\]]*\]")


def class_of(module):
    name = os.path.basename(module)
    for found, pattern in CLASSES:
        if re.match(pattern, name):
            return found
    return OTHER


def plain_name(name):
    """Without what the compiler added to tell clones apart."""
    return CLONE.sub("", name)


def marked_lines(source, pattern=r"#@ ([\w ]+)$"):
    found = {}
    for number, text in enumerate(source.splitlines(), 1):
        match = re.search(pattern, text)
        if match:
            found[number] = set(match.group(1).split())
    return found


def python_functions(source):
    """{function: (first line, last line)}"""
    tree = ast.parse(source)
    found = {"<module>": (1, len(source.splitlines()))}
    for item in ast.walk(tree):
        if isinstance(item, ast.FunctionDef):
            found[item.name] = (item.lineno, item.end_lineno)
    return found


def native_functions(source):
    """{function: [(first line, last line)]} of C as we write it: a name at the left, a brace at the left on each side."""
    found, name, first = collections.defaultdict(list), None, 0
    for number, text in enumerate(source.splitlines(), 1):
        match = re.match(r"[A-Za-z][^;=]*?\b(\w+)\([^;]*\)?$", text)
        if match and not name:
            name, first = match.group(1), number
        elif text.startswith("}") and name:
            found[name].append((first, number))
            name = None
    return found


def with_gaps(frames):
    gap = Frame("special", GAP, "", 0, "")
    return [one for frame in frames for one in (gap, frame)]


class Lines:
    """Where functions of C sources stand, by the files' names."""

    def __init__(self, paths):
        self.functions, self.marks = {}, {}
        for path in paths:
            with open(path, encoding="utf-8") as file:
                source = file.read()
            self.functions[os.path.basename(path)] = native_functions(source)
            self.marks[os.path.basename(path)] = marked_lines(source, r"/\* @(\w+) \*/$")

    def wrong(self, frame, function, calls):
        """Whether a frame of a native function stands where it cannot. calls: another frame is above it."""
        ranges = self.functions.get(os.path.basename(frame.file), {}).get(function)
        if not ranges or not frame.line:
            return False
        if not any(first <= frame.line <= last for first, last in ranges):
            return True
        marked = [line for line, marks in self.marks[os.path.basename(frame.file)].items() if function in marks]
        return calls and marked != [] and frame.line not in marked


class Grammar:
    def __init__(self, source, path, lines=None):
        """source: the program's text; path: its file as the target sees it; lines: of the native sources."""
        self.path, self.lines = path, lines
        for statement in ast.parse(source).body:
            if isinstance(statement, ast.Assign) and getattr(statement.targets[0], "id", "") == "STACKS":
                self.nodes = ast.literal_eval(statement.value)
        self.start = self.nodes.pop("")
        self.marks = marked_lines(source)
        self.functions = python_functions(source)
        self.check()

    def check(self):
        """A grammar that names what is not there would let nothing pass, or everything."""
        markers = set().union(*self.marks.values())
        for name, (kind, what, following) in self.nodes.items():
            if kind == "python" and what not in self.functions:
                raise ValueError("node %s: the program has no function %s" % (name, what))
            if kind == "python" and set(following) - markers:
                raise ValueError("node %s: no line is marked %s" % (name, set(following) - markers))
            for child in sum(following.values(), []) if kind == "python" else following:
                if child not in self.nodes:
                    raise ValueError("node %s: no node %s" % (name, child))

    def matches(self, name, frame):
        kind, what, _ = self.nodes[name]
        if kind == "python":
            first, last = self.functions[what]
            return (frame.kind == "python" and frame.name.rpartition(".")[2] == what and frame.file == self.path
                    and first <= frame.line <= last)
        if kind == "modules":
            return frame.kind == "python" and re.search(what, frame.file) is not None
        if frame.kind != "native":
            return False
        if kind in ("library", "extension"):
            return re.match(what, os.path.basename(frame.module)) is not None
        return class_of(frame.module) == OURS and re.fullmatch(what, plain_name(frame.name)) is not None

    def following(self, name, line):
        """The nodes that may stand above one whose frame is at `line`; -1: at any."""
        kind, _, following = self.nodes[name]
        if kind != "python":
            return following
        return [child for marker, children in following.items() if line == -1 or marker in self.marks.get(line, ()) for child in children]

    def steps(self, state, frame):
        """The states that a frame leads to: (node, phase, line of its frame)."""
        node, phase, line = state
        kind = self.nodes[node][0] if phase != BOTTOM else None
        found = class_of(frame.module) if frame.kind == "native" else None
        if phase == BOTTOM and found in (INTERPRETER, C_LIBRARY, LOADER):
            yield state
        if phase == TAIL:
            if found in (C_LIBRARY, LOADER, VDSO, LIBM):
                yield state
            return
        children = self.start if phase == BOTTOM else self.following(node, line)
        if kind in RUNS:
            children = children + [node]
        for child in children:
            if self.matches(child, frame):
                yield child, AT, frame.line
        if phase == BOTTOM:
            return
        if found == OURS and frame.name.endswith("@plt"):
            yield node, TAIL, line
        elif kind in MAY_CALL_PYTHON:
            if found == INTERPRETER or (found == OURS and HEADERS.search(frame.file)):
                yield node, INTERPRETED, line
            elif found in (C_LIBRARY, LOADER, VDSO, LIBM):
                yield node, TAIL, line
        elif found == LOADER or (kind == "library" and found in (C_LIBRARY, INTERPRETER)):
            yield node, TAIL, line

    def across(self, states):
        """Where a stack may be behind a gap: here, or at any native frame that leads on from here. {state: path}"""
        left = [(child, path) for (node, phase, line), path in states.items() if phase != TAIL
                for child in (self.start if phase == BOTTOM else self.following(node, line))]
        found = dict(states)
        while left:
            node, path = left.pop()
            if self.nodes[node][0] not in ("python", "modules") and (node, AT, -1) not in found:
                found[node, AT, -1] = found[node, INTERPRETED, -1] = path
                left += [(child, path) for child in self.following(node, -1)]
        return found

    def accept_bare(self, frames):
        """The nodes of Python frames without the native ones between them; or None."""
        return self.accept(with_gaps(frames))[0]

    def accept(self, frames):
        """(nodes of the stack, None), or (None, the number of the first frame that no stack of the program has there)."""
        cut = next((at for at, frame in enumerate(frames) if frame.name == GAP), 0)
        states = {("", BOTTOM, 0): ()}
        frames = with_gaps(frames[:cut]) + frames[cut:]
        for at, frame in enumerate(frames):
            if frame.kind == "special":
                if frame.name == GAP:
                    states = self.across(states)
                continue
            after = {}
            for state, path in states.items():
                for found in self.steps(state, frame):
                    after[found] = path + (found[0],) if found[1] == AT and found[0] not in path[-1:] else path
            if not after or self.misplaced(frame, after, at + 1 < len(frames)):
                return None, at // 2 if at < 2 * cut else at - cut
            states = after
        return max(states.values(), key=len), None

    def misplaced(self, frame, states, calls):
        """Whether a native frame's line is not one of its function's."""
        if frame.kind != "native" or self.lines is None:
            return False
        return any(phase == AT and self.lines.wrong(frame, plain_name(frame.name), calls) for _, phase, _ in states)
