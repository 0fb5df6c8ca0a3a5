# SPDX-License-Identifier: Apache-2.0
"""Python that C calls back: sorted(key=), functools.reduce, re.sub, map, and such calls inside such callbacks."""
import functools
import re
import sys

GRAMMAR = {
    "": ["main"],
    "main": ("<module>", {"loop": ["loop"]}),
    "loop": ("loop", {"sorting": ["sorting"], "reducing": ["reducing"], "replacing": ["replacing"], "nesting": ["nesting"]}),
    "sorting": ("sorting", {"sorted": ["key"]}),
    "key": ("key", {"key_work": ["key_work"]}),
    "key_work": ("key_work", {}),
    "reducing": ("reducing", {"reduce": ["add"]}),
    "add": ("add", {"add_work": ["add_work"]}),
    "add_work": ("add_work", {}),
    "replacing": ("replacing", {"compiled": ["replace"], "module": ["replace_too"]}),
    "replace": ("replace", {}),
    "replace_too": ("replace", {}, {"via": "library"}),
    "nesting": ("nesting", {"outer": ["outer_key"]}),
    "outer_key": ("outer_key", {"outer_call": ["outer_work"], "inner": ["inner_key"], "mapped": ["mapped"]}),
    "outer_work": ("outer_work", {}),
    "inner_key": ("inner_key", {"inner_call": ["inner_work"]}),
    "inner_work": ("inner_work", {}),
    "mapped": ("mapped", {}),
}
NUMBERS = [5, 3, 9, 1, 7, 2]
PATTERN = re.compile("[aeiou]")


def key_work(value):
    return -value


def key(value):
    return key_work(value)  #@ key_work


def sorting():
    return sorted(NUMBERS, key=key)  #@ sorted


def add_work(one, two):
    return one + two


def add(one, two):
    return add_work(one, two)  #@ add_work


def reducing():
    return functools.reduce(add, NUMBERS)  #@ reduce


def replace(match):
    return match.group()


def replacing():
    PATTERN.sub(replace, "education")  #@ compiled
    return re.sub("[aeiou]", replace, "education")  #@ module


def inner_work(value):
    return value


def inner_key(value):
    return inner_work(value)  #@ inner_call


def outer_work(value):
    return value


def mapped(value):
    return value


def outer_key(value):
    outer_work(value)  #@ outer_call
    sorted(NUMBERS, key=inner_key)  #@ inner
    return list(map(mapped, NUMBERS))  #@ mapped


def nesting():
    return sorted(NUMBERS, key=outer_key)  #@ outer


def loop():
    while True:
        sorting()  #@ sorting
        reducing()  #@ reducing
        replacing()  #@ replacing
        nesting()  #@ nesting


sys.stdout.write("READY\n")
sys.stdout.flush()
loop()  #@ loop
