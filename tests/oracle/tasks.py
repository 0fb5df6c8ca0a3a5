# SPDX-License-Identifier: Apache-2.0
"""An asyncio program of about 20 tasks that wait for one another. Garbage is collected in one place only, since what a collection
calls back would else stand above any frame."""
import asyncio
import gc
import sys

ROUNDS = 1000  # of the event loop between collections: not a time, of which a program that is stopped has less to itself

GRAMMAR = {
    "": ["main"],
    "*": [("_remove", "/_weakrefset.py")],  # of the set of all tasks
    "main": ("<module>", {"run": ["program", "worker", "producer", "consumer", "child"]}),
    "program": ("program", {}, {"via": "library"}),
    "worker": ("worker", {"step": ["step"], "each": ["ticker"]}, {"via": "library"}),
    "step": ("step", {"compute": ["compute"]}),
    "compute": ("compute", {"compute_call": ["compute_work"]}),
    "compute_work": ("compute_work", {}),
    "ticker": ("ticker", {"tick_call": ["tick_work"]}),
    "tick_work": ("tick_work", {}),
    "producer": ("producer", {"produce": ["produce_work"]}, {"via": "library"}),
    "produce_work": ("produce_work", {}),
    "consumer": ("consumer", {"consume": ["consume_work"]}, {"via": "library"}),
    "consume_work": ("consume_work", {}),
    "child": ("child", {"child_call": ["child_work"]}, {"via": "library"}),
    "child_work": ("child_work", {}),
}


def compute_work(value):
    return value + 1


def compute(value):
    for _ in range(5):
        value = compute_work(value)  #@ compute_call
    return value


async def step(value):
    await asyncio.sleep(0)
    return compute(value)  #@ compute


def tick_work(value):
    return value


async def ticker():
    for value in range(3):
        yield tick_work(value)  #@ tick_call
        await asyncio.sleep(0)


def child_work():
    return 1


async def child():
    child_work()  #@ child_call
    await asyncio.sleep(0)
    return child_work()  #@ child_call


async def worker(number):
    value = 0
    while True:
        value = await step(value)  #@ step
        async for _ in ticker():  #@ each
            pass
        if number % 4 == 0:
            await asyncio.gather(child(), child())


def produce_work():
    return 1


async def producer(queue):
    while True:
        await queue.put(produce_work())  #@ produce


def consume_work():
    return 1


async def consumer(queue):
    while True:
        await queue.get()
        consume_work()  #@ consume


async def program():
    loop = asyncio.get_event_loop()
    queue = asyncio.Queue(2)
    tasks = []
    for number in range(14):
        tasks.append(loop.create_task(worker(number)))
    for _ in range(3):
        tasks.append(loop.create_task(producer(queue)))
        tasks.append(loop.create_task(consumer(queue)))
    await asyncio.sleep(0.05)
    gc.disable()
    sys.stdout.write("READY\n")
    sys.stdout.flush()
    while tasks:
        for _ in range(ROUNDS):
            await asyncio.sleep(0)
        gc.collect()


asyncio.run(program())  #@ run
