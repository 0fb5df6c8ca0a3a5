# SPDX-License-Identifier: Apache-2.0
"""One of a crowd of processes that come and go; runs on 3.6 to 3.15. passing.py KIND …:

live SECONDS [THREADS]     lives so long, with so many threads that come and go;
fork CHILDREN SECONDS      forks children that work, and reaps them;
forks RATE SECONDS         forks so many a second, until it is ended;
exec PYTHON AFTER SECONDS  becomes another interpreter after a while;
die                        ends by a signal, in the middle of work."""
import os
import signal
import sys
import threading
import time


def work(seconds):
    until = time.time() + seconds
    while time.time() < until:
        sum(range(200))


def rest(seconds):
    time.sleep(seconds)


def turns(seconds):
    until = time.time() + seconds
    while time.time() < until:
        work(0.005)
        rest(0.02)


def live(seconds, count=0):
    threads = [threading.Thread(target=turns, args=(seconds / 2,)) for _ in range(int(count))]
    for thread in threads:
        thread.start()
    turns(seconds)
    for thread in threads:
        thread.join()


def fork(children, seconds):
    pids = []
    for _ in range(int(children)):
        pid = os.fork()
        if pid == 0:
            turns(seconds)
            os._exit(0)
        pids.append(pid)
    turns(seconds / 2)
    for pid in pids:
        os.waitpid(pid, 0)


def forks(rate, seconds):
    alive = 0
    while True:
        if os.fork() == 0:
            turns(seconds)
            os._exit(0)
        alive += 1
        rest(1 / rate)
        while alive and os.waitpid(-1, os.WNOHANG)[0]:
            alive -= 1


def become(python, after, seconds):
    turns(after)
    os.execv(python, [python, "-B", os.path.abspath(__file__), "live", str(seconds), "1"])


kind, arguments = sys.argv[1], sys.argv[2:]
if kind == "live":
    live(*map(float, arguments))
elif kind == "fork":
    fork(*map(float, arguments))
elif kind == "forks":
    forks(*map(float, arguments))
elif kind == "exec":
    become(arguments[0], float(arguments[1]), float(arguments[2]))
elif kind == "die":
    work(0.2)
    os.kill(os.getpid(), signal.SIGKILL)
