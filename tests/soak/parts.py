# SPDX-License-Identifier: Apache-2.0
"""The parts of the soak. Each returns a Report: what was measured, and what is not as it must be."""
import json
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time

import soaking

# How much later than promised is still right: this machine may be busy, and ours is not the only process that waits for a CPU.
LATE_S = 6.0 if soaking.support.SANITIZED else 2.0
FOUND_S = 1.0
SLOPE_KIB_A_MINUTE = 300
MEMORY_MOST_KIB = 400 * 1024 if soaking.support.SANITIZED else 32 * 1024
FILLED_S = 3600
WARM_UP = 0.5  # of the time
STALL_S = 2.0  # of a program that wakes each 10 ms, on a busy machine


class Report:
    def __init__(self):
        self.lines, self.wrong = [], []

    def say(self, text, *values):
        self.lines.append(text % values)

    def must(self, holds, text, *values):
        if not holds:
            self.wrong.append(text % values)


def slope(points):
    """Of the line through (x, y) with the least squares."""
    mean_x, mean_y = (statistics.fmean(values) for values in zip(*points))
    below = sum((x - mean_x) ** 2 for x, _ in points)
    return sum((x - mean_x) * (y - mean_y) for x, y in points) / below if below else 0.0


def spread(values):
    return "median %.2f s, most %.2f s of %d" % (statistics.median(values), max(values), len(values)) if values else "none"


# --- how soon what starts is found ---


class Prober(threading.Thread):
    """Starts processes, one after another, and looks when the service has them: new ones, and those that exec."""

    AGE_S = 1.5  # at which a shell becomes a Python

    def __init__(self, service, pythons):
        super().__init__(daemon=True)
        self.service, self.pythons = service, pythons
        self.found = {"new": [], "Python to Python": [], "shell to Python": []}
        self.missed, self.error, self.over = [], None, False

    def run(self):
        try:
            while not self.over:
                for kind in self.found:
                    if not self.over:
                        self.probe(kind)
        except Exception as error:  # told by the main thread
            self.error = error

    def probe(self, kind):
        program = os.path.join(self.service.folder, "passing.py")
        python, other = random.sample(self.pythons, 2)
        live = [python.argv[-1], "-B", program, "live", "30"]
        command = {
            "new": live,
            "shell to Python": ["sh", "-c", 'sleep $0; exec "$@"', str(self.AGE_S), *live],
            "Python to Python": [other.argv[-1], "-B", program, "exec", python.argv[-1], str(self.AGE_S), "30"],
        }[kind]
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL)
        try:
            since = time.monotonic()
            while not self.is_python(process.pid):
                since = time.monotonic()
                time.sleep(0.005)
            self.wait(kind, process.pid, python, since)
        finally:
            process.kill()
            process.wait()

    @staticmethod
    def is_python(pid):
        """It has come to its last exec."""
        with open("/proc/%d/cmdline" % pid, "rb") as file:
            line = file.read()
        return b"\0live\0" in line and not line.startswith(b"sh\0")

    def wait(self, kind, pid, python, since):
        while time.monotonic() < since + 20:
            for target in self.service.list():
                if target["pid"] == pid and target["state"] == "sampled" and target["python"] == python.text:
                    self.found[kind].append(time.monotonic() - since)
                    return
            time.sleep(0.05)
        self.missed.append(kind)


# --- among a crowd ---


def disturb(service, count):
    """What people do to a service."""
    action = count % 5
    if action == 0:
        service.send(signal.SIGUSR1)
    elif action == 1:
        service.send(signal.SIGHUP)
    elif action == 2:
        soaking.check_jsonl(service.ask("dump", "-f", "jsonl").decode(), "a dump of all")
    elif action == 3:
        soaking.check_jsonl(service.ask("dump", "--last", "5s", "--merge", "-f", "jsonl").decode(), "a merged dump")
    else:
        service.ask("metrics")


def check_steady(report, service, steady, elapsed_s):
    """All of its one thread's time is in the samples, or counted as not sampled."""
    last = "%ds" % max(2, int(elapsed_s) - 3)
    head, wall_ns = soaking.check_jsonl(service.ask("dump", str(steady.pid), "--last", last, "-f", "jsonl").decode(), "the steady one")
    unsampled_ns, duration_ns = head["facts"]["unsampled_ns"], head["duration_ns"]
    off_ns = wall_ns + unsampled_ns - duration_ns
    report.say("steady: %.3f s sampled + %.3f s not = %.3f s of %.3f s", wall_ns / 1e9, unsampled_ns / 1e9, (wall_ns + unsampled_ns) / 1e9,
               duration_ns / 1e9)
    if head["notes"]:
        report.say("steady: %s", ", ".join("%s %g" % (note["key"], note["number"]) for note in head["notes"]))
    report.must(abs(off_ns) < 0.15e9 + 0.002 * duration_ns, "the steady thread's time is off by %.3f s", off_ns / 1e9)


def check_list(report, service, alive, since_s):
    """What has ended is not on the list, and what is on it has not ended."""
    until = time.monotonic() + since_s
    while {target["pid"] for target in service.list()} - alive and time.monotonic() < until:
        time.sleep(0.1)
    stale = [target for target in service.list() if target["pid"] not in alive]
    report.must(not stale, "on the list, but not alive: %s", [(t["pid"], t["state"], t["name"]) for t in stale])


def crowd(seconds, most=10, pause_s=0.2):
    """The service among processes that start, exec, fork and die all the time."""
    report, pythons = Report(), soaking.interpreters()
    with soaking.Service() as service:
        service.start()
        with soaking.Steady(service, pythons[-1]) as steady, soaking.Crowd(service, pythons, most) as crowded:
            run_crowd(report, service, steady, crowded, Prober(service, pythons), seconds, pause_s)
        end_s = service.stop()
        report.say("stopped in %.2f s", end_s)
        report.must(end_s < 2 + LATE_S, "it took %.1f s to stop", end_s)
        unfinished, files = soaking.check_disk(service)
        report.say("%d dumps and spool files, all whole", files)
        report.must(not unfinished, "left behind: %s", unfinished)
        report.must(service.process.returncode == 0, "exit status %s: %s", service.process.returncode, service.said())
    return report


def run_crowd(report, service, steady, crowded, prober, seconds, pause_s):
    began, count, points, stopped = time.monotonic(), 0, [], 0
    prober.start()
    while (elapsed_s := time.monotonic() - began) < seconds:
        crowded.step()
        stopped += soaking.is_stopped(steady.pid)
        points.append((elapsed_s, *service.resident_kib(), service.descriptors()))
        count += 1
        if count % 5 == 0:
            disturb(service, count // 5)
        time.sleep(pause_s)
    prober.over = True
    prober.join(30)
    report.must(not prober.error, "looking for processes: %r", prober.error)
    say_found(report, prober)
    check_steady(report, service, steady, time.monotonic() - began)
    crowded.end()
    check_list(report, service, {steady.pid}, 10)
    say_sizes(report, service, points, seconds)
    beats, longest_s = steady.beats()
    report.say("%d processes; steady: %d beats, the longest pause %.2f s", crowded.started + sum(map(len, prober.found.values())), beats, longest_s)
    report.must(steady.process.poll() is None and longest_s < STALL_S, "the steady one was harmed: a pause of %.1f s", longest_s)
    report.must(not stopped and not crowded.stopped, "stopped (state T) when looked at: %d", stopped + crowded.stopped)


def say_found(report, prober):
    for kind, within_s in (("new", FOUND_S), ("Python to Python", FOUND_S), ("shell to Python", prober.AGE_S + 2)):
        times = prober.found[kind]
        report.say("%s: found after %s", kind, spread(times))
        report.must(not times or statistics.median(times) < within_s + 0.5 and max(times) < within_s + LATE_S, "%s: found too late, %s", kind,
                    spread(times))
    report.must(not prober.missed, "never found: %s", prober.missed)


def say_sizes(report, service, points, seconds):
    status, warm = service.status(), [point for point in points if point[0] > WARM_UP * seconds]
    growth, own, descriptors = (slope([(point[0] / 60, point[i]) for point in warm]) for i in (1, 2, 3))
    counts = [point[3] for point in warm]
    report.say("memory: %d KiB at the end, %+.0f KiB a minute; its own %d, %+.0f; history %d of %d KiB, steps %s", points[-1][1], growth,
               points[-1][2], own, status["history"]["bytes"] // 1024, status["history"]["bound_bytes"] // 1024, status["history"]["steps"])
    report.say("descriptors: %d to %d while it ran, %+.1f a minute, %d in the end", min(counts), max(counts), descriptors, service.descriptors())
    report.say("CPU: %.2f %% of a core; slowed down to 1 in %d; late ticks %d, missed %d of %d; %s", 100 * service.cpu_s() / seconds,
               status["cpu"]["slowdown"], status["total"]["ticks_late"], status["total"]["ticks_missed"], status["total"]["ticks"],
               status["total"]["lost"])
    total = status["total"]
    report.must(total["attempts"] == total["samples"] + sum(total["lost"].values()), "the total is not exact: %s", total)
    if seconds >= FILLED_S:  # before, history and ring are filling up
        report.must(growth < SLOPE_KIB_A_MINUTE, "memory grows by %.0f KiB a minute", growth)
    report.must(points[-1][1] < MEMORY_MOST_KIB, "memory: %d KiB", points[-1][1])
    report.must(service.descriptors() < 80, "descriptors: %d", service.descriptors())


# --- dumps while the configuration is read again ---


def reloads(count):
    """What is being written when the configuration is read again is written, and none of it is forgotten."""
    report, pythons = Report(), soaking.interpreters()
    with soaking.Service() as service, soaking.Steady(service, pythons[-1]) as steady:
        service.start()
        soaking.support.wait_until(lambda: service.state_of(steady.pid) == "sampled", "it is profiled")
        time.sleep(1)
        for _ in range(count):
            service.send(signal.SIGUSR1)
            time.sleep(random.uniform(0, 0.02))
            service.send(signal.SIGHUP)
        time.sleep(1)
        now = service.status()
        names = {name for name in os.listdir(service.dumps) if not name.startswith(".")}
        with open(os.path.join(service.dumps, ".sampled-dumps"), encoding="utf-8") as file:
            listed = {line.rstrip("\n").split(" ", 3)[3] for line in file}
        report.say("%d reloads, %s", now["reloads"], now["disk"])
        report.must(now["reloads"] > 0 and now["disk"]["dumps_failed"] == 0, "dumps failed: %s", service.said())
        report.must(names == listed, "not on the list: %s; not there: %s", names - listed, listed - names)
        report.must(now["disk"]["dump_files"] == len(names), "%d files, and counted %d", len(names), now["disk"]["dump_files"])
        report.must(now["disk"]["dumps_written"] == len(names) + now["disk"]["dumps_removed"], "%d written, %d removed, %d there",
                    now["disk"]["dumps_written"], now["disk"]["dumps_removed"], len(names))
    return report


# --- killed ---


def kills(count):
    """The service is killed at random moments, and started again."""
    report, pythons, back = Report(), soaking.interpreters(), []
    with soaking.Service() as service, soaking.Steady(service, pythons[0]) as steady, soaking.Crowd(service, pythons, 4) as crowded:
        unfinished, files = plant(service), 0
        for _ in range(count):
            service.start()
            since = time.monotonic()
            still = [path for path in unfinished if os.path.exists(path)]
            report.must(not still, "of the one before: %s", still)
            soaking.support.wait_until(lambda: service.state_of(steady.pid) == "sampled", "it is profiled again")
            back.append(time.monotonic() - since)
            until = time.monotonic() + random.uniform(0.1, 1.2)
            while time.monotonic() < until:
                crowded.step()
                service.send(signal.SIGUSR1)
                time.sleep(random.uniform(0.01, 0.2))
            service.stop(signal.SIGKILL)
            unfinished, files = soaking.check_disk(service)
        service.start()
        report.must(service.stop() < 2 + LATE_S, "it does not stop")
        unfinished, files = soaking.check_disk(service)
        report.must(not unfinished, "left behind: %s", unfinished)
        beats, longest_s = steady.beats()
        report.say("killed %d times; %d files, all whole; profiling again after %s; steady: %d beats, the longest pause %.2f s", count, files,
                   spread(back), beats, longest_s)
        report.must(statistics.median(back) < FOUND_S and max(back) < FOUND_S + LATE_S, "profiling again after %s", spread(back))
        report.must(steady.process.poll() is None and longest_s < STALL_S and not soaking.is_stopped(steady.pid), "the steady one was harmed")
    return report


def plant(service):
    """What one that was killed at the worst moment leaves."""
    names = [os.path.join(service.dumps, ".sampled-unfinished"), os.path.join(service.dumps, ".sampled-dumps-unfinished"),
             os.path.join(service.spool, ".20260101T000000Z-000001.tmp")]
    for name in names:
        with open(name, "wb") as file:
            file.write(b"half")
    return names


# --- numbers that are used again ---


def numbers(count):
    """Another process has the number of one that ended: reuse.py, which needs root."""
    report = Report()
    done = subprocess.run(["unshare", "--pid", "--fork", "--mount-proc", sys.executable, os.path.join(soaking.HERE, "reuse.py"), str(count)],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    if done.returncode:
        report.must(False, "%s", done.stderr.decode()[-2000:])
        return report
    said = json.loads(done.stdout)
    report.must(None not in said["found"], "not found: %s", said["found"])
    found = [seconds for seconds in said["found"] if seconds is not None]
    report.say("one number, %d processes: found after %s", count, spread(found))
    report.must(statistics.median(found) < FOUND_S + 0.5 and max(found) < FOUND_S + LATE_S, "found too late")
    report.must(len(said["versions"]) == count, "of %d processes the history knows %s", count, said["versions"])
    report.must(not said["listed"], "on the list, but not alive: %s", said["listed"])
    report.must(said["descriptors"] < 40, "descriptors: %d", said["descriptors"])
    return report


# --- a full disk ---


class SmallDisk:
    """A file system of so many KiB, mounted; needs root."""

    def __init__(self, kib):
        self.path = tempfile.mkdtemp(prefix="sampled-soak-disk-", dir="/tmp")
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=%dk" % kib, "sampled-soak", self.path], check=True)

    def free(self):
        room = os.statvfs(self.path)
        return room.f_bavail * room.f_frsize

    def __enter__(self):
        return self

    def __exit__(self, *_error):
        subprocess.run(["umount", "-l", self.path], check=False)
        os.rmdir(self.path)


def dump_and_wait(service):
    before = service.status()["disk"]
    service.send(signal.SIGUSR1)
    soaking.support.wait_until(lambda: done(service) > done_of(before) + 1, "both dumps are written, or not")


def done_of(disk):
    return disk["dumps_written"] + disk["dumps_failed"]


def done(service):
    return done_of(service.status()["disk"])


def fill(path):
    with open(path, "wb", 0) as file:
        try:
            while True:
                file.write(b"x" * 4096)
        except OSError:
            pass


def check_giving_way(report, service, disk):
    """What is left is taken by somebody else, and the spool was sent: dumps make room for it."""
    fill(os.path.join(disk.path, "others"))
    for name in os.listdir(service.spool):
        os.unlink(os.path.join(service.spool, name))
    fill(os.path.join(disk.path, "more"))
    before = service.status()["disk"]
    time.sleep(5)
    now = service.status()["disk"]
    report.say("full again: %s", now)
    report.must(now["spool_files"] > before["spool_files"] and now["dumps_removed"] > before["dumps_removed"],
                "dumps do not give way to the spool: %s", service.said())


def full_disk():
    """The oldest dumps go, it is counted, and everything goes on."""
    report, pythons = Report(), soaking.interpreters()
    with SmallDisk(256) as disk, soaking.Service(disk.path) as service, soaking.Steady(service, pythons[-1]) as steady:
        service.start()
        soaking.support.wait_until(lambda: service.state_of(steady.pid) == "sampled", "it is profiled")
        time.sleep(2.5)
        dump_and_wait(service)
        first = set(os.listdir(service.dumps)) - {".sampled-dumps"}
        report.must(len(first) == 2, "the first dumps: %s", first)
        for _ in range(100):
            dump_and_wait(service)
            if not first & set(os.listdir(service.dumps)):
                break
        dump_and_wait(service)
        now = service.status()["disk"]
        report.say("%s; %d bytes free", now, disk.free())
        report.must(not first & set(os.listdir(service.dumps)), "the oldest dumps are still there")
        report.must(now["dumps_removed"] > 0, "not counted: %s", now)
        unfinished, files = soaking.check_disk(service)
        report.must(files > 0 and not unfinished, "%d files, unfinished %s", files, unfinished)
        samples = service.status()["total"]["samples"]
        time.sleep(1.5)
        report.must(service.status()["total"]["samples"] > samples, "it samples no more")
        written = service.status()["disk"]["spool_files"]
        time.sleep(6)
        report.must(service.status()["disk"]["spool_files"] > written, "it spools no more: %s", service.said())
        check_giving_way(report, service, disk)
        report.must(service.stop() < 2 + LATE_S, "it does not stop")
    return report
