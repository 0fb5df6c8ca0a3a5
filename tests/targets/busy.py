# SPDX-License-Identifier: Apache-2.0
"""N threads that call and return all the time, at depths from 5 to 30, some of them asleep in between: busy.py [N]."""
import sys
import threading
import time

import truth

COUNT = int(sys.argv[1]) if len(sys.argv) > 1 else 16


def leaf(n):
    return n * n % 7


def descend(n, me):
    if n == 0:
        return sum(leaf(k) for k in range(20))
    return descend(n - 1, me) + leaf(n)


def work(me):
    started.wait()
    while True:
        for depth in range(5, 30):
            descend(depth, me)
        if me % 4 == 3:
            time.sleep(0.02)


started = threading.Barrier(COUNT + 1)
for number in range(COUNT):
    threading.Thread(target=work, args=(number,), name="worker %d" % number, daemon=True).start()
started.wait()
truth.ready()
threading.Event().wait()
