# SPDX-License-Identifier: Apache-2.0
"""Threads whose status is known: status.py TABLE [NATIVE BURNERS].

`burner` runs Python all the time; `sleeper` sleeps; `waiter` waits for a lock that never comes; `native N` works in C with
the GIL released (one of them, or as many as asked for). Rows: native N's [ns in C, ns outside, ns in C off the CPU, 0] in
row N; at the end of each call it waits in C to get the GIL back, which is most of the third.
Runs on 3.6 to 3.15."""
import ctypes
import os
import sys
import threading
import time

import truth

NATIVE = int(sys.argv[2]) if len(sys.argv) > 2 else 1
WORDS = truth.table(sys.argv[1], NATIVE + 1)
ids = {}
started = threading.Barrier(NATIVE + 4)


def begin():
    ids[threading.current_thread().name] = truth.native_id()
    started.wait()


def burn():
    begin()
    while True:
        for _ in range(10000):
            pass


def sleep():
    begin()
    while True:
        time.sleep(3600)


def wait():
    lock = threading.Lock()
    lock.acquire()
    begin()
    lock.acquire()


def sorter():
    """A function that sorts random words in C, by libc's own comparison, with the GIL released, for most of a second."""
    libc = ctypes.CDLL(None)
    compare = ctypes.cast(libc.strcmp, ctypes.c_void_p)
    words = 20000
    while True:
        pristine = b"".join(os.urandom(7).replace(b"\0", b"\1") + b"\0" for _ in range(words))
        scratch = ctypes.create_string_buffer(len(pristine))

        def sort():
            ctypes.memmove(scratch, pristine, len(pristine))
            libc.qsort(scratch, ctypes.c_size_t(words), ctypes.c_size_t(8), compare)

        before = time.perf_counter()
        sort()
        took = time.perf_counter() - before
        if took > 0.4:
            return sort
        words = int(words * min(8, 0.6 / took))


def native(me):
    row = me * truth.COLUMNS
    sort = sorter()
    begin()
    left = time.perf_counter()
    while True:
        entered = time.perf_counter()
        ran = time.clock_gettime(time.CLOCK_THREAD_CPUTIME_ID)
        WORDS[row + 1] += int((entered - left) * 1e9)
        sort()
        ran = time.clock_gettime(time.CLOCK_THREAD_CPUTIME_ID) - ran
        left = time.perf_counter()
        WORDS[row] += int((left - entered) * 1e9)
        WORDS[row + 2] += max(0, int((left - entered - ran) * 1e9))


for number in range(NATIVE):
    threading.Thread(target=native, args=(number,), name="native %d" % number, daemon=True).start()
for function, name in ((sleep, "sleeper"), (wait, "waiter"), (burn, "burner")):
    threading.Thread(target=function, name=name, daemon=True).start()
started.wait()
truth.ready(threads={ids[name]: name for name in ids})
threading.Event().wait()
