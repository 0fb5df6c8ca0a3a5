# SPDX-License-Identifier: Apache-2.0
"""What the history costs: bytes a slice of 10 s, how far back 64 MiB reach, CPU time of a slice's end and of queries. Run by `make bench-history`.

Environment: MEASURE_HISTORY, the program (tests/tools/measure_history.c says what it simulates)."""
import json
import os
import subprocess
import sys

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PROGRAM = os.environ.get("MEASURE_HISTORY", os.path.join(TOP, "build/tests/tools/measure_history"))
BOUND_BYTES, BUSY, SLICE_S = 64 << 20, 2, 10
SPANS_S = (10, 60, 600, 600)  # of a slice, by level
GOAL_PARKED_BYTES, GOAL_CLOSE_MS = 10, 5


def reach_hours(row, levels):
    """How far back the bound reaches, in shares of what is left for slices: the levels in use have one each, and the last one the rest
    (history_shrink.c)."""
    room = BOUND_BYTES * 15 / 16 - row["fixed_bytes"]
    shares = [room / 5] * (levels - 1)
    shares.append(room - sum(shares))
    return sum(share / size * span for share, size, span in zip(shares, row["level_bytes"], SPANS_S) if size) / 3600


def main():
    rows = json.loads(subprocess.run([PROGRAM], stdout=subprocess.PIPE, check=True).stdout)
    # Busy ones cost the same in each row, so that two rows tell both.
    few, many = rows[0], rows[-1]
    parked = (many["slice_bytes"] - few["slice_bytes"]) / (many["processes"] - few["processes"])
    print("The history, %d busy processes and the rest parked with 4 threads each, at 49 Hz; reach at %d MiB:\n" % (BUSY, BOUND_BYTES >> 20))
    print("| processes | bytes a slice of 10 s | of a minute | of ten | by function | trees and symbols, MiB | reach as it is, h | "
          "merged to minutes, h | to ten, h | folded, h | end of a slice, ms | with merging, ms (worst) | profile of an hour, ms | 30 s for triggers, ms |")
    print("|" + "---|" * 14)
    for row in rows:
        cells = [row["processes"], *row["level_bytes"], "%.1f" % (row["fixed_bytes"] / 2**20)]
        cells[1] = row["slice_bytes"]
        cells += ["%.0f" % reach_hours(dict(row, level_bytes=cells[1:5]), levels) for levels in (1, 2, 3, 4)]
        cells += ["%.2f" % row["close_ms"], "%.2f (%.1f)" % (row["close_at_bound_ms"], row["close_at_bound_worst_ms"])]
        cells += ["%.1f" % row["query_hour_ms"], "%.2f" % row["sums_30s_ms"]]
        print("| " + " | ".join(map(str, cells)) + " |")
    print("\nA parked process takes %.1f bytes a slice (goal: %d or less: %s), a busy one %.0f." % (
        parked, GOAL_PARKED_BYTES, "met" if parked <= GOAL_PARKED_BYTES else "MISSED",
        (few["slice_bytes"] - parked * (few["processes"] - BUSY)) / BUSY))
    print("The end of a slice of %d processes takes %.2f ms (goal: less than %d ms: %s)." % (
        many["processes"], many["close_ms"], GOAL_CLOSE_MS, "met" if many["close_ms"] < GOAL_CLOSE_MS else "MISSED"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
