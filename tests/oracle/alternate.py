# SPDX-License-Identifier: Apache-2.0
"""Two callers that alternate at one depth, so that their callees' frames lie at the same addresses."""
import sys

GRAMMAR = {
    "": ["main"],
    "main": ("<module>", {"loop": ["loop"]}),
    "loop": ("loop", {"red": ["red"], "blue": ["blue"]}),
    "red": ("red", {"red_in": ["red_in"]}),
    "red_in": ("red_in", {"red_deep": ["red_deep"]}),
    "red_deep": ("red_deep", {}),
    "blue": ("blue", {"blue_first": ["blue_in"], "blue_again": ["blue_again"]}),
    "blue_in": ("blue_in", {"blue_deep": ["blue_deep"]}),
    "blue_again": ("blue_again", {}),
    "blue_deep": ("blue_deep", {}),
}


def red_deep():
    return 1


def red_in():
    return red_deep()  #@ red_deep


def red():
    value = 0
    return red_in()  #@ red_in


def blue_deep():
    return 2


def blue_in():
    return blue_deep()  #@ blue_deep


def blue_again():
    return 3


def blue():
    blue_in()  #@ blue_first
    return blue_again()  #@ blue_again


def loop():
    while True:
        red()  #@ red
        blue()  #@ blue


sys.stdout.write("READY\n")
sys.stdout.flush()
loop()  #@ loop
