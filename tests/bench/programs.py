# SPDX-License-Identifier: Apache-2.0
"""The programs that `make bench` profiles: programs.py NAME [FILE].

Prints READY and the address of its thread's state, or 0, on a line when it is up, then works until SIGTERM, at which it prints `WORK n` and ends. FILE, when given, is an
array of 64-bit counters, one a worker, which the workers keep up to date: that is how the bench sees what a profiler costs its
target while both run. One unit of work is short (about a millisecond), so that counting it is no load of its own."""
import asyncio
import dataclasses
import json
import mmap
import os
import re
import signal
import struct
import sys
import threading

SLOTS = 1024


class Counters:
    """Work done, by worker. A slot has one writer; a reader sees a slightly old value, never a torn one (8 aligned bytes)."""

    def __init__(self, path):
        if path is None:
            self.memory = memoryview(bytearray(8 * SLOTS))
        else:
            fd = os.open(path, os.O_RDWR)
            self.memory = memoryview(mmap.mmap(fd, 8 * SLOTS))
            os.close(fd)
        self.slots = self.memory.cast("Q")

    def total(self):
        return sum(self.slots)


def add(a, b):
    return a + b


def calls():
    """Short calls, about 100 ns each: the case that is hardest to read whole."""
    total = 0
    for number in range(5000):
        total = add(total, number)
    return total


def at_depth(depth, work):
    """Runs work below depth - 1 frames of this function."""
    if depth > 2:
        return at_depth(depth - 1, work)
    return work()


def burn(slot):
    slots = COUNTERS.slots
    while True:
        calls()
        slots[slot] += 1


def depth(frames):
    """<module>, start, at_depth…, the lambda, burn, calls, add: add, where it is most of the time, stands `frames` deep."""

    def start():
        ready(thread_state())
        at_depth(frames - 5, lambda: burn(0))

    return start


def rec200():
    ready()
    descend_forever(200, COUNTERS.slots)


def descend_forever(level, slots):
    if level:
        return descend_forever(level - 1, slots)
    while True:
        calls()
        slots[0] += 1


def deep5000():
    # The interpreter's own limit counts Python frames only from 3.11 on; before that the C stack has to be large enough.
    sys.setrecursionlimit(6000)
    threading.stack_size(512 << 20)
    worker = threading.Thread(target=deep_worker, name="deep", daemon=True)
    worker.start()
    threading.Event().wait()


def deep_worker():
    ready()
    descend_forever(5000, COUNTERS.slots)


def busy_threads(count):
    def start():
        barrier = threading.Barrier(count)

        def worker(slot):
            barrier.wait()
            at_depth(8, lambda: burn(slot))

        for slot in range(1, count):
            threading.Thread(target=worker, args=(slot,), name="busy %d" % slot, daemon=True).start()
        ready()
        worker(0)

    return start


def parked500():
    """499 threads wait for ever, at a depth of a dozen; the main thread works a little, now and then."""
    forever = threading.Event()

    def parked():
        at_depth(8, forever.wait)

    for slot in range(499):
        threading.Thread(target=parked, name="parked %d" % slot, daemon=True).start()
    ready()
    while True:
        calls()
        COUNTERS.slots[0] += 1
        forever.wait(0.01)


async def task_level(level):
    if level:
        return await task_level(level - 1)
    await asyncio.sleep(0)
    return calls_short()


def calls_short():
    total = 0
    for number in range(50):
        total = add(total, number)
    return total


async def task(slot):
    while True:
        for _ in range(20):
            await task_level(slot % 7)
        COUNTERS.slots[slot] += 1


async def tasks():
    ready()
    await asyncio.gather(*[task(slot) for slot in range(20)])


def asyncio20():
    asyncio.run(tasks())


async def relay(incoming, outgoing):
    while True:
        number = await incoming.get()
        await outgoing.put(add(number, 1))


async def fetch(level):
    if level:
        return await fetch(level - 1)
    await asyncio.sleep(0)
    return level


async def client(slot, outgoing, incoming):
    """Each unit of work is 20 requests: through a chain of queues, and to two tasks of its own that it awaits."""
    while True:
        for _ in range(20):
            await outgoing.put(slot)
            first = asyncio.ensure_future(fetch(slot % 5))
            await fetch(slot % 3)
            await incoming.get()
            await first
        COUNTERS.slots[slot] += 1


async def service():
    """32 clients, each behind three relays: 128 tasks that mostly await queues, each other and sleeps of 0."""
    running = []
    for slot in range(32):
        queues = [asyncio.Queue(2) for _ in range(4)]
        running += [relay(*queues[at:at + 2]) for at in range(3)]
        running.append(client(slot, queues[0], queues[3]))
    ready()
    await asyncio.gather(*running)


def awaits():
    asyncio.run(service())


async def validate(row):
    return {key: str(value) for key, value in row.items()}


async def rows(count):
    await asyncio.sleep(0.001)
    return [{"id": number, "name": "user %d" % number, "tags": ["a", "b", "c"]} for number in range(count)]


async def visitor(session, url):
    while True:
        async with session.get(url) as response:
            await response.json()
        COUNTERS.slots[0] += 1


async def serve(aiohttp, web):
    """A server that answers from a database (a sleep of 1 ms) through a middleware, and 16 clients of it: each request makes its coroutines anew."""

    async def answer(_request):
        return web.json_response([await validate(row) for row in await rows(20)])

    @web.middleware
    async def timed(request, handler):
        response = await handler(request)
        response.headers["X-Timed"] = "1"
        return response

    app = web.Application(middlewares=[timed])
    app.router.add_get("/", answer)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    url = "http://127.0.0.1:%d/" % runner.addresses[0][1]
    async with aiohttp.ClientSession() as session:
        ready()
        await asyncio.gather(*[visitor(session, url) for _ in range(16)])


def web():
    """What tests/bench/setup-web got from PyPI lies beside this file."""
    sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "web"))
    import aiohttp
    import aiohttp.web

    asyncio.run(serve(aiohttp, aiohttp.web))


@dataclasses.dataclass
class Order:
    number: int
    customer: str
    items: list
    total: float = 0.0

    def add_up(self):
        self.total = sum(item["price"] * item["count"] for item in self.items)
        return self


LOG_LINE = re.compile(r"(?P<date>\d{4}-\d\d-\d\d) (?P<level>[A-Z]+) order=(?P<order>\d+) (?P<text>.*)")


def parse_log(lines):
    found = {}
    for line in lines:
        match = LOG_LINE.match(line)
        if match and match.group("level") != "DEBUG":
            found.setdefault(match.group("order"), []).append(re.sub(r"\d+", "#", match.group("text")))
    return found


def round_trip(orders):
    text = json.dumps([dataclasses.asdict(order) for order in orders], sort_keys=True)
    return [Order(**fields).add_up() for fields in json.loads(text)]


def real():
    """What services do: JSON, regular expressions, data classes, sorting with a key, comprehensions."""
    lines = ["2024-05-%02d %s order=%d took %d ms" % (n % 28 + 1, "INFO" if n % 3 else "DEBUG", n % 17, n) for n in range(12)]
    orders = [
        Order(n, "customer %d" % (n % 5), [{"name": "thing %d" % k, "price": k * 1.5, "count": k % 4} for k in range(6)])
        for n in range(3)
    ]
    ready()
    slots = COUNTERS.slots
    while True:
        parse_log(lines)
        for order in sorted(round_trip(orders), key=lambda order: (order.customer, -order.total)):
            " ".join(item["name"].title() for item in order.items)
        slots[0] += 1


WORKLOADS = {
    "depth8": depth(8),
    "depth10": depth(10),
    "rec200": rec200,
    "threads16": busy_threads(16),
    "asyncio20": asyncio20,
    "awaits": awaits,
    "web": web,
    "real": real,
    "parked500": parked500,
    "busy500": busy_threads(500),
    "deep5000": deep5000,
}


def thread_state():
    """The address of this thread's PyThreadState, for the bench to find what a sampler has to copy; 0 of a Python that was built without ctypes."""
    try:
        import ctypes
    except ImportError:
        return 0
    get = ctypes.pythonapi.PyThreadState_Get
    get.restype = ctypes.c_void_p
    return get()


def ready(thread=0):
    print("READY %x" % thread, flush=True)


def finish(_number, _frame):
    print("WORK %d" % COUNTERS.total(), flush=True)
    os._exit(0)  # the workers are daemon threads that never end


if __name__ == "__main__":
    COUNTERS = Counters(sys.argv[2] if len(sys.argv) > 2 else None)
    signal.signal(signal.SIGTERM, finish)
    WORKLOADS[sys.argv[1]]()
