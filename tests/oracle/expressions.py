# SPDX-License-Identifier: Apache-2.0
"""Generator expressions of one function, short enough to be gone when they are read, each where the one before it lay, and what they call depends on
which of them it is. Between them a generator that another function makes."""
import sys

GRAMMAR = {
    "": ["main"],
    "main": ("<module>", {"loop": ["loop"]}),
    "loop": ("loop", {"first": ["first"], "second": ["second"], "third": ["third"], "fourth": ["fourth"], "given": ["given"]}),
    "first": ("<genexpr>", {"first_calls": ["one"]}),
    "second": ("<genexpr>", {"second_calls": ["two"]}),
    "third": ("<genexpr>", {"third_calls": ["three"]}),
    "fourth": ("<genexpr>", {"fourth_calls": []}),
    "given": ("given", {"given_calls": ["four"]}),
    "one": ("one", {}),
    "two": ("two", {}),
    "three": ("three", {}),
    "four": ("four", {}),
}
NUMBERS = (1, 2)


def one(number):
    return number


def two(number):
    return 2 * number


def three(number):
    total = 0
    for i in range(number):
        total += i
    return total


def four(number):
    return 4 * number


def given():
    for number in NUMBERS:
        yield four(number)  #@ given_calls


def loop():
    while True:
        sum(one(number) for number in NUMBERS)  #@ first first_calls
        sum(given())  #@ given
        list(two(number) for number in NUMBERS)  #@ second second_calls
        for _ in (three(number) for number in NUMBERS):  #@ third third_calls
            pass
        max(number for number in NUMBERS)  #@ fourth fourth_calls


sys.stdout.write("READY\n")
sys.stdout.flush()
loop()  #@ loop
