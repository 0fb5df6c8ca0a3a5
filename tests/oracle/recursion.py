# SPDX-License-Identifier: Apache-2.0
"""Recursion whose depth changes all the time, up to 200. A level stands at the line that belongs to its number modulo 3, so that
one frame too many or too few anywhere shows. `recursion.py fixed` goes 200 deep each time."""
import sys

DEPTH = 200
GRAMMAR = {
    "": ["main"],
    "main": ("<module>", {"loop": ["loop"]}),
    "loop": ("loop", {"top": ["down0"]}),
    "down0": ("down", {"zero": ["down1"], "work": ["work"]}, {"most": 201}),
    "down1": ("down", {"one": ["down2"], "work": ["work"]}),
    "down2": ("down", {"two": ["down0"], "work": ["work"]}),
    "work": ("work", {}),
}


def work():
    return 1


def down(level, depth):
    if level == depth:
        return work()  #@ work
    if level % 3 == 0:
        return down(level + 1, depth)  #@ zero
    if level % 3 == 1:
        return down(level + 1, depth)  #@ one
    return down(level + 1, depth)  #@ two


def loop(fixed):
    step = 0
    while True:
        step += 1
        depth = DEPTH if fixed else step * 37 % (DEPTH + 1)
        down(0, depth)  #@ top


sys.stdout.write("READY\n")
sys.stdout.flush()
loop(sys.argv[1:] == ["fixed"])  #@ loop
