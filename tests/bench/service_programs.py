# SPDX-License-Identifier: Apache-2.0
"""Processes for the service's bench: service_programs.py NAME COUNT BUSY THREADS [PERIOD WORK] forks COUNT processes of so many threads each,
prints their pids, the busy ones first, and becomes a program that is no Python; when its standard input ends, they all end.

BUSY of them compute in their main thread. That of the others waits or, with PERIOD and WORK in seconds, computes for WORK once each PERIOD,
each process at another time of it. All other threads wait."""
import ctypes
import os
import signal
import sys
import threading
import time

PR_SET_PDEATHSIG = 1
DEPTH = 8


def wait_nested(event, depth):
    if depth:
        wait_nested(event, depth - 1)
    else:
        event.wait()


def compute():
    return sum(i * i for i in range(300))


def work(seconds):
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        compute()


def rest(until):
    time.sleep(max(until - time.monotonic(), 0))


def work_now_and_then(period, seconds, first):
    due = time.monotonic() + first
    while True:
        rest(due)
        work(seconds)
        due = max(due + period, time.monotonic())


def live(number, count, busy, threads, period, seconds):
    event = threading.Event()
    for _ in range(threads - 1):
        threading.Thread(target=wait_nested, args=(event, DEPTH), daemon=True).start()
    if number < busy:
        work(float("inf"))
    elif period:
        work_now_and_then(period, seconds, period * number / count)
    else:
        wait_nested(event, DEPTH)


def main():
    count, busy, threads = map(int, sys.argv[2:5])
    period, seconds = map(float, sys.argv[5:7]) if len(sys.argv) > 5 else (0, 0)
    prctl = ctypes.CDLL(None).prctl
    pids = []
    for number in range(count):
        pid = os.fork()
        if pid == 0:
            prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
            os.close(0)
            os.close(1)
            live(number, count, busy, threads, period, seconds)
        pids.append(pid)
    print(*pids, flush=True)
    os.execvp("cat", ["cat"])


if __name__ == "__main__":
    main()
