# SPDX-License-Identifier: Apache-2.0
"""A loop that notes whenever it stood still, in C called by Python called by C: gapping.py TABLE FILE [LEAST]. FILE gets (when, how long) of each time that it
did for LEAST ns or longer; the table's first word is how often the loop went around. What a profiler's stops are is seen there from outside."""
import os
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import chain_nofp as chain  # noqa: E402
import truth  # noqa: E402
import waits  # noqa: E402

PIECE_S, PAUSE_S = 0.005, 0.0015  # the pause is what real-time priority must leave to others


def look(_number):
    gaps, rounds, _cpu_ns = waits.gaps(PIECE_S, least)
    words[0] += rounds
    if gaps:
        os.write(file, gaps)
    time.sleep(PAUSE_S)


def work():
    while True:
        chain.call(look, 1, 100)


if __name__ == "__main__":
    words = truth.table(sys.argv[1], 1)
    file = os.open(sys.argv[2], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    least = int(sys.argv[3]) if len(sys.argv) > 3 else 1500
    truth.ready()
    work()
