# SPDX-License-Identifier: Apache-2.0
"""What the readers of other profilers' files are tried on: tachyon.py KIND SECONDS, with KIND one, threads, deep or asyncio."""
import asyncio
import gc
import sys
import threading
import time

KIND, END = sys.argv[1], time.monotonic() + float(sys.argv[2])


class Node:
    pass


def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)


def collect():
    gc.collect()  # the profiler shows that in frames only that it has not met at its last sample


def garbage():
    kept = [[] for _ in range(20_000)]  # so that a collection takes part of a millisecond: some samples find it
    while kept and time.monotonic() < END:
        for _ in range(2000):
            node = Node()
            node.itself = node
        collect()


def sleeper():
    while time.monotonic() < END:
        time.sleep(0.01)


def deep(n):
    if n:
        return deep(n - 1)
    while time.monotonic() < END:
        sum(range(200))


def raising():
    while time.monotonic() < END:
        try:
            raise ValueError("x")
        except ValueError:
            sum(range(1000))


async def leaf(n):
    while time.monotonic() < END:
        sum(range(200 * n))
        await asyncio.sleep(0)


async def middle(n):
    await leaf(n)


async def gather():
    await asyncio.gather(*(middle(n) for n in range(1, 5)))


if KIND == "one":
    while time.monotonic() < END:
        fib(14)
elif KIND == "deep":
    sys.setrecursionlimit(5000)
    deep(400)
elif KIND == "asyncio":
    asyncio.run(gather())
else:
    threads = [threading.Thread(target=f, args=args) for f, args in ((garbage, ()), (sleeper, ()), (deep, (40,)), (raising, ()))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
