# SPDX-License-Identifier: Apache-2.0
"""Prints what stands in .calling of sampler/pyabi/py3*.c for the interpreter that runs it (3.11+): every opcode, specialised and
instrumented ones too, of the instructions that can push the frame of a Python function without leaving the interpreter's loop,
and how many units behind it the frame's instruction pointer stands meanwhile."""
import opcode
import sys

FAMILIES = ["CALL", "CALL_KW", "CALL_FUNCTION_EX", "LOAD_ATTR", "BINARY_SUBSCR", "FOR_ITER", "SEND"]
if sys.version_info >= (3, 14):
    FAMILIES.append("BINARY_OP")  # which took in BINARY_SUBSCR


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
    if isinstance(entries, dict):
        return entries.get(name, 0)
    return entries[opcode.opmap[name]]


def main():
    families, numbers = specialised()
    rows = {}
    for family in FAMILIES:
        if family not in opcode.opmap:
            continue
        behind = caches(family) if sys.version_info < (3, 13) else 0
        for name in [family, "INSTRUMENTED_" + family] + list(families.get(family, [])):
            if name in numbers:
                rows[numbers[name]] = behind
    # These hide the instruction in whose place they stand: CALLING_HIDDEN.
    for name in ("INSTRUMENTED_LINE", "INSTRUMENTED_INSTRUCTION"):
        if name in opcode.opname:
            rows[opcode.opname.index(name)] = 254
    text = ", ".join("[%d] = %d" % (number, behind + 1) for number, behind in sorted(rows.items()))
    print("%d.%d: %d\n{%s}" % (sys.version_info[:2] + (len(rows), text)))


main()
