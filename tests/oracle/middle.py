# SPDX-License-Identifier: Apache-2.0
"""Shared functions in the middle, whose callee depends on their caller: each edge exists, half of the paths do not."""
import sys

GRAMMAR = {
    "": ["main"],
    "main": ("<module>", {"loop": ["loop"]}),
    "loop": ("loop", {"a": ["a"], "b": ["b"], "c": ["c"], "d": ["d"]}),
    "a": ("a", {"a_x": ["x_of_a"]}),
    "b": ("b", {"b_x": ["x_of_b"]}),
    "x_of_a": ("x", {"x_call": ["y"]}),
    "x_of_b": ("x", {"x_call": ["z"]}),
    "c": ("c", {"c_p": ["p_of_c"]}),
    "d": ("d", {"d_p": ["p_of_d"]}),
    "p_of_c": ("p", {"p_q": ["q_of_c"]}),
    "p_of_d": ("p", {"p_q": ["q_of_d"]}),
    "q_of_c": ("q", {"q_r": ["r_of_c"]}),
    "q_of_d": ("q", {"q_r": ["r_of_d"]}),
    "r_of_c": ("r", {"r_call": ["y"]}),
    "r_of_d": ("r", {"r_call": ["z"]}),
    "y": ("y", {}),
    "z": ("z", {}),
}


def y():
    return 1


def z():
    return 2


def x(call):
    return call()  #@ x_call


def a():
    return x(y)  #@ a_x


def b():
    return x(z)  #@ b_x


def r(call):
    return call()  #@ r_call


def q(call):
    return r(call)  #@ q_r


def p(call):
    return q(call)  #@ p_q


def c():
    return p(y)  #@ c_p


def d():
    return p(z)  #@ d_p


def loop():
    while True:
        a()  #@ a
        b()  #@ b
        c()  #@ c
        d()  #@ d


sys.stdout.write("READY\n")
sys.stdout.flush()
loop()  #@ loop
