# SPDX-License-Identifier: Apache-2.0
"""Does the same again at a steady pace, in step with the clock: lockstep.py TABLE PERIOD_NS SLEEP. Three tenths of each period are
first()'s, the rest is second()'s; SLEEP 1: it sleeps in second() to the period's end. Row 0: [ns in first, ns since the beginning,
0, 0]. Runs on 3.6 to 3.15."""
import sys
import time

import truth

WORDS = truth.table(sys.argv[1], 1)
PERIOD = int(sys.argv[2]) / 1e9
SLEEP = sys.argv[3] == "1"
clock = time.perf_counter


def first(end):
    while clock() < end:
        pass


def second(end):
    if SLEEP:
        time.sleep(max(end - clock(), 0))
    while clock() < end:
        pass


inside = 0.0
began = start = clock()
begin = start
truth.ready()
while True:
    first(begin + 0.3 * PERIOD)
    middle = clock()
    inside += middle - start
    WORDS[0] = int(inside * 1e9)
    WORDS[1] = int((middle - began) * 1e9)
    second(begin + PERIOD)
    start = clock()
    begin += PERIOD * max(int((start - begin) / PERIOD), 1)
