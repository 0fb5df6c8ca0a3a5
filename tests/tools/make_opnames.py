# SPDX-License-Identifier: Apache-2.0
"""Prints sampler/pyabi/opnames3*.c for the interpreter that runs it (3.6+): the name of each opcode as it can stand in bytecode that runs,
specialised and instrumented ones too, as the interpreter's own modules call them."""
import dis
import opcode
import sys

COLUMNS = 120


def names():
    """[name or None] of 256"""
    found = [None] * 256
    numbers = dict(opcode.opmap)
    if sys.version_info >= (3, 13):
        numbers.update(opcode._specialized_opmap)
    elif sys.version_info >= (3, 11):
        numbers.update(dis._all_opmap)  # specialised ones stand where the others leave room
    if sys.version_info[:2] == (3, 11):
        numbers["DO_TRACING"] = 255  # Include/opcode.h
    for name, number in numbers.items():
        if number < len(found):
            found[number] = name
    return found


def main():
    found = names()
    version = sys.version_info[:2]
    print("/* SPDX-License-Identifier: Apache-2.0 */")
    print("/* Opcodes of CPython %d.%d by name; made by tests/tools/make_opnames.py. */" % version)
    print('#include "sampler/pyabi/tables.h"\n\n/* clang-format off */')
    print("const char *const pyabi_opnames_%d_%d[256] = {" % version)
    line = ""
    last = None
    for number, name in enumerate(found):
        if name is None:
            continue
        # The one behind the one before needs no number.
        text = '"%s",' % name if last == number - 1 and line else '[%d] = "%s",' % (number, name)
        if 8 + len(line) + len(text) > COLUMNS:
            print("\t" + line.rstrip())
            line, text = "", '[%d] = "%s",' % (number, name)
        line += text + " "
        last = number
    print("\t" + line.rstrip() + "\n};")


main()
