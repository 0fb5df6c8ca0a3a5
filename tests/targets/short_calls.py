# SPDX-License-Identifier: Apache-2.0
"""Most of the time is spent in calls of a quarter of a microsecond, and in making them."""
import sys

ITEMS = ["a", 1, "b", 2.0] * 8

def is_text(item):
    return isinstance(item, str)

def count(items):
    found = 0
    for item in items:
        if is_text(item):
            found += 1
    return found

def loop():
    while True:
        count(ITEMS)

sys.stdout.write("READY\n")
sys.stdout.flush()
loop()
