# SPDX-License-Identifier: Apache-2.0
"""Threads that start and end all the time, each with a few frames: churn.py [LIFETIME_MS]. Runs on 3.6 to 3.15.

Every stack that can be seen under `life` is life → outer → inner (→ time.sleep or a loop)."""
import sys
import threading
import time

import truth

LIFETIME = (float(sys.argv[1]) if len(sys.argv) > 1 else 3) / 1000


def inner(until):
    while time.perf_counter() < until:
        for _ in range(500):
            pass
        time.sleep(0)


def outer(until):
    inner(until)


def life():
    outer(time.perf_counter() + LIFETIME)


def spawn():
    count = 0
    while True:
        threads = [threading.Thread(target=life, name="churn %d" % (count + n)) for n in range(4)]
        count += len(threads)
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()


threading.Thread(target=spawn, name="spawner", daemon=True).start()
truth.ready()
threading.Event().wait()
