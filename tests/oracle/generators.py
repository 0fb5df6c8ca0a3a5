# SPDX-License-Identifier: Apache-2.0
"""Generators and coroutines that are resumed from different places, some through C, and what they call depends on who resumed
them. A generator that waits is on nobody's stack."""
import sys

GRAMMAR = {
    "": ["main"],
    "main": ("<module>", {"loop": ["loop"]}),
    "loop": ("loop", {"one": ["one"], "two": ["two"], "coro": ["coro"], "total": ["counted"], "for": ["numbers"]}),
    "one": ("one", {"one_send": ["shared_one"], "one_next": ["outer"]}),
    "two": ("two", {"two_send": ["shared_two"], "two_next": ["outer"], "two_coro": ["awaiting"]}),
    "coro": ("coro", {"coro_send": ["awaiting"]}),
    # The same generator, and inside it the same line: what was sent decides.
    "shared_one": ("shared", {"shared_call": ["only_one"]}),
    "shared_two": ("shared", {"shared_call": ["only_two"]}),
    "only_one": ("only_one", {}),
    "only_two": ("only_two", {}),
    "outer": ("outer", {"outer_from": ["inner"]}),
    "inner": ("inner", {"inner_from": ["innermost"], "inner_call": ["inner_work"]}),
    "innermost": ("innermost", {"innermost_call": ["innermost_work"]}),
    "inner_work": ("inner_work", {}),
    "innermost_work": ("innermost_work", {}),
    "awaiting": ("awaiting", {"await": ["awaited"]}),
    "awaited": ("awaited", {"awaited_pause": ["pause"], "awaited_call": ["awaited_work"]}),
    "pause": ("__await__", {}),
    "awaited_work": ("awaited_work", {}),
    "counted": ("counted", {"counted_call": ["counted_work"]}),
    "counted_work": ("counted_work", {}),
    "numbers": ("numbers", {}),
}


class Pause:
    def __await__(self):
        yield


def only_one():
    return 1


def only_two():
    return 2


def shared():
    call = yield
    while True:
        call = yield call()  #@ shared_call


def innermost_work():
    return 1


def innermost():
    for _ in range(3):
        innermost_work()  #@ innermost_call
        yield 1


def inner_work():
    return 2


def inner():
    while True:
        inner_work()  #@ inner_call
        yield from innermost()  #@ inner_from


def outer():
    yield from inner()  #@ outer_from


def awaited_work():
    return 1


async def awaited():
    awaited_work()  #@ awaited_call
    await Pause()  #@ awaited_pause
    return awaited_work()  #@ awaited_call


async def awaiting():
    while True:
        await awaited()  #@ await


def counted_work():
    return 1


def counted():
    for _ in range(5):
        yield counted_work()  #@ counted_call


def numbers():
    yield 1
    yield 2
    yield 3


def one(common, nested):
    common.send(only_one)  #@ one_send
    next(nested)  #@ one_next


def two(common, nested, coroutine):
    common.send(only_two)  #@ two_send
    next(nested)  #@ two_next
    coroutine.send(None)  #@ two_coro


def coro(coroutine):
    coroutine.send(None)  #@ coro_send


def loop(common, nested, coroutine):
    while True:
        one(common, nested)  #@ one
        two(common, nested, coroutine)  #@ two
        coro(coroutine)  #@ coro
        sum(counted())  #@ total
        for _ in numbers():  #@ for
            pass


shared_generator = shared()
next(shared_generator)
nested_generator = outer()
running = awaiting()
sys.stdout.write("READY\n")
sys.stdout.flush()
loop(shared_generator, nested_generator, running)  #@ loop
