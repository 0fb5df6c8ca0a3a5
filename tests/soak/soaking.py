# SPDX-License-Identifier: Apache-2.0
"""What the soak is made of: the service with a folder of its own, the crowd of processes around it, and what must be true of what it writes."""
import gzip
import json
import mmap
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "integration"))
import support  # noqa: E402

LOSSES = ("lost_torn", "lost_unreadable", "lost_invalid", "lost_gone", "lost_dropped")
CONFIG = """[service]
rate = 49
[budget]
cpu = 50%%
memory = 4M
[history]
slice = 1s
[dump]
directory = %(dumps)s
format = jsonl collapsed
name = %(name)s
keep-count = 60
[push]
spool = %(spool)s
interval = 2s
spool-size = 4M
[rule soak]
command = *%(folder)s/*
"""


def interpreters():
    """An old, a middle and a new one, as far as there are; none under a root of its own, which could not exec the others."""
    found = [python for python in support.all_pythons() if not python.root]
    return [found[i] for i in sorted({0, len(found) // 2, len(found) - 1})] if found else []


class Service:
    """`sampled daemon` and its folder."""

    def __init__(self, disk=None, pattern="%n-%p-%t"):
        self.folder = tempfile.mkdtemp(prefix="sampled-soak-", dir="/tmp")
        disk = disk or self.folder
        self.dumps, self.spool = os.path.join(disk, "dumps"), os.path.join(disk, "spool")
        self.socket, self.log = os.path.join(self.folder, "control.sock"), os.path.join(self.folder, "log")
        for path in (self.dumps, self.spool):
            os.makedirs(path, exist_ok=True)
        self.config = os.path.join(self.folder, "sampled.conf")
        with open(self.config, "w", encoding="utf-8") as file:
            file.write(CONFIG % {"dumps": self.dumps, "spool": self.spool, "folder": self.folder, "name": pattern})
        for name in ("passing.py", "steady.py"):
            shutil.copy(os.path.join(HERE, name), self.folder)
        self.process = None

    def start(self, wrapper=()):
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen([*wrapper, support.SAMPLED, "daemon", "--config", self.config, "--socket", self.socket],
                                            stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd="/")
        support.wait_until(self.answers, "the service answers")
        return self

    def answers(self):
        if self.process.poll() is not None:
            raise AssertionError("the service ended: %s" % self.said())
        try:
            return self.ask("status") is not None
        except OSError:
            return False

    def said(self):
        with open(self.log, encoding="utf-8", errors="replace") as file:
            return file.read()[-4000:]

    def ask(self, *words):
        """What a command of `ctl` prints, over the socket, as control_protocol.h says."""
        with socket.socket(socket.AF_UNIX) as to:
            to.settimeout(30)
            to.connect(self.socket)
            data = b"".join(word.encode() + b"\0" for word in words)
            to.sendall(len(data).to_bytes(4, "little") + data)
            reply, output, errors = b"", b"", b""
            while True:
                piece = to.recv(1 << 16)
                if not piece:
                    raise OSError("the reply to %s was cut" % " ".join(words))
                reply += piece
                while len(reply) >= 5 and len(reply) >= 5 + int.from_bytes(reply[1:5], "little"):
                    kind, size = reply[:1], int.from_bytes(reply[1:5], "little")
                    content, reply = reply[5:5 + size], reply[5 + size:]
                    if kind == b"x" and content != b"\0":
                        raise AssertionError("%s: exit status %d, %s" % (" ".join(words), content[0], errors.decode()))
                    if kind == b"x":
                        return output
                    output += content if kind == b"o" else b""
                    errors += content if kind == b"e" else b""

    def status(self):
        return json.loads(self.ask("status", "--json"))

    def list(self):
        return json.loads(self.ask("list", "--json"))

    def state_of(self, pid):
        return next((target["state"] for target in self.list() if target["pid"] == pid), None)

    def resident_kib(self):
        """Its memory, and what of it is its own: the rest is the ring, which fills up once, and files."""
        with open("/proc/%d/status" % self.process.pid, encoding="utf-8", errors="replace") as file:
            sizes = {line.split(":")[0]: int(line.split()[1]) for line in file if line.startswith(("VmRSS", "RssAnon"))}
        return sizes["VmRSS"], sizes["RssAnon"]

    def descriptors(self):
        return len(os.listdir("/proc/%d/fd" % self.process.pid))

    def cpu_s(self):
        with open("/proc/%d/stat" % self.process.pid, encoding="utf-8") as file:
            return sum(map(int, file.read().rpartition(") ")[2].split()[11:13])) / os.sysconf("SC_CLK_TCK")

    def send(self, number):
        self.process.send_signal(number)

    def stop(self, number=signal.SIGTERM):
        """How many seconds its end took."""
        began = time.monotonic()
        if self.process and self.process.poll() is None:
            self.process.send_signal(number)
            self.process.wait(60)
        return time.monotonic() - began

    def __enter__(self):
        return self

    def __exit__(self, *_error):
        self.stop(signal.SIGKILL)
        shutil.rmtree(self.folder, ignore_errors=True)


class Steady:
    """The program that watches over itself."""

    def __init__(self, service, python):
        self.path = os.path.join(service.folder, "beats-%d" % random.getrandbits(32))
        self.process = subprocess.Popen([python.argv[-1], "-B", os.path.join(service.folder, "steady.py"), self.path], stdin=subprocess.DEVNULL)
        self.pid = self.process.pid
        support.wait_until(lambda: os.path.exists(self.path) and os.path.getsize(self.path) == 16 and self.beats()[0], "it beats")

    def beats(self):
        """How many there were, and the longest pause between two, in seconds."""
        with open(self.path, "r+b") as file, mmap.mmap(file.fileno(), 16) as table:
            count, longest_ns = memoryview(bytes(table)).cast("Q")
        return count, longest_ns / 1e9

    def __enter__(self):
        return self

    def __exit__(self, *_error):
        self.process.kill()
        self.process.wait()


class Crowd:
    """Processes that start, exec, fork and die. Everything it starts it reaps, and ends at last."""

    def __init__(self, service, pythons, most=10):
        self.service, self.pythons, self.most = service, pythons, most
        self.alive, self.started, self.stopped = [], 0, 0

    def command(self, *arguments):
        return [random.choice(self.pythons).argv[-1], "-B", os.path.join(self.service.folder, "passing.py"), *map(str, arguments)]

    def one(self):
        other, after = random.choice(self.pythons).argv[-1], round(random.uniform(0.1, 1.5), 2)
        kinds = (
            self.command("live", after, random.randrange(3)),
            self.command("live", 3 * after, random.randrange(3)),
            self.command("fork", random.randrange(1, 4), after),
            self.command("exec", other, after, after),
            ["sh", "-c", 'sleep $0; exec "$@"', str(after), *self.command("live", after, 1)],
            ["sh", "-c", "sleep $0; : $1", str(after), self.service.folder + "/no-python"],
            self.command("die"),
        )
        return random.choice(kinds)

    def step(self):
        """Starts one, where there is room, and reaps those that have ended."""
        if len(self.alive) < self.most:
            self.alive.append(subprocess.Popen(self.one(), stdin=subprocess.DEVNULL, start_new_session=True))
            self.started += 1
        for process in list(self.alive):
            self.stopped += is_stopped(process.pid)
            if process.poll() is not None:
                self.alive.remove(process)

    def end(self):
        for process in self.alive:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)  # the session made above
            process.wait()
        self.alive = []

    def __enter__(self):
        return self

    def __exit__(self, *_error):
        self.end()


def is_stopped(pid):
    try:
        with open("/proc/%d/stat" % pid, "rb") as file:
            return file.read().rpartition(b") ")[2][:1] in b"Tt"
    except OSError:
        return False


# --- what is on disk ---


def check_jsonl(text, what):
    """The first line of a profile whose every sample is accounted for, and the sum of its wall time."""
    assert text.endswith("\n"), "%s is not whole" % what
    lines = [json.loads(line) for line in text.splitlines()]
    head, nodes = lines[0], [line for line in lines if line["type"] == "node"]
    facts, self_values = head["facts"], [node["self"] for node in nodes]
    assert len(nodes) == sum(line["nodes"] for line in lines if line["type"] == "thread"), "%s lacks nodes" % what
    samples = sum(values.get("samples", 0) for values in self_values)
    lost = sum(facts[key] for key in LOSSES)
    assert facts["attempts"] == facts["samples"] + lost, "%s: %d attempts, %d samples, %d lost" % (
        what, facts["attempts"], facts["samples"], lost)
    left_out = facts["filtered"] + facts["omitted"] + facts["out_of_memory"] + facts.get("malformed_samples", 0)
    assert facts["samples"] == samples + left_out, "%s: %d samples, %d in the tree, %d left out" % (what, facts["samples"], samples, left_out)
    return head, sum(values.get("wall", 0) for values in self_values)


def check_spool_file(data, what):
    """Whole, as spool_write.h says; how many profiles it holds."""
    head = b"sampled-spool 1\n"
    assert data.startswith(head), "%s has no head" % what
    at, count = len(head), 0
    while at < len(data):
        end = data.index(b"\n", at)
        size = json.loads(data[at:end])["bytes"]
        packed = data[end + 1:end + 1 + size]
        assert len(packed) == size, "%s is cut" % what
        assert gzip.decompress(packed), "%s holds nothing" % what
        at, count = end + 1 + size, count + 1
    return count


def check_disk(service):
    """All that the service wrote is whole. Returns the names of unfinished files, and how many others there are."""
    unfinished, count = [], 0
    for folder in (service.dumps, service.spool):
        for name in os.listdir(folder):
            path = os.path.join(folder, name)
            if name.startswith("."):
                if name != ".sampled-dumps":
                    unfinished.append(path)
                continue
            try:
                with open(path, "rb") as file:
                    data = file.read()
            except FileNotFoundError:  # the oldest go at any time
                continue
            count += 1
            if folder == service.spool:
                check_spool_file(data, name)
            elif name.endswith(".jsonl"):
                check_jsonl(data.decode("utf-8"), name)
            else:
                support.parse_collapsed(data)
    return unfinished, count
