# SPDX-License-Identifier: Apache-2.0
"""Stands in one instruction for nearly all its time: instructions.py KIND; the kinds are the functions below. Before that it prints which
instruction that is, by dis. Runs on 3.6 to 3.15."""
import dis
import sys

import truth

BIG = 3 ** 4000
TEXT = "a" * 5000000


def calling(numbers=range(3000000)):
    while True:
        sum(numbers)


def adding(a=BIG ** 20, b=BIG ** 20 + 1):
    while True:
        a * b


def comparing(a=[1] * 3000000, b=[1] * 3000000):
    while True:
        a == b


def containing(needle="b", text=TEXT):
    while True:
        needle in text


def subscripting(data=bytes(20000000), rest=slice(1, None)):
    while True:
        data[rest]  # what is dropped then is one piece of memory: POP_TOP takes no time


def iterating(huge=None):
    while True:
        for _ in filter(None, bytes(20000000)):
            pass


def last_before_jump(function):
    """The instruction of the loop that takes long: the last one but those that keep or drop what it made."""
    names = ("CALL", "CALL_FUNCTION", "BINARY_OP", "BINARY_MULTIPLY", "COMPARE_OP", "CONTAINS_OP", "BINARY_SUBSCR", "FOR_ITER")
    found = [step.opname for step in dis.get_instructions(function) if step.opname in names]
    return "FOR_ITER" if "FOR_ITER" in found else found[-1]


truth.ready(opcode=last_before_jump(globals()[sys.argv[1]]))
globals()[sys.argv[1]]()
