# SPDX-License-Identifier: Apache-2.0
"""What an interpreter says of an oracle's program, in a run of its own: witness.py SECONDS PROGRAM [ARGUMENT…].

Prints one JSON object: "codes", the program's own code objects with the lines of their tables, found by compiling it; and, when
SECONDS is not 0, what stands between and below the program's frames where the standard library is part of the stacks: "through",
runs of library frames that lead to one of the program's functions, "inside", runs that end in the library, and "library", the
lines of such functions. These come from sys.setprofile, so from the interpreter itself."""
import dis
import json
import os
import sys
import threading
import time
import types

def shown(code):
    """The name as a profiler shows it: qualified where the code object carries that."""
    return getattr(code, "co_qualname", code.co_name)


def lines_of(code):
    lines = {line for _, line in dis.findlinestarts(code) if line is not None}
    lines.add(code.co_firstlineno)
    if hasattr(code, "co_lines") and any(line is None for _, _, line in code.co_lines()):
        lines.add(0)
    return sorted(lines)


def codes_in(code):
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            for inner in codes_in(constant):
                yield inner


class Witness:
    def __init__(self, path, seconds):
        self.path = path
        self.seconds = seconds
        self.end = None  # known when the program is ready
        self.seen = set()
        self.through = set()
        self.inside = set()
        self.library = {}
        self.done = threading.Lock()

    def is_library(self, code):
        return code.co_filename != self.path and not code.co_filename.startswith("<made ")

    def on_event(self, frame, event, argument):
        if event != "call":
            return
        path = []
        while frame is not None:
            code = frame.f_code
            if code.co_filename != main.__code__.co_filename:
                path.append((code, frame.f_lineno))
            frame = frame.f_back
        path.reverse()
        key = tuple((code, line) for code, line in path[:-1]) + (path[-1][:1] if path else ())
        if key not in self.seen:
            self.seen.add(key)
            self.cut(path)
        if self.end and time.monotonic() > self.end and self.done.acquire(False):
            self.tell()

    def cut(self, path):
        """Notes each run of library frames with the frame of the program before it, and what comes after."""
        at = 0
        while at < len(path):
            if not self.is_library(path[at][0]):
                at += 1
                continue
            begin = at
            while at < len(path) and self.is_library(path[at][0]):
                code = path[at][0]
                self.library.setdefault((shown(code), code.co_filename), set()).update(lines_of(code))
                at += 1
            before = [shown(path[begin - 1][0]), path[begin - 1][1]] if begin else None
            run = [[shown(code), code.co_filename, line] for code, line in path[begin:at]]
            for end in range(1, len(run) + 1):  # each of these frames is the innermost one when it calls nothing
                self.inside.add(json.dumps([before, run[:end - 1] + [run[end - 1][:2] + [0]]]))
            if at < len(path):
                self.through.add(json.dumps([before, run, shown(path[at][0])]))

    def tell(self):
        print_facts(
            self.path,
            through=[json.loads(text) for text in self.through],
            inside=[json.loads(text) for text in self.inside],
            library=[list(key) + [sorted(lines)] for key, lines in self.library.items()],
        )
        os._exit(0)

    def write(self, text):
        """As sys.stdout: the program is ready, so what its main thread does from now on counts."""
        if self.end is None:
            self.end = time.monotonic() + self.seconds
            sys.setprofile(self.on_event)

    def flush(self):
        pass

    def start_thread(self, start):
        """Like _thread.start_new_thread, but the new thread is watched from its first frame on."""

        def watched(function, *arguments, **options):
            def begin(*inner):
                sys.setprofile(self.on_event)
                return function(*inner)

            return start(begin, *arguments, **options)

        return watched


def program_code(path):
    with open(path, encoding="utf-8") as file:
        return compile(file.read(), path, "exec", dont_inherit=True)


def print_facts(path, **facts):
    facts["codes"] = [
        [shown(code), code.co_name, code.co_firstlineno, lines_of(code)] for code in codes_in(program_code(path))
    ]
    with open(1, "wb", closefd=False) as file:
        file.write(json.dumps(facts).encode())


def main():
    seconds = float(sys.argv[1])
    path = sys.argv[2]
    if seconds == 0:
        print_facts(path, through=[], inside=[], library=[])
        return
    witness = Witness(path, seconds)
    sys.argv[:] = sys.argv[2:]
    for name in ("_start_new_thread", "_start_joinable_thread"):
        if hasattr(threading, name):
            setattr(threading, name, witness.start_thread(getattr(threading, name)))
    names = {"__name__": "__main__", "__file__": path}
    sys.stdout = witness
    exec(program_code(path), names)


if __name__ == "__main__":
    main()
