# SPDX-License-Identifier: Apache-2.0
"""resting.py REST WORK: four threads that wait, and the main thread, which rests REST seconds and works WORK seconds, in turns."""
import sys
import threading
import time

rest, work = float(sys.argv[1]), float(sys.argv[2])


def wait_nested(event, depth):
    if depth:
        return wait_nested(event, depth - 1)
    return event.wait()


def work_hard(seconds):
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        sum(range(200))


for _ in range(4):
    threading.Thread(target=wait_nested, args=(threading.Event(), 8), daemon=True).start()
sys.stdout.write("READY\n")
sys.stdout.flush()
while True:
    time.sleep(rest)
    work_hard(work)
