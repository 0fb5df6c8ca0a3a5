# SPDX-License-Identifier: Apache-2.0
"""A program that watches over itself: steady.py FILE. Its only thread works and rests in turns, and keeps two numbers in the file: how
many turns there were, and the longest one's nanoseconds. Runs on 3.6 to 3.15."""
import mmap
import os
import sys
import time


def work():
    sum(range(2000))


def rest():
    time.sleep(0.01)


def beat(table):
    last = time.time()
    while True:
        work()
        rest()
        now = time.time()
        table[0] += 1
        table[1] = max(table[1], int((now - last) * 1e9))
        last = now


descriptor = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT, 0o600)
os.ftruncate(descriptor, 16)
beat(memoryview(mmap.mmap(descriptor, 16)).cast("Q"))
