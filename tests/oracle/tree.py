# SPDX-License-Identifier: Apache-2.0
"""A tree of functions, each with one caller and one call line: tree.py short (calls of 100 ns), long (of 20 µs), or context (short, called by C for
good: Context.run(), below each thread since 3.14)."""
import contextvars
import sys

# Node: (function, {marker of the call line: nodes called there}); "" lists the nodes that a stack begins with. tests/oracle/grammar.py
# tells the rest.
GRAMMAR = {
    "": ["main"],
    "main": ("<module>", {"forest": ["forest"]}),
    "forest": ("forest", {"left": ["left"], "right": ["right"], "deep": ["deep1"]}),
    "left": ("left", {"left_one": ["left_one"], "left_two": ["left_two"]}),
    "left_one": ("left_one", {}),
    "left_two": ("left_two", {}),
    "right": ("right", {"right_one": ["right_one"], "right_two": ["right_two"], "right_three": ["right_three"]}),
    "right_one": ("right_one", {}),
    "right_two": ("right_two", {"right_leaf": ["right_leaf"]}),
    "right_leaf": ("right_leaf", {}),
    "right_three": ("right_three", {}),
    "deep1": ("deep1", {"deep2": ["deep2"]}),
    "deep2": ("deep2", {"deep3": ["deep3"]}),
    "deep3": ("deep3", {"deep4": ["deep4"]}),
    "deep4": ("deep4", {"deep5": ["deep5"]}),
    "deep5": ("deep5", {"deep6": ["deep6"]}),
    "deep6": ("deep6", {}),
}
SPIN = range(400 if sys.argv[1:] == ["long"] else 0)


def left_one():
    for _ in SPIN:
        pass


def left_two():
    total = 0
    for number in SPIN:
        total += number
    return total


def left():
    left_one()  #@ left_one
    return left_two()  #@ left_two


def right_one():
    for _ in SPIN:
        pass


def right_leaf(one, two, three):
    for _ in SPIN:
        pass
    return one, two, three


def right_two(value):
    return right_leaf(value, 2, three=3)  #@ right_leaf


def right_three():
    for _ in SPIN:
        pass


def right():
    right_one()  #@ right_one
    right_two(1)  #@ right_two
    right_three()  #@ right_three


def deep6():
    for _ in SPIN:
        pass


def deep5():
    deep6()  #@ deep6


def deep4():
    deep5()  #@ deep5


def deep3():
    one = 1
    deep4()  #@ deep4
    return one


def deep2():
    deep3()  #@ deep3


def deep1():
    deep2()  #@ deep2


def forest():
    while True:
        left()  #@ left
        right()  #@ right
        deep1()  #@ deep


sys.stdout.write("READY\n")
sys.stdout.flush()
if sys.argv[1:] == ["context"]:
    contextvars.copy_context().run(forest)  #@ forest
forest()  #@ forest
