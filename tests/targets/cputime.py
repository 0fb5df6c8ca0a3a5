# SPDX-License-Identifier: Apache-2.0
"""Threads with a known use of the CPU, by their own clocks: cputime.py TABLE KIND. Runs on 3.6 to 3.15.

Each thread has a log of ROWS rows, the first of which holds how many there are: [CLOCK_REALTIME, the thread's CPU time, what of it went to
its first function, to its second], in ns. The kinds:
  split    one thread, seven() and three() use the CPU 70 : 30
  sleeper  one that sleeps in nap() but for a moment in wake(), beside one that burns in seven() and three()
  gil      three threads that want the GIL all the time
  crowd    three threads in C code without the GIL, on two CPUs
  native   one thread in C code without the GIL (hashed(), 60 %) and in Python code (counted(), 40 %), beside one in Python code"""
import hashlib
import os
import sys
import threading
import time

import truth

ROWS = 20000
MS = 1000000
KINDS = {"split": 1, "sleeper": 2, "gil": 3, "crowd": 3, "native": 2}
COUNT = KINDS[sys.argv[2]]
WORDS = truth.table(sys.argv[1], COUNT * ROWS)
BUFFER = b"x" * 200000
started = threading.Barrier(COUNT + 1)
ids = {}


def clock(number=time.CLOCK_THREAD_CPUTIME_ID):
    return int(time.clock_gettime(number) * 1e9)


class Log:
    def __init__(self, me):
        self.first = self.second = 0
        self.base, self.count = me * ROWS * truth.COLUMNS, 1

    def add(self, now):
        if self.count == ROWS:
            return
        at = self.base + self.count * truth.COLUMNS
        WORDS[at], WORDS[at + 1], WORDS[at + 2], WORDS[at + 3] = clock(time.CLOCK_REALTIME), now, self.first, self.second
        WORDS[self.base] = self.count  # behind what it counts
        self.count += 1


def seven(end):
    while clock() < end:
        for _ in range(500):
            pass


def three(end):
    while clock() < end:
        for _ in range(500):
            pass


def hashed(end):
    while clock() < end:
        hashlib.sha256(BUFFER)


def counted(end):
    while clock() < end:
        for _ in range(500):
            pass


def nap():
    time.sleep(0.02)


def wake():
    sum(range(20000))


def split(first, first_ns, second, second_ns, me):
    ids[me] = truth.native_id()
    started.wait()
    log = Log(me)
    now = clock()
    log.add(now)
    while True:
        first(now + first_ns)
        middle = clock()
        second(middle + second_ns)
        end = clock()
        log.first += middle - now
        log.second += end - middle
        now = end
        log.add(now)


def sleep(me):
    ids[me] = truth.native_id()
    started.wait()
    log = Log(me)
    while True:
        log.add(clock())
        nap()
        before = clock()
        wake()
        log.first += clock() - before


def start(target, *args):
    threading.Thread(target=target, args=args, daemon=True).start()


if sys.argv[2] in ("split", "sleeper"):
    start(split, seven, 14 * MS, three, 6 * MS, 0)
if sys.argv[2] == "sleeper":
    start(sleep, 1)
if sys.argv[2] == "gil":
    for number in range(COUNT):
        start(split, seven, 14 * MS, three, 6 * MS, number)
if sys.argv[2] == "crowd":
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:2])
    for number in range(COUNT):
        start(split, hashed, 30 * MS, hashed, 30 * MS, number)
if sys.argv[2] == "native":
    start(split, hashed, 12 * MS, counted, 8 * MS, 0)
    start(split, seven, 14 * MS, three, 6 * MS, 1)
started.wait()
truth.ready(threads={ids[number]: number for number in ids})
threading.Event().wait()
