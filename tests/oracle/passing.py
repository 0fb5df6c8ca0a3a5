# SPDX-License-Identifier: Apache-2.0
"""Coroutines in the middle whose callee depends on who awaits them, as decorators and middleware have: they are given what they call or await.
Each lies where the one before it lay, so that what is read a microsecond late can be of another awaiter. Two
call C between two awaits, where no coroutine runs."""
import sys

GRAMMAR = {
    "": ["main"],
    "main": ("<module>", {"loop": ["loop"]}),
    "loop": ("loop", {"shared": ["shared"]}),
    "shared": ("shared", {"shared_a": ["first"], "shared_b": ["second"], "shared_c": ["third"], "shared_d": ["fourth"]}),
    "first": ("first", {"first_passes": ["passes_one"]}),
    "second": ("second", {"second_passes": ["passes_two"]}),
    "third": ("third", {"third_runs": ["runs_work"]}),
    "fourth": ("fourth", {"fourth_runs": ["runs_rest"]}),
    "passes_one": ("passes", {"passes": ["one"]}),
    "passes_two": ("passes", {"passes": ["two"]}),
    "runs_work": ("runs", {"runs": ["work"]}),
    "runs_rest": ("runs", {"runs": ["rest"]}),
    "one": ("one", {"one_work": ["work"]}),
    "two": ("two", {"two_rest": ["rest"]}),
    "work": ("work", {}),
    "rest": ("rest", {}),
}


def work():
    total = 0
    for i in range(5):
        total += i
    return total


def rest():
    return 2


async def one():
    return work()  #@ one_work


async def two():
    return rest()  #@ two_rest


async def passes(call):
    return await call()  #@ passes


async def runs(call):
    return call()  #@ runs


async def first():
    for _ in range(3):
        await passes(one)  #@ first_passes


async def second():
    for _ in range(3):
        dict(between=2)
        await passes(two)  #@ second_passes


async def third():
    for _ in range(3):
        dict(between=1)
        await runs(work)  #@ third_runs


async def fourth():
    for _ in range(3):
        await runs(rest)  #@ fourth_runs


async def shared():
    for _ in range(3):
        await first()  #@ shared_a
        await second()  #@ shared_b
        await third()  #@ shared_c
        await fourth()  #@ shared_d


def loop():
    while True:
        try:
            shared().send(None)  #@ shared
        except StopIteration:
            pass


sys.stdout.write("READY\n")
sys.stdout.flush()
loop()  #@ loop
