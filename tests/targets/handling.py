# SPDX-License-Identifier: Apache-2.0
"""Handles exceptions for a part of its time that it measures itself: handling.py TABLE KIND; the kinds are the functions below.
Row 0: [ns while an exception is handled, ns while none is, 0, 0], which is all of its time. Runs on 3.6 to 3.15."""
import asyncio
import sys
import time

import truth

WORDS = truth.table(sys.argv[1], 1)
times = [0.0, 0.0]
clock = time.perf_counter
last = [clock(), 1]  # when the last call of spend() ended, and its row


def spend(row, milliseconds):
    begin = clock()
    # The event loop, up to 2 % of the time, runs with none in hand whatever its coroutines have.
    between = 0 if row == last[1] == 0 and sys.argv[2] != "coroutines" else 1
    times[between] += begin - last[0]
    end = begin
    while end < begin + milliseconds / 1000:
        end = clock()
    times[row] += end - begin
    last[0] = end
    last[1] = row
    WORDS[row] = int(times[row] * 1e9)
    WORDS[between] = int(times[between] * 1e9)


def in_hand(milliseconds):
    assert sys.exc_info()[0] is not None
    spend(0, milliseconds)


def none_in_hand(milliseconds):
    assert sys.exc_info()[0] is None
    spend(1, milliseconds)


def nested():
    none_in_hand(4)
    try:
        raise ValueError
    except ValueError:
        in_hand(1)
        try:
            raise TypeError
        except TypeError:
            in_hand(1)
        in_hand(1)
        try:
            in_hand(1)
        finally:
            in_hand(1)


def finals():
    try:
        none_in_hand(3)
    finally:
        none_in_hand(1)
    try:
        try:
            raise ValueError
        finally:
            in_hand(4)
    except ValueError:
        pass


def plain(spends):
    spends(1)
    yield 1
    spends(1)


def catching():
    try:
        raise KeyError
    except KeyError:
        in_hand(1)
        yield 1
        in_hand(1)
    none_in_hand(1)


def outer(spends):
    yield from plain(spends)


def generators():
    try:
        raise ValueError
    except ValueError:
        for _ in outer(in_hand):  # no exception of its own: that of the caller
            in_hand(1)
    for _ in outer(none_in_hand):
        none_in_hand(1)
    for _ in catching():
        none_in_hand(2)  # it is suspended in its handler
    try:
        raise ValueError
    except ValueError:
        for _ in plain(in_hand):
            pass


async def catch(spends):
    spends(1)
    await asyncio.sleep(0)
    try:
        raise OSError
    except OSError:
        in_hand(1)
        await asyncio.sleep(0)  # others run meanwhile, with no exception
        in_hand(1)
    spends(2)


async def handle():
    try:
        raise KeyError
    except KeyError:
        await catch(in_hand)


async def both():
    await asyncio.gather(catch(none_in_hand), catch(none_in_hand), handle())


LOOP = asyncio.new_event_loop()


def coroutines():
    LOOP.run_until_complete(both())


truth.ready()
while True:
    globals()[sys.argv[2]]()
