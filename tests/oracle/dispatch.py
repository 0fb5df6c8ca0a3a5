# SPDX-License-Identifier: Apache-2.0
"""Lines that call several functions in turn: plain ones, decorated ones, with other defaults than they were made with, and classes. One of two such lines
has nothing to do with the other's functions, some functions are called by name elsewhere as well, and some last no longer than the call."""
import functools
import sys

WORDS = ("one", "two", "three")
GRAMMAR = {
    "": ["main"],
    "main": ("<module>", {"loop": ["loop"]}),
    "loop": (
        "loop",
        {
            "first": ["add", "negate", "test", "index", "pick", "join", "count", "split", "order", "shift", "around", "larger", "made", "placed"],
            "second": ["red", "blue", "green", "white", "black", "brown", "grey", "pink"],
            "given": ["add", "negate", "scale", "made"],
            "named": ["add", "red"],
        },
    ),
    "add": ("add", {}),
    "negate": ("negate", {}),
    "test": ("test", {}),
    "index": ("index", {}),
    "pick": ("pick", {}),
    "join": ("join", {}),
    "count": ("count", {}),
    "split": ("split", {}),
    "order": ("order", {}),
    "shift": ("shift", {}),
    "red": ("red", {}),
    "blue": ("blue", {}),
    "green": ("green", {}),
    "white": ("white", {}),
    "black": ("black", {}),
    "brown": ("brown", {}),
    "grey": ("grey", {}),
    "pink": ("pink", {}),
    "around": ("around", {"around": ["scale", "turn"]}),
    "scale": ("scale", {}),
    "turn": ("turn", {"turn": ["add"]}),
    "larger": ("larger", {"larger": ["red"]}),
    "made": ("__init__", {"made": ["blue"]}),
    "placed": ("__init__", {}),
}


def decorated(function):
    @functools.wraps(function)
    def around(*args, **named):
        return function(*args, **named)  #@ around

    return around


def add():
    return 1 + len(WORDS)


def negate():
    return -len(WORDS)


def test():
    return not WORDS


def index():
    return WORDS[2]


def pick():
    return WORDS[0]


def join():
    return "-".join(WORDS)


def count():
    total = 0
    for i in range(40):
        total += i
    return total


def split():
    return "a b c".split()


def order():
    return WORDS[::-1]


def shift():
    return 1 << len(WORDS)


def red():
    return 1


def blue():
    return 2


def green():
    total = 3
    for i in range(60):
        total += i
    return total


def white():
    return 4


def black():
    return len(WORDS)


def brown():
    return 6


def grey():
    return WORDS[1]


def pink():
    return 8


def scale():
    return 3 * len(WORDS)


def turn():
    return add()  #@ turn


def larger(more=1):
    return red() + more  #@ larger


larger.__defaults__ = (2,)


class Made:
    def __init__(self):
        self.colour = blue()  #@ made


class Placed:
    def __init__(self):
        self.words = WORDS


FIRST = (add, negate, test, index, pick, join, count, split, order, shift, decorated(scale), decorated(turn), larger, Made, Placed)
SECOND = (red, blue, green, white, black, brown, grey, pink)
GIVEN = (add, negate, scale, Made)
NOTHING = ()


def loop():
    while True:
        for i in range(120):
            FIRST[i % len(FIRST)]()  #@ first
            SECOND[i % len(SECOND)]()  #@ second
        for each in GIVEN:
            each(*NOTHING)  #@ given
        add() + red()  #@ named


sys.stdout.write("READY\n")
sys.stdout.flush()
loop()  #@ loop
