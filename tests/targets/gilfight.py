# SPDX-License-Identifier: Apache-2.0
"""N threads that always want the GIL, and a truthful account of who held it: gilfight.py TABLE [N].

The code between two reads of the clock runs only with the GIL. So time that passed since the holder's own last look was
held by it (also while the kernel had preempted it); time since another thread's last look went into the hand-over.
Row i: [ns held, ns of hand-overs that ended at thread i, 0, 0]. Runs on 3.6 to 3.15."""
import sys
import threading
import time

import truth

COUNT = int(sys.argv[2]) if len(sys.argv) > 2 else 4
WORDS = truth.table(sys.argv[1], COUNT)
last = [(0, int(time.perf_counter() * 1e9))]  # who looked last, and when: ns of CLOCK_MONOTONIC
ids = {}
started = threading.Barrier(COUNT + 1)


def burn(me):
    ids[me] = truth.native_id()
    started.wait()
    held = me * truth.COLUMNS
    clock = time.perf_counter
    while True:
        for _ in range(2000):
            pass
        before = last[0]
        now = int(clock() * 1e9)
        if last[0] is not before:
            continue  # the GIL was lost in between: what was read does not belong together
        last[0] = (me, now)
        WORDS[held if before[0] == me else held + 1] += now - before[1]


for number in range(COUNT):
    threading.Thread(target=burn, args=(number,), name="burner %d" % number, daemon=True).start()
started.wait()
truth.ready(threads={ids[number]: number for number in ids})
threading.Event().wait()
