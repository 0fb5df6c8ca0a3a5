# SPDX-License-Identifier: Apache-2.0
"""Twenty asyncio tasks that compute for a few microseconds on top of two to seven coroutines, and then let the next one run."""
import asyncio


def add(total, number):
    return total + number


def compute():
    total = 0
    for number in range(50):
        total = add(total, number)
    return total


async def level(depth):  # up to six on one another
    if depth:
        return await level(depth - 1)
    await asyncio.sleep(0)
    return compute()


async def task(depth):
    while True:
        await level(depth)


async def tasks():
    print("READY", flush=True)
    await asyncio.gather(*[task(number % 6) for number in range(20)])


asyncio.run(tasks())
