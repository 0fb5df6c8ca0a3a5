# SPDX-License-Identifier: Apache-2.0
"""What the integration tests share: the interpreters of this machine, target programs, and running sampled.

Environment: SAMPLED the program (build/sampled); SAMPLED_PYTHONS further interpreters, joined by colons;
SAMPLED_TEST_PYTHONS=quick for an old and a new one only; SAMPLED_CACHE where tests/setup-roots keeps its roots;
SAMPLED_SANITIZED=1 where the program is a sanitized build, which is several times slower."""
import functools
import glob
import json
import os
import platform
import re
import select
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SAMPLED = os.path.abspath(os.environ.get("SAMPLED", os.path.join(TOP, "build", "sampled")))
TARGETS = os.path.join(TOP, "tests", "targets")
CACHE = os.environ.get("SAMPLED_CACHE", os.path.expanduser("~/.cache/sampled"))
QUICK = os.environ.get("SAMPLED_TEST_PYTHONS") == "quick"
SUPPORTED = [(3, minor) for minor in range(6, 16)]
LONG = os.environ.get("SAMPLED_LONG") == "1"
SANITIZED = os.environ.get("SAMPLED_SANITIZED") == "1"
# How long a program must live that sampled is to find and to sample: a sanitized build on a slow machine needs more than a second to
# find the interpreter in it.
LIFE_S = 3 if SANITIZED else 2
# Bounds far away: what is waited for comes, if at all, long before, on a machine that has ten times as much to do as it can.
PATIENCE_S = 300
READY_TIMEOUT_S = PATIENCE_S
SAMPLED_TIMEOUT_S = PATIENCE_S

ASK = """
import json, os, sys, sysconfig
maps = open("/proc/self/maps").read() if os.path.exists("/proc/self/maps") else ""
print(json.dumps([list(sys.version_info[:3]), sys.version.split()[0], "libpython" in maps, os.path.realpath(sys.executable),
    bool(sysconfig.get_config_var("Py_GIL_DISABLED"))]))
"""


class Python:
    """An interpreter: argv starts it, root is '' or the directory it is chrooted into."""

    def __init__(self, argv, root, version, text, kind, real):
        self.argv, self.root, self.version, self.text, self.kind, self.real = argv, root, version, text, kind, real

    def __repr__(self):
        return "%s (%s, %s)" % (self.text, self.kind, self.real)

    @property
    def label(self):
        return re.sub(r"\W", "_", "%s_%s" % (self.text, self.kind))


def ask(argv, root):
    try:
        done = subprocess.run(argv + ["-c", ASK], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=60, cwd="/")
        version, text, shared, real, free_threaded = json.loads(done.stdout)
    except (OSError, ValueError, subprocess.SubprocessError):
        return None
    if free_threaded:
        return None
    kind = "chroot" if root else "shared" if shared else "static"
    return Python(argv, root, tuple(version), text, kind, root + real)


def candidates():
    names = ["python3"] + ["python3.%d" % minor for _, minor in SUPPORTED]
    for folder in os.environ.get("PATH", "").split(os.pathsep) + ["/usr/bin", "/usr/local/bin"]:
        for name in names:
            path = os.path.join(folder, name)
            if os.access(path, os.X_OK):
                yield [path], ""
    for path in sorted(glob.glob(os.path.expanduser("~/.pyenv/versions/*/bin/python3"))):
        yield [path], ""
    for path in filter(None, os.environ.get("SAMPLED_PYTHONS", "").split(":")):
        yield [path], ""
    if os.geteuid() == 0:
        for root in sorted(glob.glob(os.path.join(CACHE, "root-*"))):
            for path in sorted(glob.glob(os.path.join(root, "usr/bin/python3.*"))):
                if re.fullmatch(r"python3\.\d+", os.path.basename(path)):
                    yield ["chroot", root, "/usr/bin/" + os.path.basename(path)], root


@functools.lru_cache(maxsize=None)
def all_pythons():
    """Every supported interpreter found, oldest first, each real file once."""
    found = {}
    seen = set()
    for argv, root in candidates():
        key = root or os.path.realpath(argv[-1])
        if (key, argv[-1] if root else "") in seen:
            continue
        seen.add((key, argv[-1] if root else ""))
        python = ask(argv, root)
        if python and python.version[:2] in SUPPORTED:
            found.setdefault(python.real, python)
    return tuple(sorted(found.values(), key=lambda python: (python.version, python.kind, python.real)))


@functools.lru_cache(maxsize=None)
def pythons():
    """The interpreters to test with: all, or two when SAMPLED_TEST_PYTHONS=quick (one with frames on the heap if there is
    one, and the newest)."""
    found = all_pythons()
    if not QUICK or len(found) < 3:
        return found
    old = [python for python in found if (3, 8) <= python.version < (3, 11)] or [found[0]]
    return (old[-1], found[-1])


def each_version():
    """One of each version: what is judged by the version, and takes seconds, need not be judged twice. All with SAMPLED_LONG=1."""
    return pythons() if LONG else tuple({python.version[:2]: python for python in pythons()}.values())


def few():
    """One with frames on the heap, 3.11 or 3.12 (a static one if there is one), and the newest. All with SAMPLED_LONG=1."""
    found = pythons()
    if LONG or len(found) < 4:
        return found
    heap = [python for python in found if (3, 8) <= python.version < (3, 11)]
    first = sorted((python for python in found if (3, 11) <= python.version < (3, 13)), key=lambda python: python.kind != "static")
    return tuple(dict.fromkeys(heap[-1:] + first[:1] + list(found[-1:])))


def newest():
    return pythons()[-1] if pythons() else None


def needs_python(test):
    """Skips a test, in plain sight, where no interpreter was found."""
    return unittest.skipUnless(pythons(), "no supported Python was found")(test)


def on(which):
    """Of a method of a class of each_python: these interpreters only (each_version, few)."""
    def mark(method):
        method.which = which
        return method

    return mark


def each_python(cls):
    """Makes one test a Python of every method named check_…(self, python); a version of 3.6 to 3.15 that is not on this
    machine becomes a skipped test."""
    for name in [name for name in vars(cls) if name.startswith("check_")]:
        method = getattr(cls, name)
        for python in getattr(method, "which", pythons)():
            test = "test_%s_%s" % (name[len("check_"):], python.label)
            while hasattr(cls, test):
                test += "_too"
            setattr(cls, test, functools.partialmethod(method, python))
        if not QUICK:
            for version in SUPPORTED:
                if version not in {python.version[:2] for python in pythons()}:
                    why = "Python %d.%d is not on this machine" % version
                    setattr(cls, "test_%s_%d_%d_absent" % ((name[len("check_"):],) + version), skipped(why))
    return cls


def skipped(why):
    def test(self):
        self.skipTest(why)

    return test


def need_root(test):
    return unittest.skipUnless(os.geteuid() == 0, "only root can become another user")(test)


class Target:
    """A running target program of tests/targets; facts is what its READY line said. files: further ones that it needs beside it, or the
    program itself. Use as a context manager."""

    def __init__(self, python, script, *args, env=None, user=None, files=()):
        self.python = python
        # Under a root of its own the program can only see what lies in there, so all targets are copied, wherever it runs.
        self.folder = tempfile.mkdtemp(prefix="sampled-test-", dir=(python.root or "") + "/tmp")
        os.chmod(self.folder, 0o777)
        for path in glob.glob(os.path.join(TARGETS, "*.py")) + list(files):
            shutil.copy(path, self.folder)
        self.inside = self.folder[len(python.root):]  # the folder as the target sees it
        command = self.command(script)
        command += [str(arg).replace("@", self.inside) for arg in args]
        extra = dict(user=user, group=user, extra_groups=[]) if user is not None else {}
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, env=env, cwd="/", start_new_session=True, **extra
        )
        self.pid = self.process.pid
        self.facts = {}

    def command(self, script):
        return self.python.argv + ["-B", os.path.join(self.inside, script)]

    def wait_ready(self):
        deadline = time.monotonic() + READY_TIMEOUT_S
        data = b""
        while b"\n" not in data:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self.process.stdout], [], [], max(left, 0))[0]:
                raise AssertionError("%r did not get ready in %d s" % (self.python, READY_TIMEOUT_S))
            piece = os.read(self.process.stdout.fileno(), 1 << 20)
            if not piece:
                raise AssertionError("%r ended before it was ready, status %s" % (self.python, self.process.wait()))
            data += piece
        line = data.decode("utf-8", "surrogateescape").split("\n")[0]
        if line.startswith("READY "):
            self.facts = json.loads(line[len("READY "):])
        return self

    def path(self, name):
        """A file in the target's folder, as the test sees it; pass @/NAME as argument to the target."""
        return os.path.join(self.folder, name)

    def state(self):
        """The letter of its state in /proc: R, S, D, T, t, Z."""
        with open("/proc/%d/stat" % self.pid, "rb") as file:
            return chr(file.read().rpartition(b") ")[2][0])

    def wait_still(self):
        """Returns when all its threads wait and none has run for 50 ms: what it says by READY it says before it waits itself."""
        seen = None

        def stands():
            nonlocal seen
            before, seen = seen, switches(self.pid)
            time.sleep(0.05)
            return seen == before and all(state == "S" for state, _counts in seen.values())

        wait_until(stands, "all threads of %r wait" % self.python)
        return self

    def stop(self):
        if self.process.poll() is None:
            os.killpg(self.pid, signal.SIGKILL)  # its own session: the children go with it
        self.process.wait()
        self.process.stdout.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self):
        try:
            return self.wait_ready()
        except BaseException:
            self.stop()
            raise

    def __exit__(self, *_error):
        self.stop()


def sampled(*args, timeout=SAMPLED_TIMEOUT_S, user=None, cwd=None, env=None, stdin=subprocess.DEVNULL):
    """Runs sampled to its end; returns a CompletedProcess with bytes. user: a numeric uid (and gid) to run as."""
    extra = dict(user=user, group=user, extra_groups=[]) if user is not None else {}
    command = [program_for(user)] + [str(arg) for arg in args]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=stdin, cwd=cwd, env=env, **extra) as process:
        try:
            out, err = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            stands = where_it_stands(process.pid)
            process.kill()
            raise AssertionError("%s: no end after %d s:\n%s" % (command, timeout, stands)) from None
        except BaseException:
            process.kill()
            raise
    return subprocess.CompletedProcess(command, process.returncode, out, err)


def where_it_stands(pid):
    """For a report: what each thread of a process waits for."""
    lines = []
    for task in sorted(glob.glob("/proc/%d/task/*" % pid)):
        for name in ("comm", "wchan", "syscall", "stack"):
            try:
                with open(os.path.join(task, name), encoding="utf-8") as file:
                    lines.append("%s %s: %s" % (os.path.basename(task), name, file.read().strip()))
            except OSError as error:
                lines.append("%s: %s" % (name, error))
    return "\n".join(lines)


def samples_tried(said):
    """Of what `attach --stats` told: how many samples were due to be taken, and how many were."""
    return [int(number.replace(b",", b"")) for number in re.search(rb"tried +([\d,]+): taken ([\d,]+);", said).groups()]


def start_sampled(*args, user=None, cwd=None, **extra):
    """Starts sampled and does not wait."""
    if user is not None:
        extra.update(user=user, group=user, extra_groups=[])
    extra.setdefault("stdout", subprocess.PIPE)
    extra.setdefault("stderr", subprocess.PIPE)
    return subprocess.Popen([program_for(user)] + [str(arg) for arg in args], stdin=subprocess.DEVNULL, cwd=cwd, **extra)


@functools.lru_cache(maxsize=None)
def program_for(user):
    """The program's path; for another user a copy where that user can reach it."""
    if user is None:
        return SAMPLED
    folder = tempfile.mkdtemp(prefix="sampled-bin-", dir="/tmp")
    os.chmod(folder, 0o755)
    unittest.addModuleCleanup(shutil.rmtree, folder, ignore_errors=True)
    unittest.addModuleCleanup(program_for.cache_clear)
    return shutil.copy(SAMPLED, folder)


class Line:
    """A line of collapsed output: pid (None when there is one process), interpreter, tid, thread name, frames root first
    as (function, file, line), and the count."""

    def __init__(self, text):
        stack, _, count = text.rpartition(" ")
        self.text = text
        self.count = int(count)
        self.pid = self.tid = self.thread = None
        self.interpreter = 0
        self.frames = []
        parts = stack.split(";")
        while parts:
            part = parts.pop(0)
            if self.tid is None and part.startswith("process "):
                self.pid = int(part.split(" ")[1])
            elif self.tid is None and part.startswith("interpreter "):
                self.interpreter = int(part.split(" ")[1])
            elif self.tid is None:
                match = re.fullmatch(r"thread (\d+|\?)(?: \"(.*)\")?", part)
                if not match:
                    raise ValueError("no thread element in %r" % text)
                self.tid = int(match.group(1)) if match.group(1) != "?" else 0
                self.thread = match.group(2)
            else:
                self.frames.append(frame_of(part))


@functools.lru_cache(65536)
def frame_of(part):
    match = re.fullmatch(r"(.*?) \((.*):(\d+)\)", part)
    return (match.group(1), match.group(2), int(match.group(3))) if match else (part, "", 0)


def parse_collapsed(data):
    """Lines of collapsed output, which must be UTF-8 and end in a newline."""
    text = data.decode("utf-8")
    if text and not text.endswith("\n"):
        raise ValueError("the last line is not whole: %r" % text[-200:])
    return [Line(line) for line in text.split("\n")[:-1] if not line.startswith("# value: ")]


def read_collapsed(path):
    with open(path, "rb") as file:
        return parse_collapsed(file.read())


def short_turns():
    """Whether who asks for turns of 0.1 ms is let in at once: Linux, since 6.12."""
    return tuple(int(number) for number in re.match(r"(\d+)\.(\d+)", platform.release()).groups()) >= (6, 12)


def switches(pid):
    """{thread: its state (R, S, D, T, t, Z), and how often it gave up a CPU and was taken off one}."""
    found = {}
    for tid in os.listdir("/proc/%d/task" % pid):
        try:
            with open("/proc/%d/task/%s/status" % (pid, tid), encoding="utf-8", errors="replace") as file:
                text = file.read()
        except (FileNotFoundError, ProcessLookupError):
            continue  # it has ended since
        found[tid] = (re.search(r"(?m)^State:\s+(\w)", text).group(1), re.findall(r"ctxt_switches:\s+(\d+)", text))
    return found


def turns(pid):
    """How often the sampler's thread of this process has gone to sleep, which it does once a tick; 0: there is none, yet or any more."""
    try:
        for tid in os.listdir("/proc/%d/task" % pid):
            with open("/proc/%d/task/%s/status" % (pid, tid), encoding="utf-8") as file:
                text = file.read()
            if text.startswith("Name:\tsampled-sampler\n"):
                return int(re.search(r"\nvoluntary_ctxt_switches:\s+(\d+)", text).group(1))
    except (FileNotFoundError, ProcessLookupError):
        pass
    return 0


def wait_sampling(process, ticks=50):
    """Returns when sampled, which was started, has had so many ticks more, however long they take."""
    before = turns(process.pid)

    def has_sampled():
        if process.poll() is not None:
            raise AssertionError("sampled ended with %d" % process.returncode)
        return turns(process.pid) >= before + ticks

    wait_until(has_sampled, "%d ticks" % ticks)


def wait_until(holds, what, timeout=PATIENCE_S, said=None):
    """Returns when holds() is true, which must be soon. What said() returns at the end is shown where it is not."""
    deadline = time.monotonic() + timeout
    while not holds():
        if time.monotonic() > deadline:
            raise AssertionError("not within %d s: %s%s" % (timeout, what, ": " + said() if said else ""))
        time.sleep(0.01)
