# SPDX-License-Identifier: Apache-2.0
"""Half in Python, half in C, one through the other, until it is killed or SECONDS are over: mixed.py [SECONDS]."""
import sys
import time
import zlib

DATA = bytes(range(256)) * 400


def key(number):
    total = 0
    for i in range(200):
        total += i
    return -number


def sort():
    return sorted(range(100), key=key)


def pack():
    return zlib.compress(DATA, 6)


end = time.monotonic() + (float(sys.argv[1]) if len(sys.argv) > 1 else 3600)
print("READY {}", flush=True)
while time.monotonic() < end:
    sort()
    pack()
