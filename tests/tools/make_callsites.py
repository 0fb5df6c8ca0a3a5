# SPDX-License-Identifier: Apache-2.0
"""Prints where CPython 3.6 to 3.10 keeps a call's callable, as seen in its own memory, and what dis says of its instructions.

Run by each of these Pythons; the outputs, one after the other, are the entries of tests/unit/callsites_data.h:

    for python in python3.6 … python3.10; do $python make_callsites.py; done

(`--header` prints the lines before the first, `--footer` the one after the last.) Every call in SOURCE is of a function of its
own. While one of these runs, the value stack of its caller is read through ctypes and searched for it: nothing of what is expected
comes from an analysis of bytecode."""
import ctypes
import dis
import opcode
import re
import sys

HEADER = """\
/* SPDX-License-Identifier: Apache-2.0 */
/* Where real interpreters keep what they call, and how their instructions change the stack. Made by
 * tests/tools/make_callsites.py: do not edit. One table, as long as there are cases. */
#ifndef SAMPLED_TESTS_UNIT_CALLSITES_DATA_H
#define SAMPLED_TESTS_UNIT_CALLSITES_DATA_H

#include <stdint.h>

struct callsites_case {
	uint8_t minor;
	const char *name;
	uint32_t stacksize;
	const char *code;  /* hexadecimal; NULL: `seen` is of single instructions */
	const char *seen;  /* "offset:slot" of calls that were made; or "opcode:oparg:effect" */
};

static const struct callsites_case callsites_cases[] = {
"""
FOOTER = "};\n\n#endif\n"
SOURCE = '''
def plain():
    f(1, f(2, f()), x=f(), **{"y": f()})
    return [f(), (f(), {f(): f()}), *f([1])]
def loops():
    for i in (1, 2):
        while i < 3:
            i += 1 + f(i)
            if i == 2: continue
            for k in range(2):
                f(k)
                if k: break
            else: f()
        f()
def excepts():
    for i in range(4):
        try:
            f(i)
            if i == 1: raise KeyError
            if i == 2: continue
        except KeyError as error:
            f(error)
        except (ValueError, f()): f()
        else: f(f())
        f()
def finals():
    for i in range(4):
        try:
            if i == 1: continue
            if i == 2: raise KeyError(f())
            f()
        except KeyError: f()
        finally:
            f(i)
        f()
    try:
        try: return f()
        finally: f()
    finally: f()
def withs():
    for i in range(3):
        with manager(f()) as a, manager(f(a)):
            f(a, f())
            if i == 1: continue
            if i == 2: raise KeyError(f())
        f()
    return f()
def methods():
    f.m(1, f(), f.m())
    return f(*[f.m(k=1)], **{"k": f(*(), **{})})
def expressions():
    a = f() if f(1) else f()
    a = f() and f() or f()
    a = f() < f(2) < f()
    a = "%s" % f() + f"{f()!r:>{f()}}{f()}"
    a, *b = f([1, 2, 3]); a[f()] = f(); a[f():f():f()]
    assert f(1), f()
    del a[f()]
    return (lambda q=f(): q)(f())
def generator():
    got = yield f()
    for i in other(): f(i)
    yield from other()
    yield f(), f((yield))
def other():
    try: yield f()
    finally: f()
async def coroutine():
    async with amanager(f()) as a:
        f(a)
    async for k in agenerator(): f(k)
    else: f()
    b = [k + f() async for k in agenerator()]
    await sleep(f())
    return f(b)
async def agenerator():
    for i in range(2): yield f(i) and i
class Body(f(object), metaclass=f(type)):
    attribute = f()
'''
EXTENDED = "def extended():\n    a = 0\n" + "".join("    a = v%d if a else %d\n" % (i, i + 1000) for i in range(150)) + "    return f(f(a), v200)\n"
INSTRUCTION_TARGETS = set(opcode.hasjrel) | set(opcode.hasjabs)
ENDING = {"RETURN_VALUE", "RAISE_VARARGS", "RERAISE", "BREAK_LOOP", "CONTINUE_LOOP", "GEN_START", "EXTENDED_ARG", "BEGIN_FINALLY"}


def word(address):
    return ctypes.c_uint64.from_address(address).value


class Finder:
    """Makes a function for each call of f, and notes at which slot of its caller it is found."""

    def __init__(self):
        self.seen = {}

    def function(self):
        def wrapped(*arguments, **names):
            self.note(sys._getframe(1), wrapped)
            return arguments[0] if arguments else 0
        return wrapped

    def note(self, frame, function):
        code = frame.f_code
        first = word(id(frame) + 64)  # f_valuestack
        slots = [k for k in range(code.co_stacksize) if word(first + 8 * k) == id(function)]
        if slots:
            self.seen.setdefault(code, {}).setdefault(frame.f_lasti, set()).update(slots[:1])


class Manager:
    def __init__(self, value): self.value = value
    def __enter__(self): return self.value
    def __exit__(self, *error): return True
    async def __aenter__(self): await Sleep(); return self.value
    async def __aexit__(self, *error): await Sleep()


class Sleep:
    def __init__(self, value=None): pass
    def __await__(self): yield


def run(source, finder):
    names = {"manager": Manager, "amanager": Manager, "sleep": Sleep}
    count = [0]

    def fresh(match):
        count[0] += 1
        name = "f%d" % count[0]
        names[name] = finder.function()
        if match.group(0) == "f.m":
            names[name] = type("Holder", (), {"m": staticmethod(names[name])})()
            return name + ".m"
        return name + match.group(0)[1:]
    names.update(("v%d" % i, i) for i in range(300))
    text = re.sub(r"\bf(?=\()|\bf\.m", fresh, source)
    names["__name__"] = "cases"
    exec(compile(text, "cases", "exec"), names)
    for name in ("plain", "loops", "excepts", "finals", "withs", "methods", "expressions", "extended"):
        if name in names:
            try:
                names[name]()
            except Exception:  # a call's result does not matter, only that it was made
                pass
    for name in ("generator", "other", "coroutine"):
        if name not in names:
            continue
        made = names[name]()
        try:
            for _ in range(40):
                made.send(None)
        except StopIteration:
            pass


def effects():
    for name, number in sorted(opcode.opmap.items(), key=lambda item: item[1]):
        if number in INSTRUCTION_TARGETS or name in ENDING:
            continue
        for argument in (0, 1, 2, 3, 4, 5, 8, 15, 256, 259) if number >= opcode.HAVE_ARGUMENT else (None,):
            if name == "MAKE_FUNCTION" and argument > 15 or name == "BUILD_SLICE" and argument not in (2, 3):
                continue
            try:
                yield number, argument or 0, dis.stack_effect(number, argument)
            except ValueError:
                pass


def in_pieces(text):
    pieces = [text[i:i + 108] for i in range(0, len(text), 108)] or [""]
    return "\n".join('\t\t"%s"' % piece for piece in pieces)


def main():
    if sys.argv[1:] in (["--header"], ["--footer"]):
        sys.stdout.write(HEADER if sys.argv[1] == "--header" else FOOTER)
        return
    finder = Finder()
    run(SOURCE, finder)
    run(EXTENDED, finder)
    print('\t{\n\t\t.minor = %d, .name = "effects", .seen =\n%s,\n\t},' % (
        sys.version_info[1], in_pieces(" ".join("%d:%d:%d" % item for item in effects()))))
    for code in sorted(finder.seen, key=lambda code: (code.co_firstlineno, code.co_name)):
        found = sorted((offset, min(slots)) for offset, slots in finder.seen[code].items() if len(slots) == 1)
        print('\t{\n\t\t.minor = %d, .name = "%s", .stacksize = %d, .code =\n%s,\n\t\t.seen =\n%s,\n\t},' % (
            sys.version_info[1], code.co_name, code.co_stacksize, in_pieces(code.co_code.hex()),
            in_pieces(" ".join("%d:%d" % item for item in found))))


if __name__ == "__main__":
    main()
