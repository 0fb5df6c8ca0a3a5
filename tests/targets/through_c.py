# SPDX-License-Identifier: Apache-2.0
"""Python called by Python, with C between or without: through_c.py [STAND].

Each function by_… leads to reach(), in one way. Without STAND all are called again and again. With the name of one of them, that one is
called, and stands in reach() for good. Runs on 3.6 to 3.15."""
import functools
import json
import re
import sys
import time

import truth

STAND = sys.argv[1] if len(sys.argv) > 1 else None


def reach(*_):
    if STAND:
        truth.ready()
        time.sleep(3600)
    end = time.perf_counter() + 0.002
    while time.perf_counter() < end:
        pass
    return 0


def text(_match):
    reach()
    return "x"


def generator():
    reach()
    yield 1


def delegating():
    yield from generator()


class Thing:
    def __init__(self):
        reach()


class Operand:
    def __add__(self, _other):
        return reach()


class Context:
    def __enter__(self):
        return reach()

    def __exit__(self, *_):
        pass


def by_sorted():
    sorted([1], key=reach)


def by_reduce():
    functools.reduce(reach, [1, 2])


def by_sub():
    re.sub("a", text, "a")


def by_default():
    json.JSONEncoder(default=reach, check_circular=False).encode(Context())


def by_map():
    list(map(reach, [1]))


def by_call():
    reach()


def by_for():
    for _ in generator():
        pass


def by_list():
    list(generator())


def by_yield_from():
    for _ in delegating():
        pass


def by_class():
    Thing()


def by_add():
    Operand() + 1


def by_with():
    with Context():
        pass


def by_partial():
    functools.partial(reach)()


WAYS = [value for name, value in sorted(globals().items()) if name.startswith("by_")]
if STAND:
    globals()[STAND]()
truth.ready()
while True:
    for way in WAYS:
        way()
