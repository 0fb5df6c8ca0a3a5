# SPDX-License-Identifier: Apache-2.0
"""Prints what stands in .calling of sampler/pyabi/py3*.c for the interpreter that runs it (3.11+): every opcode, specialised and
instrumented ones too, of the instructions that can push the frame of a Python function, or of a generator, without leaving the
interpreter's loop, and how many units behind it the frame's instruction pointer stands meanwhile, plus 1; and which of them are
specialised so that they push one (a call: of one function, whose version stands behind it), or none unless they fall back to the general one. Then what stands in .plain_opcodes: instructions
at which no Python code runs, whoever calls it; and in .caches how many units of inline cache follow each instruction. With the argument
"instructions": a line for each function that has been specialised, its bytecode as it stands in memory and where its instructions begin."""
import dis
import gc
import opcode
import sys
import textwrap
import types

FAMILIES = ["CALL", "CALL_KW", "CALL_FUNCTION_EX", "LOAD_ATTR", "BINARY_SUBSCR", "FOR_ITER", "SEND"]
RESUMING = ("FOR_ITER", "SEND")
SELDOM = ("LOAD_ATTR", "BINARY_SUBSCR")  # properties and such
if sys.version_info >= (3, 14):
    FAMILIES.append("BINARY_OP")  # which took in BINARY_SUBSCR
# Of the specialised ones, those that push a frame.
PUSHING = ("_PY", "_PY_EXACT_ARGS", "_PY_GENERAL", "_PY_WITH_DEFAULTS", "_BOUND_METHOD", "_BOUND_METHOD_EXACT_ARGS",
           "_BOUND_METHOD_GENERAL", "_PROPERTY", "_GETATTRIBUTE_OVERRIDDEN", "_GETITEM", "_GEN")
# They do, but no function's version stands behind them: a type's, or none.
UNVERSIONED = ("CALL_ALLOC_AND_ENTER_INIT", "CALL_EX_PY")
HIDDEN, SUBSCRIPT, QUIET_SUBSCRIPT = "CALLING_HIDDEN", "CALLING_SUBSCRIPT", "CALLING_QUIET_SUBSCRIPT"
# At these no Python code runs: they neither allocate, nor give up a reference, nor look at the eval breaker.
PLAIN = ("COPY", "KW_NAMES", "LOAD_CONST", "LOAD_CONST_IMMORTAL", "LOAD_CONST_MORTAL", "LOAD_CONST__LOAD_FAST", "LOAD_FAST",
         "LOAD_FAST_BORROW", "LOAD_FAST_BORROW_LOAD_FAST_BORROW", "LOAD_FAST_LOAD_FAST", "LOAD_FAST__LOAD_CONST",
         "LOAD_FAST__LOAD_FAST", "LOAD_SMALL_INT", "NOP", "PUSH_NULL", "RETURN_CONST", "RETURN_VALUE", "SWAP")
# What PUSH_NULL goes with, where that is no callable of the program's, or one that is a global, or an attribute.
FIXED = ("GET_", "LOAD_ATTR", "LOAD_BUILD_CLASS", "LOAD_GLOBAL", "LOAD_METHOD", "LOAD_NAME")
COLUMNS = 120


def specialised():
    """{base name: [names]}, {name: number}"""
    if sys.version_info >= (3, 13):
        import _opcode_metadata
        import _opcode
        numbers = dict(_opcode_metadata._specialized_opmap)
        numbers.update(_opcode_metadata.opmap)
        return _opcode_metadata._specializations, numbers
    numbers = dict(opcode.opmap)
    # Numbers are given in the order of the list to those that are free (Tools/build/generate_opcode_h.py).
    names = opcode._specialized_instructions
    used = set(opcode.opmap.values())
    used.add(255)
    free = 1
    for name in names:
        while free in used:
            free += 1
        numbers[name] = free
        used.add(free)
    return opcode._specializations, numbers


def caches(name):
    entries = getattr(opcode, "_inline_cache_entries")
    if hasattr(entries, "get"):  # by name, where there are any; else by number
        return entries.get(name, 0)
    number = opcode.opmap[name]
    return entries[number] if number < len(entries) else 0


def rows():
    """{opcode: text of its entry}"""
    families, numbers = specialised()
    found = {}
    for family in FAMILIES:
        if family not in opcode.opmap:
            continue
        kind = "CALLING_RESUMES + " if family in RESUMING else "CALLING_SELDOM + " if family in SELDOM else ""
        behind = caches(family) if sys.version_info < (3, 13) else 0
        for name in [family, "INSTRUMENTED_" + family] + list(families.get(family, [])):
            special = name in families.get(family, []) and not name.endswith("_ADAPTIVE") and name not in UNVERSIONED
            pushes = special and name.endswith(PUSHING) and "_NON_PY" not in name
            if name not in numbers:
                continue
            if family == "BINARY_OP" and not pushes:
                found[numbers[name]] = QUIET_SUBSCRIPT if special else SUBSCRIPT
                continue
            mark = "CALLING_PUSHES + " if pushes else "CALLING_QUIET + " if special else ""
            found[numbers[name]] = ("CALLING_SELDOM + " if family == "BINARY_OP" else kind) + mark + str(behind + 1)
    # These hide the instruction in whose place they stand.
    for name in ("INSTRUMENTED_LINE", "INSTRUMENTED_INSTRUCTION"):
        if name in opcode.opname:
            found[opcode.opname.index(name)] = HIDDEN
    return found


def cache_rows():
    """{opcode: units of inline cache behind it, where it has any}"""
    families, numbers = specialised()
    base = {name: family for family, names in families.items() for name in names}
    base["ENTER_EXECUTOR"] = "JUMP_BACKWARD"  # in whose place it stands
    found = {}
    for name, number in numbers.items():
        family = base.get(name, name)
        family = family.removeprefix("INSTRUMENTED_") if family.removeprefix("INSTRUMENTED_") in opcode.opmap else family
        if family in opcode.opmap and caches(family):
            found[number] = str(caches(family))
    return found


def ranges(found):
    """The entries, neighbours that are alike taken together."""
    numbers = sorted(found)
    while numbers:
        first = last = numbers.pop(0)
        while numbers and numbers[0] == last + 1 and found[numbers[0]] == found[first]:
            last = numbers.pop(0)
        yield "[%d%s] = %s," % (first, "" if first == last else " ... %d" % last, found[first])


def print_table(name, found):
    line = "\t\t"
    print("\t.%s = {" % name)
    for text in ranges(found):
        if len(line.expandtabs(4)) + len(text) > COLUMNS:
            print(line.rstrip())
            line = "\t\t"
        line += text + " "
    print(line.rstrip() + "\n\t},")


def print_numbers(name, numbers):
    print(textwrap.fill(", ".join(map(str, numbers)), COLUMNS - 8, initial_indent="\t.%s = {" % name, subsequent_indent="\t\t") + "},")


def print_instructions():
    """Of all functions that have been specialised by now."""
    for function in gc.get_objects():
        code = function.__code__ if isinstance(function, types.FunctionType) else None
        if code and code._co_code_adaptive != code.co_code:
            print(code._co_code_adaptive.hex(), *[instruction.offset for instruction in dis.get_instructions(code)])


def main():
    if sys.argv[1:] == ["instructions"]:
        print_instructions()
        return
    print_table("calling", rows())
    print_table("caches", cache_rows())
    _, numbers = specialised()
    print("\t.plain_opcodes = {%s}," % ", ".join(str(numbers[name]) for name in PLAIN if name in numbers))
    print("\t.push_null = %d," % numbers["PUSH_NULL"])
    if sys.version_info >= (3, 13):
        print("\t.null_behind = true,")
    print_numbers("fixed_opcodes", sorted(number for name, number in numbers.items() if number < 256 and name.startswith(FIXED)))


main()
