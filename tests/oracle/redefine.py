# SPDX-License-Identifier: Apache-2.0
"""Functions made by exec and thrown away all the time: their code objects are freed and the addresses used again. Every name, file
and line tells the generation it belongs to, and a stack holds one generation only."""
import sys

# {n} in a function and a file is the generation, the same in all frames of a stack; lines of such code: [first, last] of the
# node's own and those of its calls, later by n modulo "shift"; "fixed": but for the first.
GRAMMAR = {
    "": ["main"],
    "main": ("<module>", {"loop": ["loop"]}),
    "loop": ("loop", {"make": ["make"], "use": ["use"]}),
    "make": ("make", {"define": ["body"]}),
    "body": ("<module>", {}, {"file": "<made {n}>", "own": [0, 99]}),
    "use": ("use", {"call": ["outer"]}),
    "outer": ("outer_{n}", {3: ["inner"]}, {"file": "<made {n}>", "own": [2, 3], "shift": 7, "fixed": True}),
    "inner": ("inner_{n}", {}, {"file": "<made {n}>", "own": [11, 13], "shift": 7}),
}
GENERATIONS = 1009


def source(n):
    """outer begins at line 2 and calls at 3 + n % 7; inner begins at line 11 + n % 7, and its size differs, too."""
    outer = "\ndef outer_%d():\n" % n + "    x = 1\n" * (n % 7) + "    return inner_%d()\n" % n
    inner = "def inner_%d():\n    for _ in (1, 2, 3, 4, 5, 6, 7, 8):\n        x = n%s\n" % (n, " + n" * (n % 3))
    return outer + "\n" * 7 + inner


SOURCES = {}


def make(n):
    names = {"n": n}
    code = compile(SOURCES[n], "<made %d>" % n, "exec")
    exec(code, names)  #@ define
    return names["outer_%d" % n]


def use(function):
    for _ in range(40):
        function()  #@ call


def loop():
    n = 0
    while True:
        n = (n + 1) % GENERATIONS
        function = make(n)  #@ make
        use(function)  #@ use
        del function


for number in range(GENERATIONS):
    SOURCES[number] = source(number)
sys.stdout.write("READY\n")
sys.stdout.flush()
loop()  #@ loop
