# SPDX-License-Identifier: Apache-2.0
"""Coroutines and generators of one size that the same function runs one after the other: each lies where the one before it lay, so that
what the function runs has the same address at every line. Some last as long as a read of their frames takes. The body of `with` is on its line,
since to 3.9 that is left on the last line of its body."""
import sys

GRAMMAR = {
    "": ["main"],
    "main": ("<module>", {"loop": ["loop"]}),
    "loop": (
        "loop",
        {
            "tiny": ["tiny"],
            "unequal": ["unequal"],
            "deep": ["deep"],
            "delegate": ["delegate"],
            "methods": ["methods"],
            "iterate": ["iterate"],
            "through": ["through"],
            "entered": ["entered"],
        },
    ),
    "tiny": ("tiny", {"tiny_a": ["a"], "tiny_b": ["b"]}),
    "unequal": ("unequal", {"unequal_a": ["a"], "unequal_long": ["long"], "unequal_b": ["b"]}),
    "deep": ("deep", {"deep_one": ["one"], "deep_two": ["two"]}),
    "one": ("one", {"one_a": ["a"], "one_waits": ["waits"]}),
    "two": ("two", {"two_b": ["b"], "two_calls": ["calls"]}),
    "delegate": ("delegate", {"delegate_three": ["three"], "delegate_four": ["four"]}),
    "methods": ("methods", {"methods_get": ["get_of_one"], "methods_other": ["get_of_other"]}),
    "iterate": ("iterate", {"iterate_three": ["three"], "iterate_four": ["four"], "iterate_five": ["five"]}),
    "through": ("through", {"through_three": ["three"], "through_four": ["four"], "through_five": ["five"]}),
    "entered": ("entered", {"with_one": ["enter_one", "exit_one"], "with_two": ["enter_two", "exit_two"], "each_three": ["ticks"], "each_four": ["tocks"]}),
    "a": ("a", {}),
    "b": ("b", {}),
    "long": ("long", {"long_work": ["work"]}),
    "waits": ("waits", {"waits_pause": ["pause"]}),
    "calls": ("calls", {"calls_work": ["work"]}),
    "three": ("three", {"three_work": ["work"]}),
    "four": ("four", {}),
    "five": ("five", {"five_work": ["work"]}),
    "get_of_one": ("get", {"of_one": []}),
    "get_of_other": ("get", {"of_other": []}),
    "enter_one": ("__aenter__", {"enters_one": []}),
    "exit_one": ("__aexit__", {"exits_one": []}),
    "enter_two": ("__aenter__", {"enters_two": []}),
    "exit_two": ("__aexit__", {"exits_two": []}),
    "ticks": ("ticks", {"ticks_work": ["work"]}),
    "tocks": ("tocks", {}),
    "pause": ("__await__", {}),
    "work": ("work", {}),
}


class Pause:
    def __await__(self):
        yield


def work():
    return 1


async def a():
    return 1


async def b():
    return 2


async def long():
    total = 0
    for i in range(20):
        total += i
    work()  #@ long_work
    return total


async def waits():
    await Pause()  #@ waits_pause


async def calls():
    return work()  #@ calls_work


def three():
    work()  #@ three_work
    yield 1


def four():
    yield 2
    yield 3


def five():
    yield 4
    work()  #@ five_work


async def ticks():
    work()  #@ ticks_work
    yield 1


async def tocks():
    yield 2
    yield 3


class One:
    async def get(self):
        return 1  #@ of_one

    async def __aenter__(self):
        return 1  #@ enters_one

    async def __aexit__(self, *error):
        return None  #@ exits_one


class Other:
    async def get(self):
        return 2  #@ of_other

    async def __aenter__(self):
        return 2  #@ enters_two

    async def __aexit__(self, *error):
        return None  #@ exits_two


async def tiny():
    for _ in range(10):
        await a()  #@ tiny_a
        await b()  #@ tiny_b


async def unequal():
    for _ in range(3):
        await a()  #@ unequal_a
        await long()  #@ unequal_long
        await b()  #@ unequal_b


async def one():
    await a()  #@ one_a
    await waits()  #@ one_waits


async def two():
    await b()  #@ two_b
    return await calls()  #@ two_calls


async def deep():
    for _ in range(3):
        await one()  #@ deep_one
        await two()  #@ deep_two


def delegate():
    for _ in range(3):
        yield from three()  #@ delegate_three
        yield from four()  #@ delegate_four


async def methods(first, second):
    for _ in range(3):
        await first.get()  #@ methods_get
        await second.get()  #@ methods_other


async def entered(first, second):
    async with first: pass  #@ with_one
    async with second: pass  #@ with_two
    async for _ in ticks():  #@ each_three
        pass
    async for _ in tocks():  #@ each_four
        pass


def iterate():
    for _ in three():  #@ iterate_three
        pass
    for _ in four():  #@ iterate_four
        pass
    for _ in five():  #@ iterate_five
        pass


def through():
    sum(three())  #@ through_three
    list(four())  #@ through_four
    max(five())  #@ through_five


def loop(first, second):
    while True:
        try:
            tiny().send(None)  #@ tiny
        except StopIteration:
            pass
        try:
            unequal().send(None)  #@ unequal
        except StopIteration:
            pass
        coroutine = deep()
        try:
            while True:
                coroutine.send(None)  #@ deep
        except StopIteration:
            pass
        for _ in delegate():  #@ delegate
            pass
        try:
            methods(first, second).send(None)  #@ methods
        except StopIteration:
            pass
        try:
            entered(first, second).send(None)  #@ entered
        except StopIteration:
            pass
        iterate()  #@ iterate
        through()  #@ through


sys.stdout.write("READY\n")
sys.stdout.flush()
loop(One(), Other())  #@ loop
