# SPDX-License-Identifier: Apache-2.0
"""Threads whose status is known: status.py TABLE [NATIVE BURNERS].

`burner` runs Python all the time; `sleeper` sleeps; `waiter` waits for a lock that never comes; `native N` works in C with
the GIL released (one of them, or as many as asked for). Rows: native N's [ns in C, ns outside, 0, 0] in row N.
Runs on 3.6 to 3.15."""
import hashlib
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


def native(me):
    row = me * truth.COLUMNS
    # One call takes a good part of a second, so that getting the GIL back for the next one is little beside it.
    rounds = 10000
    before = time.perf_counter()
    hashlib.pbkdf2_hmac("sha256", b"password", b"salt", rounds)
    rounds = max(rounds, int(rounds * 0.7 / (time.perf_counter() - before)))
    begin()
    left = time.perf_counter()
    while True:
        entered = time.perf_counter()
        WORDS[row + 1] += int((entered - left) * 1e9)
        hashlib.pbkdf2_hmac("sha256", b"password", b"salt", rounds)
        left = time.perf_counter()
        WORDS[row] += int((left - entered) * 1e9)


for number in range(NATIVE):
    threading.Thread(target=native, args=(number,), name="native %d" % number, daemon=True).start()
for function, name in ((sleep, "sleeper"), (wait, "waiter"), (burn, "burner")):
    threading.Thread(target=function, name=name, daemon=True).start()
started.wait()
truth.ready(threads={ids[name]: name for name in ids})
threading.Event().wait()
