# SPDX-License-Identifier: Apache-2.0
"""The grammar of an oracle's stacks, read from the program's source, and whether a stack belongs to it.

A program holds a literal GRAMMAR = {node: (function, {marker: [nodes]}, options)}. A line that ends in `#@ marker…`
is a call line: a frame of that node that has another frame above it stands at a line with one of its markers, and the
frame above is one of the nodes listed there. Several nodes may stand for one function, so that what it may call
depends on its callers. The innermost frame may stand at any line of its function, except call lines that are not its
node's. Options: via "library", reached only through frames of the standard library; most, how often the function may
be on one stack; file, own, shift, fixed: code made by exec, see redefine.py. "*" lists (function, file) of library
callbacks that run when an object dies, so above any frame; the interpreter does not tell sys.setprofile of all of
them, since a profiler's view of local variables makes objects live longer. What the standard library puts into stacks
is known from witness.py."""
import ast
import json
import re


class Node:
    def __init__(self, name, function, calls, options=None):
        options = options or {}
        self.name = name
        self.function = function
        self.calls = calls
        self.library = options.get("via") == "library"
        self.most = options.get("most")
        self.file = options.get("file")
        self.own = options.get("own")
        self.shift = options.get("shift", 1)
        self.fixed = options.get("fixed", False)


def literal_grammar(source):
    for statement in ast.parse(source).body:
        if isinstance(statement, ast.Assign) and getattr(statement.targets[0], "id", "") == "GRAMMAR":
            return ast.literal_eval(statement.value)
    raise ValueError("the program declares no GRAMMAR")


def marked_lines(source):
    """{line: markers}"""
    found = {}
    for number, text in enumerate(source.splitlines(), 1):
        match = re.search(r"#@ ([\w ]+)$", text)
        if match:
            found[number] = set(match.group(1).split())
    return found


class Grammar:
    def __init__(self, source, path, witness):
        """source: the program's text; path: its file as the target sees it; witness: what witness.py printed."""
        rules = literal_grammar(source)
        self.path = path
        self.start = rules.pop("")
        self.asides = rules.pop("*", [])
        self.nodes = {name: Node(name, *rule) for name, rule in rules.items()}
        self.marks = marked_lines(source)
        self.lines = {}
        names = {}
        for shown, name, _first, lines in witness["codes"]:
            self.lines.setdefault(name, set()).update(lines)
            names[shown] = name
        self.names = names
        self.through = {json.dumps(item) for item in witness["through"]}
        self.inside = {json.dumps(item) for item in witness["inside"]}
        self.library = {(shown, file): set(lines) for shown, file, lines in witness["library"]}
        self.through_any = {json.dumps(without_lines(item)) for item in witness["through"]}
        self.inside_any = {json.dumps(without_lines(item)) for item in witness["inside"]}
        self.wrong_at = 0
        self.check()

    def check(self):
        """A grammar that names what the program does not have would let everything pass, or nothing."""
        marks = set().union(*self.marks.values())
        for name, node in self.nodes.items():
            for marker, children in node.calls.items():
                if marker not in marks and not node.file:
                    raise ValueError("node %s: no line is marked %s" % (name, marker))
                for child in children:
                    if child not in self.nodes:
                        raise ValueError("node %s: no node %s" % (name, child))
            if not node.file and node.function not in self.lines:
                raise ValueError("node %s: the program has no function %s" % (name, node.function))

    def is_library(self, frame):
        return frame[1] != self.path and not frame[1].startswith("<made ")

    def judge(self, frames, main):
        """frames: (shown name, file, line), root first. "ok", "lines" (the functions are right, lines are not) or "path"; then
        wrong_at is the first frame that no stack of the program has there. The main thread begins with the first of the starts."""
        start = self.start[:1] if main else self.start
        self.wrong_at = 0
        if not frames:
            return "path" if main else "ok"
        if len(frames) > 1 and any(frames[-1][0].endswith(name) and frames[-1][1].endswith(file) for name, file in self.asides):
            frames = frames[:-1]
        if self.accepts(frames, True, start):
            return "ok"
        at = self.wrong_at
        if self.accepts(frames, False, start):
            self.wrong_at = at
            return "lines"
        return "path"

    def accepts(self, frames, strict, start):
        states = {(name, -1) for name in start}  # candidates for the next frame, with the generation they belong to
        at = 0
        before = None
        while at < len(frames):
            self.wrong_at = at
            if self.is_library(frames[at]):
                at = self.skip_library(frames, at, before, strict)
                if at < 0 or not states:
                    return False
                if at == len(frames):
                    return True
                library = True
            else:
                library = False
            frame = frames[at]
            last = at + 1 == len(frames)
            here = set()
            for name, generation in states:
                node = self.nodes[name]
                if node.library == library:
                    found = self.match(node, frame, generation)
                    if found is not None:
                        here.add((node, found))
            if last:
                return any(self.may_end(node, generation, frame, strict) for node, generation in here) and self.few(frames)
            states = set()
            if not here:
                return False
            follows = self.is_library(frames[at + 1])
            for node, generation in here:
                markers = self.markers_at(node, generation, frame[2]) if strict else set(node.calls)
                for marker in markers & set(node.calls):
                    states.update((child, generation) for child in node.calls[marker])
                if follows:
                    states.add((node.name, generation))  # the run of library frames says where it is called
            before = frame
            at += 1
        return False

    def skip_library(self, frames, at, before, strict):
        """The index behind the run of library frames that begins at `at`; -1: no such run exists."""
        begin = at
        while at < len(frames) and self.is_library(frames[at]):
            at += 1
        context = [before[0], before[2]] if before else None
        run = [list(frame) for frame in frames[begin:at]]
        if at < len(frames):
            item = [context, run, frames[at][0]]
            known = json.dumps(item) in self.through if strict else json.dumps(without_lines(item)) in self.through_any
            return at if known else -1
        name, file, line = run[-1]
        if strict and line not in self.library.get((name, file), ()):
            return -1
        run[-1][2] = 0
        item = [context, run]
        known = json.dumps(item) in self.inside if strict else json.dumps(without_lines(item)) in self.inside_any
        return at if known else -1

    def match(self, node, frame, generation):
        """Whether the frame's function is the node's: the stack's generation from now on, or None."""
        shown, file, _line = frame
        if not node.file:
            return generation if file == self.path and self.names.get(shown) == node.function else None
        match = re.fullmatch(node.file.replace("{n}", r"(\d+)"), file)
        if not match or generation not in (-1, int(match.group(1))):
            return None
        return int(match.group(1)) if shown == node.function.format(n=match.group(1)) else None

    def markers_at(self, node, generation, line):
        if not node.file:
            return self.marks.get(line, set())
        return {line - generation % node.shift}

    def may_end(self, node, generation, frame, strict):
        if not strict:
            return True
        line = frame[2]
        if node.file:
            first, last = node.own
            more = generation % node.shift
            return first + (0 if node.fixed else more) <= line <= last + more
        if line in self.marks:
            return bool(self.marks[line] & set(node.calls))
        return line in self.lines[node.function]

    def few(self, frames):
        """No recursion deeper than the program's."""
        for node in self.nodes.values():
            if node.most and sum(1 for frame in frames if self.names.get(frame[0]) == node.function) > node.most:
                return False
        return True


def without_lines(item):
    context, run = item[0], item[1]
    bare = [context and context[0], [frame[:2] for frame in run]]
    return bare + item[2:]
