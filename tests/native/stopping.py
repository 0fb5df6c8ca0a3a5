# SPDX-License-Identifier: Apache-2.0
"""Targets that a stop could harm: stopping.py PART TABLE [ARGUMENT]. What each part counts stands in the table (truth.py), a row a thread."""
import ctypes
import os
import signal
import sys
import threading
import time
import warnings

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import chain_nofp as chain  # noqa: E402
import truth  # noqa: E402
import waits  # noqa: E402

EVER_MS = 1000000000


def start(function, *args):
    threading.Thread(target=function, args=args, daemon=True).start()


def spin(row):
    while True:
        chain.spin(0.001)
        words[row * truth.COLUMNS] += 1


def compute(row):
    while True:
        chain.deep(500)
        for _ in range(200):
            pass
        words[row * truth.COLUMNS] += 1


def wait(row, kind, milliseconds):
    waits.wait(kind, milliseconds, base + 8 * truth.COLUMNS * row)


def work():
    """Three threads: the main one with the GIL, one without it, one that waits for ever."""
    start(spin, 1)
    start(wait, 2, "epoll", EVER_MS)
    truth.ready()
    compute(0)


def waiting():
    """One thread for each kind of wait, each of them ARGUMENT milliseconds long, beside one that computes."""
    for row, kind in enumerate(("epoll", "semop", "signal"), 1):
        start(wait, row, kind, int(sys.argv[3]))
    time.sleep(0.3)
    truth.ready()
    compute(0)


def signals():
    """Counts what it is sent; at SIGUSR2 it writes what came, and their latencies, to the file ARGUMENT, and begins anew."""
    for number in (signal.SIGRTMIN + 2, signal.SIGUSR1, signal.SIGALRM):
        waits.take(number)

    def tell(_number, _frame):
        found = {number: waits.taken(number) for number in (signal.SIGRTMIN + 2, signal.SIGUSR1, signal.SIGALRM)}
        with open(sys.argv[3] + ".new", "wb") as file:
            for count, latencies in found.values():
                file.write(count.to_bytes(8, "little") + len(latencies).to_bytes(8, "little") + latencies)
        os.rename(sys.argv[3] + ".new", sys.argv[3])

    signal.signal(signal.SIGUSR2, tell)
    signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
    truth.ready(realtime=int(signal.SIGRTMIN) + 2)
    while True:  # with pauses, which real-time priority must leave
        end = time.monotonic() + 0.002
        while time.monotonic() < end:
            chain.deep(500)
        time.sleep(0.001)


def execs():
    """A thread other than the main one becomes the program anew, ARGUMENT times; then the process ends with 7."""
    left = int(sys.argv[3])
    words[0] = left
    if left == 0:
        os._exit(7)

    def become():
        time.sleep(0.15)
        os.execv(sys.executable, [sys.executable, "-B", os.path.abspath(__file__), "execs", sys.argv[2], str(left - 1)])

    start(spin, 1)
    if os.environ.get("SAMPLED_TOLD") is None:
        os.environ["SAMPLED_TOLD"] = "1"
        truth.ready()
        time.sleep(0.5)
    start(become)
    compute(2)


def passing():
    """Threads that live for a millisecond, by the thousand; row 0 counts them."""
    def live():
        end = time.monotonic() + 0.001
        while time.monotonic() < end:
            chain.deep(10)

    truth.ready()
    while True:
        few = [threading.Thread(target=live) for _ in range(4)]
        for thread in few:
            thread.start()
        for thread in few:
            thread.join()
        words[0] += len(few)


def forks():
    """Children by fork and vfork; the second column counts those that did not end as they should."""
    warnings.simplefilter("ignore")  # which tell that there are threads
    start(spin, 1)
    truth.ready()
    while True:
        child = os.fork()
        if child == 0:
            os._exit(5)
        words[0] += 1
        if os.waitpid(child, 0)[1] != 5 << 8:
            words[1] += 1
        if waits.vfork(1) <= 0:
            words[1] += 1


def vfork():
    """One child that takes ARGUMENT milliseconds, while its parent waits where nothing can interrupt it, again and again."""
    truth.ready()
    while True:
        words[0] += waits.vfork(int(sys.argv[3])) > 0


def idle():
    """At the lowest priority there is, on the first CPU, where the test puts something that leaves nothing over."""
    os.sched_setaffinity(0, {int(sys.argv[3])})
    os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    truth.ready()
    compute(0)


if __name__ == "__main__":
    words = truth.table(sys.argv[2], 8)
    base = ctypes.addressof(ctypes.c_char.from_buffer(words))
    {"work": work, "waiting": waiting, "signals": signals, "execs": execs, "passing": passing, "forks": forks, "vfork": vfork,
     "idle": idle}[sys.argv[1]]()
