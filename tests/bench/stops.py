#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What native and exact samples cost, beside py-spy --native and austinp: CPU a sample, samples reached, what the target loses, and how long it stands
still for each, which a thread of the target sees from outside. Run by `make bench-native`; --help tells of smaller runs. Environment: SAMPLED."""
import argparse
import array
import collections
import contextlib
import json
import math
import os
import statistics
import struct
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "integration")]
import measure  # noqa: E402
import native  # noqa: E402
import support  # noqa: E402
import table  # noqa: E402
import tools  # noqa: E402

RATES = (100, 1000)
LEAST_NS = 1500  # a gap
NOTHING = "nothing"
STEPS = 8  # bins of gaps a doubling
ANY_S = 0.2  # of a stretch before the first sample and after the last is not looked at


def prefer(pid, priority):
    """The process goes before other work on the machine, the target and all profilers alike, where that is permitted."""
    with contextlib.suppress(PermissionError):
        os.sched_setscheduler(pid, os.SCHED_RR, os.sched_param(priority))


class SampledNative(tools.Sampled):
    name, option = "sampled --native", "--native"

    def command(self, *args):
        return super().command(*args) + [self.option]

    def parse(self, text, threads):
        found = super().parse(text, threads)
        try:
            median, unit, late, late_unit = tools.find(r"stops +[\d,]+, median ([\d.]+) (\S+), 99 % within ([\d.]+) (\S+?)[\s;.,]", text + " ")
        except tools.Unreadable:
            return found
        scale = {"ns": 1e-3, "µs": 1.0, "us": 1.0, "ms": 1e3}
        return {**found, "told_us": float(median) * scale[unit], "told_late_us": float(late) * scale[late_unit]}


class SampledBlocking(SampledNative):
    name, option = "sampled --blocking", "--blocking"


class PySpyNative(tools.PySpy):
    name = "py-spy --native"

    def command(self, target, rate_hz, _seconds, output):
        return [self.program, "record", "--native", "--threads", "--idle", "-r", str(rate_hz), "-f", "raw", "-o", output, "-p", str(target.pid)]


class Austinp(tools.Austin):
    name = "austinp"


class Nothing(tools.Tool):
    """No profiler: what the machine itself does to the target."""

    name = NOTHING
    lead_s = 0

    def command(self, _target, _rate_hz, seconds, _output):
        return ["sleep", "%g" % seconds]

    def parse(self, _text, _threads):
        return {"snapshots": 0, "seconds": None}


class Target:
    """gapping.py of tests/native, for measure.Run."""

    name, threads = "gapping", 1

    def __init__(self, python, folder):
        self.running = native.target(python, "gapping.py", "@/table", "@/gaps", LEAST_NS)
        self.running.wait_ready()
        self.pid, self.place = self.running.pid, folder
        cpus = sorted(os.sched_getaffinity(0))
        if len(cpus) > 1:
            os.sched_setaffinity(self.pid, {cpus[0]})
        prefer(self.pid, 1)

    def judged(self, _tool, _output, _report):
        return {}

    def rounds(self):
        with open(self.running.path("table"), "rb") as file:
            return struct.unpack("=Q", file.read(8))[0]

    def gaps(self, begin_ns, end_ns):
        """How long it stood still, each time in between."""
        time.sleep(0.02)  # until its last piece is written
        numbers = array.array("Q")
        with open(self.running.path("gaps"), "rb") as file:
            numbers.frombytes(file.read())
        os.truncate(self.running.path("gaps"), 0)
        return [length for at, length in zip(numbers[::2], numbers[1::2]) if begin_ns <= at < end_ns]

    def stop(self):
        self.running.stop()


class Folder:
    """What measure.Run wants of a working directory."""

    def __init__(self, target):
        self.folder, self.path = target.running.folder, target.running.path


def run(tool, target, rate_hz, seconds):
    """One run; a dict of figures."""
    seconds = measure.seconds_for(tool, seconds + tool.lead_s + ANY_S)
    measured = measure.Run(tool, target, rate_hz, seconds)
    try:
        prefer(measured.process.pid, 2)
        measured.sleep_until(tool.lead_s + ANY_S)
        begin_ns, begin_rounds, begin_cpu = time.monotonic_ns(), target.rounds(), measure.cpu_s(measured.process.pid)
        measured.sleep_until(seconds - 0.02)
        end_ns, end_rounds, end_cpu = time.monotonic_ns(), target.rounds(), measure.cpu_s(measured.process.pid)
        measured.look_at_memory()
        report = measured.finish()
    finally:
        measured.close()
    wall_s = (end_ns - begin_ns) / 1e9
    per_s = report["snapshots"] / report["seconds"]
    cores = (end_cpu - begin_cpu) / wall_s
    return {
        "per_s": per_s, "good": report.get("good", 1.0), "cores": cores, "cpu_us": 1e6 * cores / per_s if per_s else math.nan,
        "rss_bytes": measured.peak, "rounds_s": (end_rounds - begin_rounds) / wall_s, "wall_s": wall_s,
        "gaps": target.gaps(begin_ns, end_ns), "told_us": report.get("told_us", math.nan), "told_late_us": report.get("told_late_us", math.nan),
    }


def bins(gaps):
    """Counter of gaps by length: STEPS to a doubling."""
    return collections.Counter(math.floor(STEPS * math.log2(length)) for length in gaps)


def beyond(runs, without):
    """(how many a second, median, 99th percentile in ns) of the gaps in runs that are more than those of the target by itself."""
    wall, bare_wall = sum(one["wall_s"] for one in runs), sum(one["wall_s"] for one in without)
    ours, bare = (bins([gap for one in some for gap in one["gaps"]]) for some in (runs, without))
    left = {key: max(count - bare[key] * wall / bare_wall, 0) for key, count in ours.items()}
    whole = sum(left.values())

    def quantile(share):
        below = 0
        for key in sorted(left):
            below += left[key]
            if below >= share * whole:
                return 2 ** ((key + 0.5) / STEPS)
        return math.nan

    return whole / wall, quantile(0.5), quantile(0.99)


def known_tools():
    peers = os.path.join(support.CACHE, "peers")
    return [
        SampledNative(support.SAMPLED), SampledBlocking(support.SAMPLED), PySpyNative(os.path.join(peers, "py-spy/bin/py-spy")),
        Austinp(os.path.join(peers, "austin/austinp")),
    ]


def choose_python():
    """The newest that all can read."""
    found = [python for python in support.all_pythons() if (3, 11) <= python.version < (3, 14) and not python.root]
    return found[-1] if found else support.newest()


def micro(ns_or_nan):
    return "–" if math.isnan(ns_or_nan) else "%.0f" % ns_or_nan if ns_or_nan >= 100 else "%.1f" % ns_or_nan


def row(name, rate, runs, without):
    middle = {key: statistics.median(one[key] for one in runs) for key in ("per_s", "good", "cpu_us", "cores", "rounds_s", "told_us", "told_late_us")}
    bare = statistics.median(one["rounds_s"] for one in without)
    gaps_s, median_ns, late_ns = beyond(runs, without)
    return [
        "{:,}".format(rate), name, "%.0f" % middle["per_s"], "%.1f" % (100 * middle["good"]), micro(middle["cpu_us"]), "%.3f" % middle["cores"],
        "%.1f" % (100 * (1 - middle["rounds_s"] / bare)), "%.0f" % gaps_s, micro(median_ns / 1e3), micro(late_ns / 1e3),
        micro(middle["told_us"]), micro(middle["told_late_us"]), "%.1f" % (max(one["rss_bytes"] for one in runs) / 2**20),
    ]


HEAD = ["Hz", "tool", "samples/s", "good %", "CPU µs a sample", "cores", "work lost %", "gaps/s", "median gap µs", "99 % gap µs", "stops told: median µs",
        "99 % µs", "peak RSS MiB"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--tool", action="append")
    parser.add_argument("--json", help="write all figures to this file")
    args = parser.parse_args()
    missing = [(tool.name, tool.missing()) for tool in known_tools() if tool.missing()]
    chosen = [tool for tool in known_tools() if not tool.missing() and (not args.tool or tool.name in args.tool)]
    python, load = choose_python(), os.getloadavg()[0]
    target = Target(python, None)
    target.place = Folder(target)
    found = collections.defaultdict(list)  # (rate, tool): runs
    began = time.monotonic()
    try:
        for _ in range(args.rounds):
            for rate in RATES:
                for tool in [Nothing()] + chosen:
                    print("bench: %d Hz, %s" % (rate, tool.name), file=sys.stderr, flush=True)
                    try:
                        found[rate, tool.name].append(run(tool, target, rate, args.seconds))
                    except measure.Failed as error:
                        missing.append((tool.name, "%d Hz: %s" % (rate, " ".join(str(error).split())[:200])))
    finally:
        target.stop()
    print("Python %s, one thread; %d rounds of %g s, %.0f s in all. Load average before: %.1f, after: %.1f." % (
        python.text, args.rounds, args.seconds, time.monotonic() - began, load, os.getloadavg()[0]))
    bare = [one for rate in RATES for one in found[rate, NOTHING]]
    print("By itself the target stood still %.0f times a second for %.1f µs or longer.\n" % (
        sum(len(one["gaps"]) for one in bare) / sum(one["wall_s"] for one in bare), LEAST_NS / 1e3))
    rows = [row(name, rate, found[rate, name], found[rate, NOTHING]) for rate in RATES for name in [tool.name for tool in chosen] if found[rate, name]]
    print("\n".join(table.grid(HEAD, rows)))
    for name, why in dict.fromkeys(missing):
        print("\n- %s: %s" % (name, why))
    if args.json:
        with open(args.json, "w", encoding="utf-8") as file:
            json.dump({"%d %s" % key: runs for key, runs in found.items()}, file)
    return 0


if __name__ == "__main__":
    sys.exit(main())
