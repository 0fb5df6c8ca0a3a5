# SPDX-License-Identifier: Apache-2.0
"""What the tests of stops share: targets that count what a stop could harm (tests/native/stopping.py), and the kernel's word for their threads."""
import array
import contextlib
import ctypes
import os
import platform
import re
import signal
import struct
import subprocess
import sys
import time

import native
import support

COLUMNS = 4  # of tests/targets/truth.py
PTRACE_SEIZE = 0x4206
# Seizes the threads of a process, and holds them, running, until it is killed.
TRACER = """
import ctypes, os, sys, time
libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
for tid in os.listdir("/proc/%s/task" % sys.argv[1]):
    while libc.ptrace(0x4206, int(tid), None, None):
        time.sleep(0.0005)
print("SEIZED", flush=True)
time.sleep(3600)
"""
LIBC = ctypes.CDLL(None, use_errno=True)
LIBC.sigqueue.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_void_p]


@contextlib.contextmanager
def target(part, *args, python=None):
    """A running part of tests/native/stopping.py; counted(row, column) of it is what it counts."""
    with native.target(python or support.newest(), "stopping.py", part, "@/table", *args) as running:
        running.counted = lambda row, column=0: words(running)[row * COLUMNS + column]
        yield running


def words(running):
    with open(running.path("table"), "rb") as file:
        data = file.read()
    return struct.unpack("=%dQ" % (len(data) // 8), data)


def threads(pid):
    """{tid: (state, tracer)} of the threads that there are."""
    found = {}
    for tid in os.listdir("/proc/%d/task" % pid):
        with contextlib.suppress(OSError):
            with open("/proc/%d/task/%s/status" % (pid, tid)) as file:
                status = file.read()
            found[int(tid)] = (re.search(r"^State:\s+(\S)", status, re.M).group(1), int(re.search(r"^TracerPid:\s+(\d+)", status, re.M).group(1)))
    return found


def harm(pid):
    """What is wrong with the threads of a process that nobody may hold any more; '' when nothing is."""
    held = {tid: found for tid, found in threads(pid).items() if found[0] not in "RSD" or found[1]}
    return "threads held: %r" % held if held else ""


def goes_on(running, rows=(0,)):
    """Waits until each row's count has risen."""
    before = words(running)
    support.wait_until(lambda: all(running.counted(row) > before[row * COLUMNS] for row in rows), "it goes on: %r" % (threads(running.pid),))


@contextlib.contextmanager
def traced(pid):
    """Another program holds the process meanwhile, as a debugger does."""
    tracer = subprocess.Popen([sys.executable, "-c", TRACER, str(pid)], stdout=subprocess.PIPE, stdin=subprocess.DEVNULL)
    try:
        assert tracer.stdout.readline() == b"SEIZED\n"
        yield tracer
    finally:
        tracer.kill()
        tracer.wait()
        tracer.stdout.close()


def forbid_ptrace():
    """In a process that is about to become another program: a seccomp filter as older containers have one, under which ptrace fails with EPERM."""
    number = {"x86_64": 101, "aarch64": 117}[platform.machine()]
    # load the number; equal: fail; else allow (linux/filter.h, linux/seccomp.h)
    steps = [(0x20, 0, 0, 0), (0x15, 0, 1, number), (0x06, 0, 0, 0x00050001), (0x06, 0, 0, 0x7FFF0000)]
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in steps))
    program = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(steps), ctypes.addressof(code)))
    if LIBC.prctl(38, 1, 0, 0, 0) or LIBC.prctl(22, 2, ctypes.c_void_p(ctypes.addressof(program)), 0, 0):
        raise OSError(ctypes.get_errno(), "prctl")


@contextlib.contextmanager
def preferred(pid):
    """The process, and those that this one starts, go before other work on the machine where that is permitted; the options with which sampled does."""
    try:
        os.sched_setscheduler(pid, os.SCHED_RR, os.sched_param(1))
        os.sched_setscheduler(0, os.SCHED_RR | os.SCHED_RESET_ON_FORK, os.sched_param(2))
    except PermissionError:
        yield []
        return
    try:
        yield ["--realtime"]
    finally:
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))


def send_queued(pid, numbers, seconds, interval=0.001):
    """Sends the signals with the time at which each is sent; {number: how many}."""
    sent = dict.fromkeys(numbers, 0)
    end = due = time.monotonic()
    end += seconds
    while due < end:
        for number in numbers:
            if LIBC.sigqueue(pid, number, time.monotonic_ns()):
                raise OSError(ctypes.get_errno(), "sigqueue")
            sent[number] += 1
        due += interval
        time.sleep(max(due - time.monotonic(), 0))
    return sent


def pending(pid, numbers):
    """Whether one of these signals has come to a process and was not taken yet."""
    with open("/proc/%d/status" % pid, encoding="utf-8") as file:
        found = [int(mask, 16) for mask in re.findall(r"(?m)^(?:Sig|Shd)Pnd:\s+(\w+)$", file.read())]
    return any(mask >> (number - 1) & 1 for mask in found for number in numbers)


def stolen():
    """Clock ticks that the machine's host has taken from its CPUs (proc(5), "steal")."""
    with open("/proc/stat") as file:
        return int(file.readline().split()[8])


def taken(running, path, numbers):
    """{number: (count, latencies in ns)} that the target wrote after SIGUSR2."""
    with contextlib.suppress(FileNotFoundError):
        os.remove(path)
    os.kill(running.pid, signal.SIGUSR2)
    support.wait_until(lambda: os.path.exists(path), "the target tells what signals it took")
    found = {}
    with open(path, "rb") as file:
        for number in numbers:
            count, size = struct.unpack("=QQ", file.read(16))
            found[number] = (count, sorted(array.array("q", file.read(size))))
    return found


def at(values, share):
    """A quantile of sorted values."""
    return values[min(int(len(values) * share), len(values) - 1)] if values else 0
