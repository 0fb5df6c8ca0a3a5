# SPDX-License-Identifier: Apache-2.0
"""The service and its targets at work, for its bench. Environment: SAMPLED and LIMIT, the programs."""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

import measure
import support

HERE = os.path.dirname(os.path.abspath(__file__))
LIMIT = os.environ.get("LIMIT", os.path.join(support.TOP, "build/tests/bench/limit"))
PROGRAMS = os.path.join(HERE, "service_programs.py")
RATE_HZ, THREADS = 49, 4
FOUND_TIMEOUT_S = 120
NAME = "of-%d" % os.getpid()  # those of another bench at the same time are not ours
CONFIG = """[budget]
cpu = %(cpu)s
memory = 64M
[history]
slice = %(slice_s)ds
[rule bench]
command = "*service_programs.py %(name)s *"
rate = %(rate_hz)d
[dump]
directory = %(dumps)s
format = %(formats)s
keep-count = 0
"""


class Programs:
    """Processes as service_programs.py makes them."""

    def __init__(self, count, busy=0, period=0, work=0):
        command = [sys.executable, "-B", PROGRAMS, NAME, count, busy, THREADS, period, work]
        self.process = subprocess.Popen([str(word) for word in command], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.pids = [int(word) for word in self.process.stdout.readline().split()]
        self.busy = self.pids[:busy]
        if len(self.pids) != count:
            self.close()
            raise measure.Failed("%d of %d processes started" % (len(self.pids), count))

    def close(self):
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait()

    def __enter__(self):
        return self

    def __exit__(self, *_error):
        self.close()


class Service:
    """`sampled daemon` with a configuration, a socket and a directory of dumps of its own."""

    def __init__(self, count, cpu="100%", slice_s=1, formats="flamegraph"):
        self.folder = tempfile.mkdtemp(prefix="sampled-bench-")
        self.dumps, self.socket = os.path.join(self.folder, "dumps"), os.path.join(self.folder, "control.sock")
        os.mkdir(self.dumps, 0o700)
        config = os.path.join(self.folder, "sampled.conf")
        with open(config, "w") as file:
            file.write(CONFIG % dict(name=NAME, cpu=cpu, slice_s=slice_s, rate_hz=RATE_HZ, dumps=self.dumps, formats=formats))
        self.log = tempfile.TemporaryFile()
        command = [support.SAMPLED, "daemon", "--config", config, "--socket", self.socket]
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=self.log)
        self.pid = self.process.pid
        try:
            self.found_s = self.wait_for(count)
        except measure.Failed:
            self.close()
            raise

    def wait_for(self, count):
        """Seconds until all are profiled."""
        start = time.monotonic()
        while not (os.path.exists(self.socket) and self.status()["targets"]["sampled"] >= count):
            if self.process.poll() is not None or time.monotonic() - start > FOUND_TIMEOUT_S:
                self.log.seek(0)
                raise measure.Failed("the service did not find them all: %s" % self.log.read().decode()[-300:])
            time.sleep(0.2)
        return time.monotonic() - start

    def ctl(self, *words):
        done = subprocess.run([support.SAMPLED, "ctl", "--socket", self.socket] + [str(word) for word in words], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, timeout=support.SAMPLED_TIMEOUT_S)
        if done.returncode:
            raise measure.Failed("ctl %s: %s" % (words[0], done.stderr.decode().strip()))
        return done.stdout

    def status(self):
        return json.loads(self.ctl("status", "--json"))

    def credited(self):
        """(ticks credited, ticks) of all targets so far."""
        targets = [target for target in json.loads(self.ctl("list", "--json")) if target["parked"] is not None]
        return sum(target["parked"] * target["facts"]["ticks"] for target in targets), sum(target["facts"]["ticks"] for target in targets)

    def ticks(self, pid):
        """Of all targets, up to now: a dump has everything written that is under way."""
        self.ctl("dump", pid, "--last", "1s", "-f", "jsonl", "-o", "-")
        return self.status()["total"]["ticks"]

    def cpu_by_thread(self):
        """Nanoseconds on a CPU, by name of its thread."""
        found = {}
        folder = "/proc/%d/task" % self.pid
        for tid in os.listdir(folder):
            with open("%s/%s/comm" % (folder, tid)) as name, open("%s/%s/schedstat" % (folder, tid)) as spent:
                key = name.read().strip().replace("sampled-", "") if int(tid) != self.pid else "main"
                found[key] = found.get(key, 0) + int(spent.read().split()[0])
        return found

    def cpu_ns(self):
        return sum(self.cpu_by_thread().values())

    def memory_bytes(self):
        with open("/proc/%d/status" % self.pid) as file:
            return int(re.search(r"VmRSS:\s+(\d+) kB", file.read()).group(1)) * 1024

    def descriptors(self):
        return len(os.listdir("/proc/%d/fd" % self.pid))

    def close(self):
        if self.process.poll() is None:
            self.process.terminate()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.log.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self):
        return self

    def __exit__(self, *_error):
        self.close()


class BareLoop:
    """A loop that sleeps to absolute deadlines and does nothing else, beside what is measured."""

    def __init__(self, seconds):
        self.process = subprocess.Popen([LIMIT, "sleep", str(RATE_HZ), str(seconds)], stdout=subprocess.PIPE)

    def end(self):
        """(share of a core, share of its ticks that it reached)"""
        found = dict(word.split("=") for word in self.process.communicate()[0].decode().split())
        seconds = int(found["wall_ns"]) / 1e9
        return int(found["cpu_ns"]) / 1e9 / seconds, int(found["ticks"]) / seconds / RATE_HZ
