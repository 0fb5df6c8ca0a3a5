# SPDX-License-Identifier: Apache-2.0
"""A multiprocessing master with workers that stay, and children that come and go: forks.py [WORKERS [LIFETIME_MS]].

A lifetime of 0 makes no short-lived children. READY tells the workers' pids. Every tenth short-lived child is not a
Python program. Runs on 3.6 to 3.15."""
import multiprocessing
import os
import subprocess
import sys
import threading
import time

import truth

WORKERS = int(sys.argv[1]) if len(sys.argv) > 1 else 2
LIFETIME = (float(sys.argv[2]) if len(sys.argv) > 2 else 0) / 1000


def spin(seconds):
    until = time.perf_counter() + seconds
    while time.perf_counter() < until:
        for _ in range(1000):
            pass


def worker_loop():
    while os.getppid() == MASTER:
        spin(0.05)
        time.sleep(0.01)


def short_lived():
    spin(LIFETIME)


def come_and_go():
    count = 0
    while True:
        if count % 10 == 9:
            subprocess.call(["sleep", "0.02"])
        else:
            child = FORK.Process(target=short_lived)
            child.start()
            child.join()
        count += 1


MASTER = os.getpid()
FORK = multiprocessing.get_context("fork")
workers = [FORK.Process(target=worker_loop, daemon=True) for _ in range(WORKERS)]
for worker in workers:
    worker.start()
truth.ready(workers=[worker.pid for worker in workers])
if LIFETIME:
    come_and_go()
threading.Event().wait()
