# SPDX-License-Identifier: Apache-2.0
"""Threads parked in known places, and what the interpreter itself says of their stacks.

Prints one line, READY and a JSON object {"pid": …, "threads": {native id: {"name": …, "frames": [[name, file, line],
…]}}}, leaf first, then waits to be killed. Names are qualified where the code object knows its qualified name (3.11+),
as a profiler from outside can know them. Runs on 3.6 to 3.15. One list of places, so one file, though a long one.
"""
import ctypes
import functools
import json
import os
import platform
import re
import select
import sys
import threading
import time

RECURSION_DEPTH = 2000
sys.setrecursionlimit(RECURSION_DEPTH + 500)
threading.stack_size(32 << 20)  # to 3.10 each Python call takes C stack

PARKED = threading.Semaphore(0)
GATE = threading.Lock()  # held for ever: who asks for it is parked inside C, with the caller as the leaf frame
NATIVE = {}  # thread ident -> (native id, name)


def native_id():
    if hasattr(threading, "get_native_id"):
        return threading.get_native_id()
    number = {"x86_64": 186, "aarch64": 178}[platform.machine()]
    return ctypes.CDLL(None).syscall(number)


def park():
    PARKED.release()
    GATE.acquire()


def recursion(n=RECURSION_DEPTH):
    if n == 0:
        park()
        return 0
    # The call stands on a line of its own, after others, so that a wrong line table shows.
    rest = (
        n,
        recursion(n - 1),
    )
    return rest[0]


def even(n):
    if n == 0:
        return park()
    return odd(n - 1)


def odd(n):
    value = even(n - 1)
    return value


def mutual_recursion():
    even(60)


def generators():
    def inner(n):
        yield n
        if n:
            yield from inner(n - 1)
        else:
            park()
            yield -1

    total = 0
    for value in inner(7):
        total += value
    return total


def generator_expression():
    return sum(park() or x for x in range(3))


class Awaitable(object):
    def __await__(self):
        yield "first"
        park()


async def coroutine(n):
    if n == 0:
        await Awaitable()
    else:
        async with Context():
            await coroutine(n - 1)


class Context(object):
    async def __aenter__(self):
        return self

    async def __aexit__(self, *error):
        return None


def coroutines():
    chain = coroutine(5)
    chain.send(None)
    chain.send(None)


async def numbers():
    yield 1
    park()
    yield 2


async def async_comprehension():
    return [x async for x in numbers()]


def async_generator():
    async_comprehension().send(None)


NAMES = """
def größe_ñ():
    kōan_函数()

def kōan_函数():
    𠀀𠀁(1)

def 𠀀𠀁(n):
    class Ünïcode_クラス(object):
        def 方法(self):
            park()
    Ünïcode_クラス().方法()

größe_ñ()
"""


def named(path):
    def run():
        exec(compile(NAMES, path, "exec"), {"park": park})

    return run


def executed():
    exec("def from_a_string():\n\n    park()\n\nfrom_a_string()")


def evaluated():
    eval("[0, park()]")


def long_names():
    name = "f" * 9000
    scope = {"park": park}
    exec(compile("def %s():\n  park()\n%s()" % (name, name), "/" + "long/" * 1500 + "name.py", "exec"), scope)


def far_line():
    exec(compile("def far():\n" + "\n" * 70000 + "    park()\nfar()", "<far line>", "exec"), {"park": park})


def wide_line():
    source = "def wide():\n    return (" + "0 + " * 200 + "\n" * 300 + "(park() or 0))\nwide()"
    exec(compile(source, "<wide line>", "exec"), {"park": park})


def many_lines():
    body = "".join("    x = %d\n" % n for n in range(10000))
    exec(compile("def many(x):\n" + body + "    park()\n" + body + "many(0)", "<many lines>", "exec"), {"park": park})


def lambdas():
    (lambda f: (lambda g: g())(f))(lambda: park())


def comprehensions():
    return [
        {k: park() for k in (1, 2)}
        for _ in range(3)
    ]


def decorated():
    def twice(function):
        @functools.wraps(function)
        def wrapper(*args):
            return function(*args)

        return wrapper

    @twice
    @twice
    def target(value):
        park()
        return value

    target(3)


def sort_key():
    def key(value):
        if value == 2:
            park()
        return -value

    return sorted([1, 2, 3], key=key)


def reduced():
    return functools.reduce(lambda a, b: park() or a, [1, 2, 3])


def substituted():
    def replace(match):
        park()
        return match.group(0)

    return re.sub("b+", replace, "abba")


def mapped():
    return list(map(str, filter(lambda x: park(), [1, 2])))


class Base(object):
    def __init__(self):
        self.method()

    def method(self):
        self.static()

    @staticmethod
    def static():
        Base.of_class()

    @classmethod
    def of_class(cls):
        return cls.Nested().value

    class Nested(object):
        @property
        def value(self):
            return self[1]

        def __getitem__(self, key):
            return +self

        def __pos__(self):
            return self == 1

        def __eq__(self, other):
            with self:
                return True

        __hash__ = None

        def __enter__(self):
            pass

        def __exit__(self, *error):
            park()


def methods():
    Base()


def class_body():
    class Body(object):
        attribute = park()

    return Body


def finalizer():
    class Dying(object):
        def __del__(self):
            park()

    value = Dying()
    del value


def handler():
    try:
        try:
            raise ValueError("known")
        except ValueError:
            raise KeyError("other")
    except KeyError:
        park()


def in_finally():
    try:
        return 1
    finally:
        park()


def trace_function():
    def tracer(frame, event, arg):
        sys.settrace(None)
        park()

    sys.settrace(tracer)
    class_body()


def replaced_code():
    def first():
        park()

    def second():
        pass

    second.__code__ = first.__code__
    second()


def event_wait():
    PARKED.release()
    threading.Event().wait()


def timed_sleep():
    PARKED.release()
    time.sleep(1000000)


def blocking_read():
    read_end, _write_end = os.pipe()
    PARKED.release()
    os.read(read_end, 1)


def in_select():
    read_end, _write_end = os.pipe()
    PARKED.release()
    select.select([read_end], [], [])


def from_c():
    # A C function that calls Python back from a foreign C frame (ctypes makes its own thread state calls).
    kind = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_int), ctypes.POINTER(ctypes.c_int))

    def compare(a, b):
        park()
        return 0

    array = (ctypes.c_int * 3)(3, 1, 2)
    ctypes.CDLL(None).qsort(array, 3, ctypes.sizeof(ctypes.c_int), kind(compare))


def surrogate_name():
    exec(compile("park()", "/tmp/\udcff\udcfe.py", "exec"), {"park": park})


PLACES = [
    (recursion, None),
    (mutual_recursion, None),
    (generators, None),
    (generator_expression, None),
    (coroutines, None),
    (async_generator, None),
    (named("/srv/datei-größe.py"), "Faden größe"),
    (named("/srv/文件 (α; β).py"), "スレッド"),
    (named("/srv/\U0001f40d/\U00020000.py"), "\U0001f9f5 astral"),
    (executed, None),
    (evaluated, None),
    (long_names, "long " + "n" * 300),
    (far_line, None),
    (wide_line, None),
    (many_lines, None),
    (lambdas, None),
    (comprehensions, None),
    (decorated, None),
    (sort_key, None),
    (reduced, None),
    (substituted, None),
    (mapped, None),
    (methods, None),
    (class_body, None),
    (finalizer, None),
    (handler, None),
    (in_finally, None),
    (trace_function, None),
    (replaced_code, None),
    (event_wait, None),
    (timed_sleep, None),
    (blocking_read, "paren) R 1 (x"),
    (in_select, None),
    (from_c, None),
    (surrogate_name, None),
]


def run(place):
    NATIVE[threading.get_ident()] = (native_id(), threading.current_thread().name)
    place()


def frames_of(frame):
    frames = []
    while frame is not None:
        code = frame.f_code
        frames.append([getattr(code, "co_qualname", code.co_name), code.co_filename, frame.f_lineno or 0])
        frame = frame.f_back
    return frames


def look():
    stacks = sys._current_frames()
    return {
        NATIVE[ident][0]: {"name": NATIVE[ident][1], "frames": frames_of(stacks[ident])}
        for ident in NATIVE
        if ident in stacks
    }


def parking_places():
    """(file, line) at which a thread tells that it parks, and may not yet have come further."""
    path = park.__code__.co_filename
    with open(path, "rb") as file:
        return {(path, number) for number, text in enumerate(file, 1) if text.strip() == b"PARKED.release()"}


def report():
    for _ in PLACES:
        PARKED.acquire()
    # The semaphore is released just before a thread parks: wait until none is there any more, and two looks agree.
    parking = parking_places()
    before = None
    now = look()
    while (
        before != now
        or len(now) != len(PLACES) + 1
        or any((file, line) in parking for thread in now.values() for _name, file, line in thread["frames"])
    ):
        before = now
        time.sleep(0.3)
        now = look()
    sys.stdout.write("READY " + json.dumps({"pid": os.getpid(), "threads": now}) + "\n")
    sys.stdout.flush()


def main():
    GATE.acquire()
    NATIVE[threading.get_ident()] = (native_id(), "MainThread")
    for place, name in PLACES:
        thread = threading.Thread(target=run, args=(place,), name=name or place.__name__)
        thread.daemon = True
        thread.start()
    threading.Thread(target=report, name="reporter").start()
    GATE.acquire()


main()
