# SPDX-License-Identifier: Apache-2.0
"""What a core on the shelf is of: standing.py FILE. All its threads stand, each by its name in a place of its own, and the main thread stands in C
with the GIL. Before that the program writes to FILE, as JSON, where it stands itself; then it says READY.

    {"version": [3, 14, 3], "pid": …, "holds": thread, "awaits": thread, "handles": thread, "threads": {thread: {"name": …, "frames": [[name, file, line], …]}}}

Frames are innermost first, as sys._current_frames() has them; a thread is told by its number in the system."""
import ctypes
import json
import os
import sys
import threading
import time

import truth

GATE = threading.Lock()
DEPTH = 300
C = ctypes.PyDLL(None)  # does not let go of the GIL
NATIVE_IDS = {}  # by threading.get_ident()


def wait():
    GATE.acquire()


def asleep():
    time.sleep(1000000)


def awaiting():
    """Comes back from its sleep to wait for the GIL."""
    while True:
        time.sleep(0.001)


def recursion(n):
    if n == 0:
        wait()
        return 0
    return 1 + recursion(n - 1)


def numbers(n):
    if n:
        yield from numbers(n - 1)
    wait()
    yield n


def generator():
    return sum(x for x in numbers(5))


async def innermost():
    wait()


async def awaited(n):
    if n:
        return await awaited(n - 1)
    return await innermost()


async def items():
    await awaited(4)
    yield 1


async def consumer():
    async for _item in items():
        pass


def coroutine():
    consumer().send(None)


def exception():
    try:
        raise KeyError("in hand")
    except KeyError:
        wait()


class Context:
    def __enter__(self):
        return self

    def __exit__(self, *_error):
        wait()


def leaving():
    with Context():
        pass


def comparing():
    return sorted([3, 1, 2], key=lambda x: wait() or x)


def evaluated():
    exec(compile("def made():\n    wait()\n\n\nmade()\n", "<made>", "exec"), {"wait": wait})


WORK = [recursion, generator, coroutine, exception, leaving, comparing, evaluated, asleep, awaiting]


def begin(function, args, begun):
    NATIVE_IDS[threading.get_ident()] = truth.native_id()
    begun.release()
    function(*args)


def all_stand():
    """Whether each thread is at its place. Some may wait for the GIL there, which this thread has."""
    frames = sys._current_frames()
    return all(frames[ident].f_code.co_name in ("wait", "asleep", "awaiting") for ident in NATIVE_IDS if ident != threading.get_ident())


def place(frame):
    code = frame.f_code
    return [getattr(code, "co_qualname", code.co_name), code.co_filename, frame.f_lineno]


def frames_of(frame):
    found = []
    while frame:
        found.append(place(frame))
        frame = frame.f_back
    return found


def write(fd, text):
    data = text.encode()
    while data:
        data = data[C.write(fd, data, len(data)):]


def told(main):
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    number = {names[ident]: NATIVE_IDS[ident] for ident in NATIVE_IDS}
    frames = sys._current_frames()
    frames[threading.get_ident()] = main
    threads = {NATIVE_IDS[ident]: {"name": names[ident], "frames": frames_of(frame)} for ident, frame in frames.items()}
    facts = {"holds": os.getpid(), "awaits": number["awaiting"], "handles": number["exception"]}
    return dict(facts, version=list(sys.version_info[:3]), pid=os.getpid(), threads=threads)


def tell(fd, frame):
    """From here to the end of main() this thread has the GIL."""
    write(fd, json.dumps(told(frame)))
    write(1, "READY\n")


def main():
    fd = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    NATIVE_IDS[threading.get_ident()] = os.getpid()
    threading.stack_size(1 << 20)
    GATE.acquire()
    begun = threading.Semaphore(0)
    for function in WORK:
        args = (DEPTH,) if function is recursion else ()
        threading.Thread(target=begin, args=(function, args, begun), name=function.__name__, daemon=True).start()
        begun.acquire()
    while not all_stand():
        time.sleep(0.01)
    sys.setswitchinterval(1000)
    tell(fd, sys._getframe()), C.pause()


main()
