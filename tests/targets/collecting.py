# SPDX-License-Identifier: Apache-2.0
"""Collects garbage for a part of its time that it measures itself: collecting.py TABLE long|short|callback|finalizer.

long: collections of milliseconds, of many cycles; short: of about 50 µs, of few, in the youngest generation; callback, finalizer: those
of few, in which most time goes in Python functions that the collector calls. Row 0: [ns collecting, ns since the beginning, 0, 0].
Runs on 3.6 to 3.15."""
import gc
import sys
import time

import truth

WORDS = truth.table(sys.argv[1], 1)
KIND = sys.argv[2]
CYCLES = 20000 if KIND == "long" else 300
began = 0.0
collected = 0.0
clock = time.perf_counter


def spin(seconds):
    end = clock() + seconds
    while clock() < end:
        pass


def called_back(phase, _info):
    if phase == "start":
        spin(0.001)


class Finalized:
    def __del__(self):
        spin(0.001)


def collect():
    global collected
    cycles = []
    for _ in range(CYCLES):
        cycle = []
        cycle.append(cycle)
        cycles.append(cycle)
    if KIND == "finalizer":
        cycle = Finalized()
        cycle.me = cycle
        del cycle
    del cycles
    start = clock()
    gc.collect(2 if KIND == "long" else 0)
    end = clock()
    collected += end - start
    WORDS[0] = int(collected * 1e9)
    WORDS[1] = int((end - began) * 1e9)


gc.disable()
gc.collect()
if KIND == "callback":
    gc.callbacks.append(called_back)
truth.ready()
began = clock()
while True:
    collect()
    spin(0.01 if CYCLES > 1000 else 0.0015 if KIND in ("callback", "finalizer") else 0.0001)
