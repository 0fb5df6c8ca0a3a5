# SPDX-License-Identifier: Apache-2.0
"""Two threads whose variables are bound anew all the time, each to what the others of its frame imply."""
import threading
import time


def leaf(number, label):
    pair = [number, number]
    real = float(number)
    text = "n%d" % number
    return pair, real, text


def spin(start):
    number = start
    kept = ("kept", 1)
    while True:
        number += 1
        returned = leaf(number, "leaf")
        del returned


def collect(start):
    kept = {"kept": [2]}
    while True:
        made = [str(number) for number in range(5)]
        made.clear()


threading.Thread(target=collect, args=(1,), name="collect", daemon=True).start()
print("READY {}", flush=True)
spin(1000)
