#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the service costs, and whether what it credits instead of reading is right: cores by number of processes, credited time beside the same
processes read at each tick, the budget, dumps, the history. Run by `make bench-service`; --help tells of smaller runs.

Environment: SAMPLED, LIMIT and MEASURE_HISTORY, the programs. Needs to be root."""
import argparse
import contextlib
import json
import os
import signal
import statistics
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "integration")]
import history  # noqa: E402
import measure  # noqa: E402
import service_credit  # noqa: E402
import support  # noqa: E402
import table  # noqa: E402
from service_daemon import RATE_HZ, THREADS, BareLoop, Programs, Service  # noqa: E402

SIZES = ((10, 0), (10, 2), (50, 0), (50, 2), (200, 0), (200, 2), (500, 0), (500, 2))  # processes, busy ones of them
GOAL_CORES = {(200, 2): 0.015, (500, 0): 0.01}
GOAL_WRONG = 0.01
GOAL_SUM = 0.01
REACHED_LEAST = 0.95  # of the ticks, of the service and of the truth: else the machine was too busy to compare them
BUDGET, BUDGET_TEXT, BUDGET_BUSY, BUDGET_S = 0.005, "0.5%", 20, 60
PARKED_AFTER_S = 30  # its clock is read most seldom from then on
# Name, processes, busy ones, seconds from one work to the next and of work.
WORKLOADS = (
    ("all wait", 50, 0, 0, 0),
    ("2 of 50 busy", 50, 2, 0, 0),
    ("5 ms of work ten times a second", 8, 0, 0.1, 0.005),
    ("2 ms of work once a second", 20, 0, 1, 0.002),
    ("2 s of work, 2 s of rest", 2, 0, 4, 2),
)
PARTS = ("cores", "credited", "budget", "dumps", "history")


class Report:
    """Markdown as it goes, every figure in JSON, and the goals for the end."""

    def __init__(self, path):
        self.path, self.figures, self.goals = path, {}, []

    def say(self, text=""):
        print(text, flush=True)

    def head(self, title, columns):
        self.say("\n%s\n\n| %s |\n|%s" % (title, " | ".join(columns), "---|" * len(columns)))

    def row(self, *cells):
        self.say("| %s |" % " | ".join(str(cell) for cell in cells))

    def keep(self, part, figures):
        self.figures.setdefault(part, []).append(figures)
        if self.path:
            with open(self.path, "w") as file:
                json.dump(self.figures, file, indent=1)

    def goal(self, text, reached, met):
        """met: None where it could not be judged."""
        self.goals.append((text, reached, met))

    def end(self):
        self.head("Goals of the service:", ("goal", "reached", ""))
        for text, reached, met in self.goals:
            self.row(text, reached, {True: "met", False: "**not met**", None: "not judged: the machine was busy"}[met])


def percent(value, digits=2):
    return "%.*f" % (digits, 100 * value)


def mib(count):
    return "%.1f" % (count / 2**20)


# --- cores by number of processes ---


def measure_cores(count, busy, options):
    with Programs(count, busy) as programs, Service(count, slice_s=10) as service:
        start = service.cpu_ns()
        time.sleep(options.warm_up)
        ticks = service.ticks(programs.pids[0])
        loop, before, begin = BareLoop(options.seconds), service.cpu_by_thread(), time.monotonic()
        time.sleep(options.seconds)
        after, span = service.cpu_by_thread(), time.monotonic() - begin
        reached = (service.ticks(programs.pids[0]) - ticks) / span / RATE_HZ / count
        threads = {name: (after[name] - before.get(name, 0)) / 1e9 / span for name in after}
        status, (bare, bare_reached) = service.status(), loop.end()
        return {
            "processes": count, "busy": busy, "cores": sum(threads.values()), "threads": threads, "reached": reached,
            "bare": bare, "bare_reached": bare_reached,
            "rss_bytes": service.memory_bytes(), "descriptors": service.descriptors(), "found_s": service.found_s,
            "start_cpu_s": start / 1e9, "slowdown": status["cpu"]["slowdown"], "history_bytes": status["history"]["bytes"],
            "of_host": status["processes"],
        }


def middle(rows, key):
    return statistics.median(row[key] for row in rows)


def a_tick(rows, name):
    """Microseconds a deadline that a thread takes."""
    return "%.0f" % (statistics.median(row["threads"].get(name, 0) for row in rows) * 1e6 / RATE_HZ)


def show_cores(report, options):
    sizes = [size for size in SIZES if options.least <= size[0] <= options.most]
    found = {size: [] for size in sizes}
    for _ in range(options.rounds):
        for size in sizes:
            with failing(report, "cores of %d processes" % size[0]):
                found[size].append(measure_cores(*size, options))
                report.keep("cores", found[size][-1])
    report.head(
        "Cores by number of processes, %d threads each, at %d Hz; median of %d × %g s, after %g s. µs a tick are of each thread of the service:"
        % (THREADS, RATE_HZ, options.rounds, options.seconds, options.warm_up),
        ("processes", "busy", "cores %", "(min–max)", "ticks reached %", "bare loop %", "its ticks %", "above it %", "sampler µs", "collector µs",
         "main µs", "RSS MiB", "descriptors", "found in s", "with s of CPU"))
    for (count, busy), rows in found.items():
        if not rows:
            continue
        cores, bare = middle(rows, "cores"), middle(rows, "bare")
        spread = "%s–%s" % (percent(min(row["cores"] for row in rows)), percent(max(row["cores"] for row in rows)))
        report.row(count, busy, percent(cores), spread, percent(middle(rows, "reached"), 1), percent(bare),
                   percent(middle(rows, "bare_reached"), 1), percent(cores - bare), *[a_tick(rows, name) for name in ("sampler", "collect", "main")],
                   mib(middle(rows, "rss_bytes")), middle(rows, "descriptors"), "%.1f" % middle(rows, "found_s"),
                   "%.2f" % middle(rows, "start_cpu_s"))
        if (count, busy) in GOAL_CORES:
            most = GOAL_CORES[count, busy]
            fit = middle(rows, "reached") >= REACHED_LEAST
            report.goal("%d processes, %d busy: < %s %% of a core" % (count, busy, percent(most, 1)), percent(cores) + " %",
                        cores < most if fit else None)
    show_parts(report, {size: middle(rows, "cores") for size, rows in found.items() if rows})


def show_parts(report, cores):
    """What a formula for a host needs (docs/SERVICE.md): a wake-up with few, one process more that is parked, one that is busy."""
    few, many = min(size[0] for size in cores), max(size[0] for size in cores)
    if few == many or not {(few, 0), (many, 0), (few, 2)} <= set(cores):
        return
    parked = (cores[many, 0] - cores[few, 0]) / (many - few)
    cells = [value * 1e6 / RATE_HZ for value in (cores[few, 0] - few * parked, parked, (cores[few, 2] - cores[few, 0]) / 2)]
    report.say("\nA tick takes %.0f µs, %.2f µs more for each parked process and %.0f µs for each busy one, of all threads." % tuple(cells))


# --- what is credited ---


def truth_rate_hz():
    """At an interval below two scheduler ticks nothing is credited."""
    return max(200, int(1.3 / (2 * time.clock_getres(6)))) if hasattr(time, "clock_getres") else 200  # CLOCK_MONOTONIC_COARSE


def measure_credited(count, busy, period, work, options):
    with Programs(count, busy, period, work) as programs, Service(count) as service:
        time.sleep(options.warm_up)
        path = os.path.join(service.folder, "truth.jsonl")
        before = service.credited()
        command = [support.SAMPLED, "attach"] + [str(pid) for pid in programs.pids]
        command += ["-r", str(truth_rate_hz()), "-d", str(options.seconds), "-f", "jsonl", "-o", path]
        done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        if done.returncode:
            raise measure.Failed("attach: %s" % done.stderr.decode().strip()[-200:])
        with open(path) as file:
            about, truth = service_credit.read(file)
        begin = about["start_ns"] / 1e9
        window = [stamp(begin), stamp(begin + about["duration_ns"] / 1e9)]
        time.sleep(1.5)  # the slice that holds the end is over
        dump = service.ctl("dump", "--from", window[0], "--to", window[1], "-f", "jsonl", "-o", "-")
        after = service.credited()
        said, ours = service_credit.read(dump.decode().splitlines())
    if {thread.pid for thread in ours} != set(programs.pids):
        raise measure.Failed("the dump is of other processes")
    kind = service_credit.by_kind(set(programs.busy))
    mains = [[thread for thread in threads if thread.main] for threads in (ours, truth)]
    return {
        "credited": (after[0] - before[0]) / max(after[1] - before[1], 1), "read": about["facts"].get("ticks_credited", 0) == 0,
        "all": service_credit.compare(ours, truth, kind), "main": service_credit.compare(*mains, kind),
        "single": service_credit.compare(*mains, service_credit.thread_by_thread),
        "reached": sum(thread.samples for thread in ours) / len(ours) / (said["duration_ns"] / 1e9) / RATE_HZ,
        "truth_hz": sum(thread.samples for thread in truth) / len(truth) / (about["duration_ns"] / 1e9),
        "unsampled": said["facts"]["unsampled_ns"] / (len(ours) * said["duration_ns"]),
    }


def beyond_chance(found):
    return max(found["wrong"] - found["chance"], 0)


def stamp(seconds):
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))


def show_credited(report, options):
    columns = ("workload", "ticks credited %", "ticks reached %", "truth's Hz", "not sampled %", "elsewhere: all threads %", "by chance",
               "the main threads %", "by chance", "main threads, each for itself %", "by chance", "beyond chance, of credited %")
    report.head("Credited time against the same processes read at each tick of %d Hz, for %g s. Where (innermost function) and how (on a CPU, "
                "idle) the service has a thread's time, and the truth has not:" % (truth_rate_hz(), options.seconds), columns)
    for name, count, busy, period, work in [workload for workload in WORKLOADS if options.workload in workload[0]]:
        with failing(report, name):
            found = measure_credited(min(count, options.most), busy, period, work, options)
            report.keep("credited", dict(found, workload=name))
            wrong = beyond_chance(found["all"]) / found["credited"] if found["credited"] > 0.001 else None
            pairs = [percent(found[part][key]) for part in ("all", "main", "single") for key in ("wrong", "chance")]
            report.row(name, percent(found["credited"], 1), percent(found["reached"], 1), "%.0f" % found["truth_hz"],
                       percent(found["unsampled"]), *pairs, percent(wrong) if wrong is not None else "–")
            if wrong is not None:
                fit = found["reached"] >= REACHED_LEAST and found["truth_hz"] >= REACHED_LEAST * truth_rate_hz()
                report.goal("credited time that is wrong, %s: < %s %%" % (name, percent(GOAL_WRONG, 0)), percent(wrong) + " %",
                            wrong < GOAL_WRONG if fit else None)


# --- the budget ---


def show_budget(report, options):
    with Programs(BUDGET_BUSY, BUDGET_BUSY), Service(BUDGET_BUSY, cpu=BUDGET_TEXT) as service:
        time.sleep(options.budget_seconds)
        status = service.status()["cpu"]
        cpu, begin = service.cpu_ns(), time.monotonic()
        time.sleep(options.budget_seconds)
        share = (service.cpu_ns() - cpu) / 1e9 / (time.monotonic() - begin)
        after = service.status()["cpu"]
        about, threads = service_credit.read(
            service.ctl("dump", "--last", "%ds" % options.budget_seconds, "-f", "jsonl", "-o", "-").decode().splitlines())
    sums = [sum(thread.ns.values()) / about["duration_ns"] for thread in threads]
    unsampled = about["facts"]["unsampled_ns"] / (len(threads) * about["duration_ns"])
    accounted = statistics.mean(sums) + unsampled
    report.keep("budget", {"share_then": status["share"], "slowdown_then": status["slowdown"], "share": share, "slowdown": after["slowdown"],
                           "sums": sums, "unsampled": unsampled, "facts": about["facts"]})
    report.head("A budget of %s with %d busy processes, after %g s and in the %g s behind them:" % (
        BUDGET_TEXT, BUDGET_BUSY, options.budget_seconds, options.budget_seconds),
                ("share then %", "every … sample then", "share in the minute %", "every … sample", "wall time of a thread %", "(min–max)",
                 "counted as not sampled %", "both %"))
    report.row(percent(status["share"]), status["slowdown"], percent(share), after["slowdown"], percent(statistics.median(sums)),
               "%s–%s" % (percent(min(sums)), percent(max(sums))), percent(unsampled), percent(accounted))
    fit = about["facts"]["ticks_missed"] < (1 - REACHED_LEAST) * about["facts"]["ticks"]
    worst = max(abs(value - 1) for value in sums)
    report.goal("a budget of %s is kept" % BUDGET_TEXT, percent(share) + " %", share <= BUDGET)
    report.goal("under it, a thread's wall time is off by ≤ %s %%" % percent(GOAL_SUM, 0), percent(worst) + " %",
                worst <= GOAL_SUM if fit else None)
    report.goal("… and with what is counted as not sampled", percent(abs(accounted - 1)) + " %", abs(accounted - 1) <= GOAL_SUM)


# --- dumps ---


def timed(service, action):
    """(seconds, CPU seconds of the service) of an action."""
    cpu, begin = service.cpu_ns(), time.monotonic()
    action()
    return time.monotonic() - begin, (service.cpu_ns() - cpu) / 1e9


def dump_all(service, count):
    service.process.send_signal(signal.SIGUSR1)
    end = time.monotonic() + support.SAMPLED_TIMEOUT_S
    while len([name for name in os.listdir(service.dumps) if not name.startswith(".")]) < count:
        if time.monotonic() > end:
            raise measure.Failed("%d of %d files" % (len(os.listdir(service.dumps)), count))
        time.sleep(0.005)


def show_dumps(report, options):
    report.head("Dumps, with 2 busy processes; seconds, and the service's CPU seconds in them:",
                ("processes", "SIGUSR1 to the last file (flamegraph)", "CPU", "KiB a file", "ctl dump of one, last minute", "CPU",
                 "ctl dump of all, last minute", "CPU", "KiB"))
    for count in (50, 500):
        with failing(report, "dumps of %d" % count):
            if count > options.most:
                continue
            with Programs(count, 2) as programs, Service(count, slice_s=10) as service:
                time.sleep(options.warm_up)
                files = timed(service, lambda: dump_all(service, count))
                sizes = [os.path.getsize(os.path.join(service.dumps, name)) for name in os.listdir(service.dumps)]
                output = os.path.join(service.folder, "one.html")
                one = timed(service, lambda: service.ctl("dump", programs.pids[-1], "--last", "1m", "-o", output))
                whole = timed(service, lambda: service.ctl("dump", "--last", "1m", "-o", output))
                size = os.path.getsize(output)
            report.keep("dumps", {"processes": count, "files": files, "one": one, "all": whole, "file_bytes": sizes, "bytes": size})
            cells = ["%.2f" % value for pair in (files, one, whole) for value in pair]
            report.row(count, *cells[:2], "%.0f" % (statistics.median(sizes) / 1024), *cells[2:], "%.0f" % (size / 1024))


# --- all of it ---


@contextlib.contextmanager
def failing(report, what):
    """What cannot be measured is said, and the rest goes on."""
    try:
        yield
    except (OSError, ValueError, KeyError, subprocess.SubprocessError, measure.Failed) as error:
        report.say("\n%s failed: %s\n" % (what, error))
        report.keep("failed", {"what": what, "error": str(error)})


def show_history(report, _options):
    report.say()
    history.main()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--only", choices=PARTS, action="append", help="this part; may be given again")
    parser.add_argument("--rounds", type=int, default=1, help="of cores by number of processes, interleaved (BENCH_FULL: 3)")
    parser.add_argument("--seconds", type=float, default=30, help="of each measurement")
    parser.add_argument("--warm-up", type=float, default=PARKED_AFTER_S, help="seconds before each; below 30 parked processes cost more")
    parser.add_argument("--budget-seconds", type=int, default=BUDGET_S)
    parser.add_argument("--most", type=int, default=500, help="processes")
    parser.add_argument("--least", type=int, default=0, help="processes, of cores by their number")
    parser.add_argument("--workload", default="", metavar="TEXT", help="of credited time: those with this in their name")
    parser.add_argument("--json", metavar="FILE", help="every single figure")
    options = parser.parse_args()
    if os.geteuid() != 0:
        print("The service was not measured: it needs to be root.")
        return
    report, begin, load = Report(options.json), time.monotonic(), os.getloadavg()[0]
    parts = {"cores": show_cores, "credited": show_credited, "budget": show_budget, "dumps": show_dumps, "history": show_history}
    for part in options.only or PARTS:
        with failing(report, part):
            parts[part](report, options)
    machine = table.machine(load, os.getloadavg()[0], time.monotonic() - begin)
    report.keep("machine", machine)
    report.end()
    report.say("\n%(cpus)d CPUs (%(model)s), Linux %(kernel)s; %(seconds).0f s in all. Load average before: %(load_before).1f, after: "
               "%(load_after).1f." % machine)


if __name__ == "__main__":
    main()
