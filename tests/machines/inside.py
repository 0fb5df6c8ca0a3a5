#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Runs within a machine that tests/machines/run has booted, on that release's own Python: tries each feature and writes a line of JSON to the
console for each, {"feature", "verdict", "why"}. A verdict is `works`, `no` (sampled said why not, in its one line) or `wrong`.

It is the first process, since a systemd takes an emulated machine minutes to start; for what needs one it becomes systemd at the end, which runs this
file once more."""
import ctypes
import glob
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time

HERE = "/machine"
SAMPLED = HERE + "/static"
SHARED = HERE + "/shared"
TARGET = HERE + "/mixed.py"
USER = 1000
NEEDS_SYSTEMD = "service, systemd"
with open(HERE + "/options", encoding="utf-8") as file:
    OPTIONS = json.load(file)
SLOW = OPTIONS["slow"]  # an emulated machine takes longer for all
SECONDS = str(3 * SLOW)
TIMEOUT_S = 60 * SLOW
FEATURES = []
POWER_OFF = 0x4321FEDC  # reboot(2)


class Refused(Exception):
    """sampled, or the loader of its libraries, said why not."""


def feature(name):
    def add(check):
        FEATURES.append((name, check))
        return check
    return add


def execute(arguments, timeout_s=TIMEOUT_S, **more):
    return subprocess.run(list(map(str, arguments)), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          universal_newlines=True, timeout=timeout_s, **more)


def sampled(*arguments, program=SAMPLED, **more):
    """What it printed, and what it said."""
    done = execute([program, *arguments], **more)
    if done.returncode:
        raise Refused("%s (exit status %d)" % ((done.stderr.strip().splitlines() or ["it said nothing"])[-1], done.returncode))
    return done.stdout, done.stderr


class Target:
    def __init__(self, **more):
        self.process = subprocess.Popen([sys.executable, TARGET], stdout=subprocess.PIPE, **more)
        self.pid = self.process.pid
        self.process.stdout.readline()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        assert self.process.poll() is None, "the target died"
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def stacks(path):
    """{stack without lines: samples} of a collapsed file."""
    found = {}
    for line in read(path).splitlines():
        stack, count = line.rsplit(" ", 1)
        names = tuple(re.sub(r" \([^)]*\)", "", name) for name in stack.split(";")[1:])
        found[names] = found.get(names, 0) + int(count)
    return found


def share(found, holds):
    return 100 * sum(count for stack, count in found.items() if holds(stack)) / max(1, sum(found.values()))


def check_python(found):
    """The program's functions, each where it can be."""
    assert sum(found.values()) > 10, "%d samples" % sum(found.values())
    assert share(found, lambda stack: "pack" in stack) > 5 and share(found, lambda stack: "sort" in stack) > 5, "not both of its parts: %s" % found
    strange = [stack for stack in found if "key" in stack and "sort" not in stack]
    assert not strange, strange


def attach(target, *options, program=SAMPLED, **more):
    path = "a.collapsed"
    said = sampled("attach", target.pid, "-d", SECONDS, "-o", path, "--stats", *options, program=program, **more)[1]
    found = stacks(path)
    check_python(found)
    return found, said


def samples_of(found, said):
    lost = re.search(r"^  lost +(.*)$", said, re.M)
    return "%d samples%s" % (sum(found.values()), "; lost: " + lost.group(1) if lost else "")


@feature("unit tests")
def _():
    if not os.path.exists(HERE + "/unit"):
        raise Refused("not built for this release")
    done = execute([HERE + "/unit", "--timeout", "600", "-j2", "--filter", OPTIONS["unit"]], timeout_s=3600)
    if "error while loading shared libraries" in done.stderr:
        raise Refused(done.stderr.strip())
    summary = [line for line in (done.stdout + done.stderr).splitlines() if "Synthesis" in line]
    assert done.returncode == 0, "exit status %d: %s" % (done.returncode, "\n".join((done.stdout + done.stderr).splitlines()[-60:]))
    return re.sub(r"\x1b\[[0-9;]*m|\[====\] *", "", summary[0])


@feature("attach")
def _():
    with Target() as target:
        return samples_of(*attach(target))


@feature("attach, shared libraries")
def _():
    with Target() as target:
        return samples_of(*attach(target, program=SHARED))


@feature("another user's sampled")
def _():
    """Of his own process, without any right."""
    def drop():
        os.setgid(USER)
        os.setuid(USER)
    with Target(preexec_fn=drop) as target:
        return samples_of(*attach(target, preexec_fn=drop))


def standing(*options):
    """How many samples were taken while the thread stood, by the accounting."""
    with Target() as target:
        sampled("attach", target.pid, "-d", SECONDS, "-r", "100", "--visit-budget", "50%", "-f", "jsonl", "-o", "a.jsonl", *options)
    facts = json.loads(read("a.jsonl").splitlines()[0])["facts"]
    text = "%d of %d samples" % (facts["near"], facts["samples"])
    if not facts["near"]:
        raise Refused(text)
    return text


@feature("standing samples")
def _():
    return standing()


@feature("standing samples, `--realtime`")
def _():
    return standing("--realtime")


@feature("`--native`")
def _():
    """Below pack() lie zlib's functions, one calling another; in the interpreter's own no frame shows where it is stripped."""
    with Target() as target:
        found, said = attach(target, "--native")
    whole, innermost = map(int, re.search(r"all frames in (\d+) samples? the innermost in (\d+)", said.replace(",", "")).groups())
    packs = {stack: count for stack, count in found.items() if "pack" in stack}
    text = "whole stacks in %d samples, the innermost C frame alone in %d; of pack(), %.0f %% have C frames, %.0f %% two or more" % (
        whole, innermost, share(packs, lambda stack: stack[-1] != "pack"), share(packs, lambda stack: len(stack) - stack.index("pack") > 2))
    assert share(packs, lambda stack: stack[-1] != "pack") > 50, text
    if whole < innermost:
        raise Refused(text)
    return text


@feature("`--blocking`")
def _():
    with Target() as target:
        found, said = attach(target, "--blocking")
    stops = re.search(r"^  stops +(\d+)", said, re.M)
    assert stops and int(stops.group(1)) > 0, said
    return samples_of(found, said)


@feature("run")
def _():
    sampled("run", "-o", "r.collapsed", "--", sys.executable, TARGET, SECONDS)
    check_python(stacks("r.collapsed"))


@feature("run `--subprocesses`")
def _():
    code = "import subprocess, sys; subprocess.run([sys.executable, %r, %r])" % (TARGET, SECONDS)
    sampled("run", "--subprocesses", "-o", "r.collapsed", "--", sys.executable, "-c", code)
    assert share(stacks("r.collapsed"), lambda stack: "pack" in stack) > 5, read("r.collapsed")


@feature("dump")
def _():
    with Target() as target:
        said = sampled("dump", target.pid)[0]
    assert "mixed.py" in said and "<module>" in said, said


@feature("dump `--native`")
def _():
    deepest = ""
    with Target() as target:
        for _ in range(10):
            said = sampled("dump", "--native", target.pid)[0]
            assert "mixed.py" in said, said
            if said.count("\n") > deepest.count("\n"):
                deepest = said
    frames = [line.split()[0] for line in deepest.splitlines() if re.match(r" {4}\S", line)]
    return " ".join(frames)


@feature("dump of a core")
def _():
    with open("/proc/sys/kernel/core_pattern", "w") as file:
        file.write("/machine/core.%p")
    process = subprocess.Popen([sys.executable, TARGET], stdout=subprocess.PIPE,
                               preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CORE, (resource.RLIM_INFINITY,) * 2))
    process.stdout.readline()
    time.sleep(SLOW)
    process.send_signal(signal.SIGABRT)
    process.wait()
    said = sampled("dump", "--core", glob.glob("/machine/core.*")[0], "--native")[0]
    assert "mixed.py" in said, said


@feature("snapshots")
def _():
    with Target() as target:
        process = subprocess.Popen([SAMPLED, "attach", str(target.pid), "-q", "-o", "s.collapsed"], stdout=subprocess.PIPE, universal_newlines=True)
        first = None
        for _ in range(3):
            time.sleep(SLOW)
            process.send_signal(signal.SIGUSR1)
            first = first or process.stdout.readline().strip()
        process.send_signal(signal.SIGINT)
        rest = process.communicate(timeout=TIMEOUT_S)[0].split()
        assert process.returncode == 0, process.returncode
    totals = [sum(stacks(name).values()) for name in [first, *rest]]
    assert totals == sorted(totals), totals
    check_python(stacks(rest[-1]))
    return "%d, and the whole: %s samples" % (len(rest), totals)


@feature("record, convert, report, diff")
def _():
    with Target() as target:
        for name in ("x.sampled", "y.sampled"):
            sampled("attach", target.pid, "-d", SECONDS, "--record", name)
    for name in ("x.collapsed", "x.html", "x.svg", "x.pb.gz", "x.pstats", "x.speedscope.json"):
        sampled("convert", "x.sampled", "-o", name)
    check_python(stacks("x.collapsed"))
    assert "pack" in sampled("report", "x.sampled")[0]
    sampled("diff", "x.sampled", "y.sampled")


def ask_service(pid, *options):
    until = time.monotonic() + TIMEOUT_S
    while True:
        try:
            path = tempfile.mktemp(suffix=".collapsed")
            sampled("ctl", *options, "dump", pid, "-o", path)
            check_python(stacks(path))
            return sampled("ctl", *options, "status", "--json")[0]
        except (Refused, AssertionError):
            if time.monotonic() > until:
                raise
        time.sleep(SLOW)


@feature(NEEDS_SYSTEMD)
def _():
    for command in (["systemd-sysusers"], ["systemd-tmpfiles", "--create", "/usr/lib/tmpfiles.d/sampled.conf"]):
        done = execute(command)
        assert done.returncode == 0, done.stderr
    with Target() as target:
        done = execute(["systemctl", "start", "sampled.service"], 600)
        if done.returncode:
            raise AssertionError(done.stderr + execute(["journalctl", "-u", "sampled", "-o", "cat", "--no-pager"]).stdout)
        ask_service(target.pid)
        done = execute(["systemctl", "reload", "sampled.service"])
        assert done.returncode == 0, done.stderr
        ask_service(target.pid)
    done = execute(["systemctl", "stop", "sampled.service"])
    state = execute(["systemctl", "show", "-pResult", "sampled.service"]).stdout
    assert done.returncode == 0 and "Result=success" in state, done.stderr + state
    warnings = execute(["journalctl", "-u", "sampled", "-o", "cat", "--no-pager", "-p", "warning"]).stdout.split("\n")
    return "; ".join(line for line in warnings if line and not line.startswith("-- "))


@feature("service, no systemd")
def _():
    os.makedirs("/machine/dumps", exist_ok=True)
    with open("/machine/conf", "w") as file:
        file.write("[dump]\ndirectory = /machine/dumps\n[rule all]\ncommand = *\n")
    with Target() as target, open("/machine/daemon.log", "w+") as log:
        process = subprocess.Popen([SAMPLED, "daemon", "--config", "/machine/conf", "--socket", "/machine/sock"], stderr=log, stdout=log)
        try:
            ask_service(target.pid, "--socket", "/machine/sock")
        except (Refused, AssertionError) as error:
            log.seek(0)
            raise AssertionError("%s; its log: %s" % (error, log.read()))
        finally:
            process.terminate()
            status = process.wait(TIMEOUT_S)
        assert status == 0, status


def doctor(*arguments):
    done = execute([SAMPLED, "doctor", *arguments])
    lines = done.stdout.splitlines()
    assert done.returncode == 0 and lines and all(line.split()[0] in ("ok", "warn", "fail") for line in lines), done.stdout + done.stderr
    return "; ".join(line for line in lines if not line.startswith("ok"))


@feature("doctor")
def _():
    return doctor()


@feature("doctor of a process")
def _():
    with Target() as target:
        return doctor(target.pid)


def judge(check):
    try:
        return "works", check() or ""
    except Refused as error:
        return "no", str(error)
    except (AssertionError, OSError, ValueError, IndexError, KeyError, subprocess.SubprocessError) as error:
        return "wrong", "%s: %s" % (type(error).__name__, error)


def be_first():
    os.environ.update(PATH="/usr/sbin:/usr/bin:/sbin:/bin", HOME="/root")
    for kind, place in (("proc", "/proc"), ("sysfs", "/sys"), ("devtmpfs", "/dev"), ("tmpfs", "/dev/shm"), ("tmpfs", "/run")):
        os.makedirs(place, exist_ok=True)
        if not os.path.ismount(place):
            subprocess.run(["mount", "-t", kind, kind, place], check=True)


def main():
    first = os.getpid() == 1
    if first:
        be_first()
    console = open("/dev/console", "w", buffering=1)
    os.chmod(HERE, 0o777)
    wanted = [(name, check) for name, check in FEATURES if re.search(OPTIONS["features"], name)]
    for name, check in wanted:
        if first == (name == NEEDS_SYSTEMD):
            continue
        folder = tempfile.mkdtemp(dir=HERE)
        os.chmod(folder, 0o777)
        os.chdir(folder)
        began = time.monotonic()
        verdict, why = judge(check)
        os.chdir("/")
        shutil.rmtree(folder, ignore_errors=True)
        line = json.dumps({"feature": name, "verdict": verdict, "why": why[-3000:], "seconds": round(time.monotonic() - began, 1)})
        console.write("\nRESULT %s\n" % line)
    if first and NEEDS_SYSTEMD in dict(wanted):
        os.execv("/lib/systemd/systemd", ["/lib/systemd/systemd"])
    if first:
        ctypes.CDLL(None).reboot(POWER_OFF)


main()
