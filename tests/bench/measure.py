# SPDX-License-Identifier: Apache-2.0
"""Running a target and a profiler and taking their measure: CPU by the kernel's clock of each process, memory by VmHWM, the
target's work by the counters that it keeps in a shared file."""
import contextlib
import os
import random
import re
import select
import shutil
import signal
import struct
import subprocess
import tempfile
import time

import support
import tools

HERE = os.path.dirname(os.path.abspath(__file__))
COUNTERS_BYTES = 8 * 1024
WEB = os.path.join(support.CACHE, "web")  # what setup-web gets
INSIDE = "/mnt"  # where the working directory is mounted in a root of its own
READY_TIMEOUT_S = 120
TOOL_TIMEOUT_S = 120
WINDOW_S, SETTLE_S = 0.05, 0.005  # of measuring what the target loses, and before it
SPARE = 1.25  # all windows may take longer than they should by so much
LEARNT_S = 3.0  # sampler/burst.c: a tenth of the time until that is 0.3 s
THREAD_WORDS, CHUNK_BYTES = 64, 16384  # of a PyThreadState, which is larger; DATA_STACK_CHUNK_SIZE of Python/pystate.c
DEEP_FRAMES = 5000  # of the worker of deep5000, at least
ANSI = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")


class Failed(Exception):
    """A run that gave no figures: its row says why."""


def cpu_s(pid):
    """CPU seconds of a process, ended threads included; the clock id is made as clock_getcpuclockid(3) makes it."""
    return time.clock_gettime((~pid << 3) | 2)


def on_cpu(number):
    """For preexec_fn: with two CPUs or more the target has one and the profiler another, so that they do run at the same time;
    sharing one, a profiler would only ever see a target that stands still. SIGINT, which ends some, is ignored in what a shell runs in the background."""
    cpus = sorted(os.sched_getaffinity(0))

    def begin():
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        if len(cpus) > 1:
            os.sched_setaffinity(0, {cpus[number]})

    return begin


def peak_rss_bytes(pid):
    with open("/proc/%d/status" % pid) as file:
        match = re.search(r"VmHWM:\s+(\d+) kB", file.read())
    return int(match.group(1)) * 1024 if match else 0


def thread_count(pid):
    return len(os.listdir("/proc/%d/task" % pid))


def heap_of(pid):
    """The first address of its heap, as /proc/PID/maps writes it; the stack's where it has none."""
    with open("/proc/%d/maps" % pid) as file:
        maps = file.read()
    match = re.search(r"^([0-9a-f]+)-.*\[heap\]$", maps, re.M) or re.search(r"^([0-9a-f]+)-.*\[stack\]$", maps, re.M)
    return int(match.group(1), 16)


class Workplace:
    """A temporary directory, mounted below the roots that are used, so that targets and tools in there see it."""

    def __init__(self, pythons):
        self.folder = tempfile.mkdtemp(prefix="sampled-bench-")
        shutil.copy(os.path.join(HERE, "programs.py"), self.folder)
        if os.path.exists(os.path.join(WEB, "installed")):
            shutil.copytree(os.path.join(WEB, "lib"), self.path("web"))
        # These mounts are in this process's own mount namespace (see enter_namespace) and end with it.
        for root in sorted({python.root for python in pythons if python.root}):
            subprocess.run(["mount", "--bind", "/proc", root + "/proc"], check=True)
            subprocess.run(["mount", "--bind", self.folder, root + INSIDE], check=True)
        for python in pythons:
            python.seen_from_inside = self.seen_from_a_root if python.root else lambda path: path

    def seen_from_a_root(self, path):
        return INSIDE + path[len(self.folder):]

    def path(self, name):
        return os.path.join(self.folder, name)

    def close(self):
        shutil.rmtree(self.folder, ignore_errors=True)


class Target:
    """A running workload."""

    def __init__(self, place, python, name):
        self.place, self.name = place, name
        self.counters = place.path("counters-" + name)
        with open(self.counters, "wb") as file:
            file.write(bytes(COUNTERS_BYTES))
        script = python.seen_from_inside(place.path("programs.py"))
        command = python.argv + ["-B", script, name, python.seen_from_inside(self.counters)]
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, cwd="/", preexec_fn=on_cpu(0)
        )
        self.pid = self.process.pid
        up = select.select([self.process.stdout], [], [], READY_TIMEOUT_S)[0] and self.process.stdout.readline().split()
        if not up or up[0] != b"READY":
            self.stop()
            raise Failed("%s did not get ready under %s" % (name, python))
        self.thread_state = int(up[1], 16)
        time.sleep(0.3)  # threads start, code gets specialised
        self.threads = thread_count(self.pid)

    def work(self):
        """(units of work so far, CPU seconds so far, now)."""
        with open(self.counters, "rb") as file:
            done = sum(struct.unpack("1024Q", file.read()))
        return done, cpu_s(self.pid), time.monotonic()

    def heap(self):
        return heap_of(self.pid)

    def copied(self):
        """What a sampler that stops nothing has to copy of its thread, [(address, bytes)]: the thread state as far as the three words
        (first chunk, top, limit) of its data stack, and that stack's first chunk as far as it is used (Include/cpython/pystate.h, from 3.11 on). Empty where there is more, or not known."""
        with open("/proc/%d/mem" % self.pid, "rb", buffering=0) as memory:

            def words(address, count):
                memory.seek(address)
                return struct.unpack("%dQ" % count, memory.read(8 * count))

            for number, chunk in enumerate(words(self.thread_state, THREAD_WORDS) if self.thread_state else ()):
                with contextlib.suppress(OSError, OverflowError, struct.error):
                    if chunk and chunk % 4096 == 0 and words(chunk, 2) == (0, CHUNK_BYTES):
                        tops = [words(self.thread_state + 8 * number, 2)[1] - chunk for _ in range(1000)]
                        return [(self.thread_state, 8 * (number + 3)), (chunk, max(tops))]
        return []

    def judged(self, tool, output, report):
        """What can be said of the stacks that a profiler wrote: of a deep one, how many of all are whole."""
        if self.name != "deep5000":
            return {}
        return {"whole": min(tool.stacks.deeper_than(output, DEEP_FRAMES) / max(report["snapshots"], 1), 1)}

    def stop(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(10)
            except subprocess.TimeoutExpired:
                self.process.kill()
        self.process.wait()
        self.process.stdout.close()

    def __enter__(self):
        return self

    def __exit__(self, *_error):
        self.stop()


class Run:
    """A profiler at work on a target."""

    def __init__(self, tool, target, rate_hz, seconds):
        self.tool, self.target, self.rate_hz, self.seconds = tool, target, rate_hz, seconds
        self.output = target.place.path("profile-%s.out" % tool.name)
        self.peak = 0
        self.log = tempfile.TemporaryFile()
        command = tool.command(target, rate_hz, seconds, self.output)
        # Where no syslog listens Austin's error lines would go to the console, one by one.
        env = dict(os.environ, AUSTIN_NO_LOGGING="1", NO_COLOR="1")
        self.process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=self.log, stderr=subprocess.STDOUT, env=env,
            cwd=target.place.folder, preexec_fn=on_cpu(1),
        )
        self.start = time.monotonic()

    def sleep_until(self, offset_s):
        while True:
            left = self.start + offset_s - time.monotonic()
            if left <= 0:
                return
            self.must_live()
            time.sleep(min(left, 0.1))

    def must_live(self):
        if self.process.poll() is not None:
            raise Failed("%s ended early: %s" % (self.tool.name, self.text()[-200:].strip()))

    def text(self):
        self.log.seek(0)
        return ANSI.sub("", self.log.read().decode("utf-8", "replace"))

    def cores(self, begin_s, end_s):
        """What it uses in this part of its run."""
        self.sleep_until(begin_s)
        cpu, wall = cpu_s(self.process.pid), time.monotonic()
        self.sleep_until(end_s)
        self.look_at_memory()
        return (cpu_s(self.process.pid) - cpu) / (time.monotonic() - wall)

    def look_at_memory(self):
        with contextlib.suppress(OSError):
            self.peak = max(self.peak, peak_rss_bytes(self.process.pid))

    def finish(self):
        """Waits for its end, with an eye on its memory, and reads its report."""
        if self.tool.interrupt:
            self.sleep_until(self.seconds)
            self.process.send_signal(signal.SIGINT)
        sampled_s = time.monotonic() - self.start
        while self.process.poll() is None:
            self.look_at_memory()
            if time.monotonic() - self.start > self.seconds + TOOL_TIMEOUT_S:
                raise Failed("%s did not end" % self.tool.name)
            time.sleep(0.01)
        try:
            report = self.tool.parse(self.text(), self.target.threads)
        except tools.Unreadable as error:
            raise Failed("%s failed: %s" % (self.tool.name, error))
        report["seconds"] = report["seconds"] or sampled_s
        return report

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.log.close()
        with contextlib.suppress(OSError):
            os.unlink(self.output)


def seconds_for(tool, seconds):
    return max(round(seconds + 0.49), 1) if tool.whole_seconds else seconds


def begin_of(tool, rate_hz):
    """From when on what a tool costs is counted, in seconds from its start."""
    return tool.lead_s if rate_hz == tools.UNTHROTTLED else max(tool.lead_s, LEARNT_S)


def profile(tool, target, rate_hz, seconds):
    """One run; a dict of figures, each a number. At a rate, the first seconds, in which sampled learns what calls what, count apart."""
    figures, begin_s = {}, begin_of(tool, rate_hz)
    run = Run(tool, target, rate_hz, seconds_for(tool, begin_s + seconds))
    try:
        if begin_s > tool.lead_s:
            figures["cores_first"] = run.cores(tool.lead_s, tool.lead_s + 1)
        figures["cores"] = run.cores(begin_s, run.seconds - 0.02)
        report = run.finish()
        judged = target.judged(tool, run.output, report) if tool.stacks else {}
    finally:
        run.close()
    per_s = report["snapshots"] / report["seconds"]
    figures.update(per_s=per_s, rss_bytes=run.peak, **judged)
    if "good" in report:
        figures["good"] = report["good"]
    figures["cpu_us"] = figures["cores"] / per_s * 1e6 if per_s else float("nan")
    if rate_hz != tools.UNTHROTTLED:
        figures["reached"] = per_s / rate_hz
    return figures


def window(target, run):
    """What the target did in a moment in which this profiler works, or none does: (work, CPU seconds, wall seconds)."""
    if run:
        run.process.send_signal(signal.SIGCONT)
    time.sleep(SETTLE_S)
    before = target.work()
    time.sleep(WINDOW_S)
    after = target.work()
    if run:
        run.process.send_signal(signal.SIGSTOP)
    return [b - a for a, b in zip(before, after)]


def lost(work, without):
    """The share by which less was done than without a profiler, a CPU second and a wall second: what being read costs, and what it has to share besides."""
    return {"slower_" + kind: 1 - work[0] / work[by] * without[by] / without[0] for kind, by in (("cpu", 1), ("wall", 2))}


def slowdowns(chosen, target, rate_hz, seconds, pairs, failed):
    """What the target loses while it is read: {tool's name: [figures, one dict a pair]}. All tools run at once, but are stopped (SIGSTOP) in all windows but their
    own, in turns: the target's pace changes by a tenth from one second to the next, and what a line of memory costs that goes to another CPU and back by several
    times from one minute to the next. failed(tool, why) is told of those without figures."""
    windows = round(seconds / WINDOW_S)
    begin_s = max(begin_of(tool, rate_hz) for tool in chosen) * len(chosen)  # they share a CPU so long
    whole_s = begin_s + pairs * windows * (len(chosen) + 1) * (SETTLE_S + WINDOW_S) * SPARE
    losses = {}
    with contextlib.ExitStack() as closing:
        runs = []
        for tool in chosen:
            runs.append(Run(tool, target, rate_hz, seconds_for(tool, whole_s)))
            closing.callback(runs[-1].close)
        time.sleep(begin_s)
        for run in runs:
            run.process.send_signal(signal.SIGSTOP)
        sums = [{run: [0.0, 0.0, 0.0] for run in [None] + runs} for _ in range(pairs)]
        for pair in sums:
            for _ in range(windows):
                for run in random.sample(list(pair), len(pair)):
                    pair[run] = [a + b for a, b in zip(pair[run], window(target, run))]
        for run in runs:
            try:
                run.must_live()
                run.process.send_signal(signal.SIGCONT)
                run.finish()
                losses[run.tool.name] = [lost(pair[run], pair[None]) for pair in sums]
            except Failed as error:
                failed(run.tool, str(error))
    return losses
