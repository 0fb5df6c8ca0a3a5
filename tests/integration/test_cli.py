# SPDX-License-Identifier: Apache-2.0
"""The command line's contract: errors are one line with the right exit status, every ending writes everything, the target
goes on undisturbed."""
import contextlib
import ctypes
import fcntl
import functools
import json
import os
import re
import signal
import subprocess
import tempfile
import time
import unittest

import support

DONE, FAILED, USAGE, NO_PYTHON, NOT_PERMITTED, BEFORE_EXEC, GIVEN_UP = 0, 1, 2, 3, 4, 125, 130
NOBODY = 65534
F_SETPIPE_SZ = 1031
PF_KTHREAD = 0x00200000
MANUAL = os.path.join(support.TOP, "docs", "sampled.1")

BUSY = """
import sys, time
def spin():
    return sum(range(100))
end = time.time() + float(sys.argv[1])
while time.time() < end:
    spin()
sys.exit(int(sys.argv[2]))
"""


def is_kernel_thread(pid):
    try:
        with open("/proc/%d/stat" % pid, "rb") as file:
            return int(file.read().rpartition(b") ")[2].split()[6]) & PF_KTHREAD != 0
    except OSError:
        return False


def samples(text):
    return sum(line.count for line in support.parse_collapsed(text))


class Folder(unittest.TestCase):
    """A test in an empty directory, which is the current one of the programs it starts."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="sampled-cli-")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        os.chmod(self.folder, 0o755)

    def path(self, name):
        return os.path.join(self.folder, name)

    def sampled(self, *args, **extra):
        return support.sampled(*args, cwd=self.folder, **extra)

    def assert_error(self, done, status, *texts):
        """One line on standard error that holds the texts, nothing on standard output, no file left."""
        error = done.stderr.decode()
        self.assertEqual(done.returncode, status, error)
        self.assertEqual(done.stdout, b"")
        self.assertEqual(error.count("\n"), 1, error)
        self.assertTrue(error.startswith("sampled: "), error)
        for text in texts:
            self.assertIn(text, error)


class Usage(Folder):
    def refuse(self, *args, says):
        with self.subTest(args=args):
            self.assert_error(self.sampled(*args), USAGE, says)
            self.assertEqual(os.listdir(self.folder), [])

    def test_nonsense(self):
        self.refuse(says="no command")
        self.refuse("nonsense", says="nonsense: no such command")
        self.refuse("attach", says="no process named")
        self.refuse("attach", "abc", says="abc: not a process id")
        self.refuse("attach", "0", says="0: not a process id")
        self.refuse("attach", "-1", says="no such option")
        self.refuse("attach", "1", "-r", "0", says="not a rate")
        self.refuse("attach", "1", "-d", "-3", says="not a duration")
        self.refuse("attach", "1", "-f", "nonsense", says="flamegraph collapsed text")
        self.refuse("attach", "1", "-f", "text", "-f", "collapsed", "-o", "-", says="one format only")
        self.refuse("attach", "1", "-f", "text", "-o", "a", "-o", "b", says="do not pair")
        self.refuse("attach", "1", "-o", "a.unknown", says="tells no format")
        self.refuse("attach", "1", "--omit", "[", says="not a regular expression")
        self.refuse("run", says="no command")
        self.refuse("dump", says="no process named")
        self.refuse("dump", "1", "2", says="one process at a time")
        self.refuse("doctor", "x", says="not a process id")

    def test_later_and_reserved(self):
        for command in ("daemon", "ctl", "report", "convert", "diff", "top"):
            self.refuse(command, says="%s: not built yet" % command)
        for option in ("--native", "--blocking", "--opcodes", "--async", "--locals"):
            self.refuse("attach", "1", option, says="%s: not built yet" % option)
        self.refuse("attach", "1", "--record", "x", says="--record: not built yet")
        self.refuse("attach", "1", "--mode", "exception", says="not built yet")
        for name in "pstats pprof speedscope firefox chrome svg dot callgrind heatmap dask jsonl otlp".split():
            self.refuse("attach", "1", "-f", name, says="-f %s: not built yet" % name)

    def test_help_and_version(self):
        for args in (["--help"], ["-h"], ["attach", "--help"], ["run", "-h"], ["dump", "--help"], ["doctor", "--help"]):
            done = self.sampled(*args)
            self.assertEqual((done.returncode, done.stderr), (DONE, b""), args)
            self.assertIn(b"sampled", done.stdout)
            for word in (b"--async", b"--locals", b"sampled top", b"--native"):
                self.assertNotIn(word, done.stdout)
        for args in (["--version"], ["attach", "--version"]):
            self.assertRegex(self.sampled(*args).stdout, rb"\Asampled \d+\.\d+\.\d+\n\Z")

    def test_manual_and_help_agree(self):
        text = self.sampled("attach", "--help").stdout.decode() + self.sampled("dump", "--help").stdout.decode()
        with open(MANUAL) as file:
            manual = file.read().replace("\\-", "-")
        described = set(re.findall(r"^\.It .*", manual, re.M))
        in_manual = {"--" + name for line in described for name in re.findall(r"Fl -([a-z-]+)", line)}
        self.assertEqual(set(re.findall(r"(?<![\w-])--[a-z-]+", text)), in_manual)

    def test_closed_and_full_standard_output(self):
        with open("/dev/full", "wb") as full:
            done = subprocess.run([support.SAMPLED, "--help"], stdout=full, stderr=subprocess.PIPE, timeout=30)
        self.assertEqual(done.returncode, FAILED)
        self.assertIn(b"No space left", done.stderr)
        done = subprocess.run(["sh", "-c", "%s --version >&-" % support.SAMPLED], stderr=subprocess.PIPE, timeout=30)
        self.assertEqual(done.returncode, FAILED)
        self.assertIn(b"standard output", done.stderr)


class NoTarget(Folder):
    def refuse(self, pid, status, *texts, **extra):
        self.assert_error(self.sampled("attach", pid, "-d", "1", **extra), status, "process %d" % pid, *texts)
        self.assertEqual(os.listdir(self.folder), [])
        self.assert_error(self.sampled("dump", pid, **extra), status, *texts)
        self.assertEqual(self.sampled("doctor", pid, **extra).returncode, status)

    def test_no_such_process(self):
        child = subprocess.Popen(["true"])
        child.wait()
        self.refuse(child.pid, NO_PYTHON, "no such process")

    def test_not_a_python(self):
        child = subprocess.Popen(["sleep", "60"])
        try:
            self.refuse(child.pid, NO_PYTHON, "not a Python")
            self.assertIsNone(child.poll())
        finally:
            child.kill()
            child.wait()

    def test_zombie(self):
        child = subprocess.Popen(["true"])
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        try:
            done = self.sampled("attach", child.pid)
            self.assert_error(done, NO_PYTHON, "it has ended")
        finally:
            child.wait()

    @unittest.skipUnless(is_kernel_thread(2), "no kernel thread in sight")
    def test_kernel_thread(self):
        self.refuse(2, NO_PYTHON, "kernel thread")

    @support.needs_python
    def test_thread_of_a_process(self):
        with support.Target(support.newest(), "parked.py") as target:
            tids = sorted(int(name) for name in os.listdir("/proc/%d/task" % target.pid))
            other = [tid for tid in tids if tid != target.pid]
            self.assertTrue(other)
            self.assert_error(self.sampled("attach", other[0]), NO_PYTHON, "thread of process %d" % target.pid)

    @support.need_root
    @support.needs_python
    def test_not_permitted(self):
        with support.Target(support.newest(), "parked.py") as target:
            os.chmod(self.folder, 0o777)
            self.refuse(target.pid, NOT_PERMITTED, "not permitted", "(", user=NOBODY)
            self.assertIn(target.state(), "RS")

    @support.need_root
    @support.needs_python
    def test_own_processes_need_no_privilege(self):
        scope = "/proc/sys/kernel/yama/ptrace_scope"
        if os.path.exists(scope) and open(scope).read().strip() != "0":
            self.skipTest("ptrace_scope forbids it on this machine")
        with support.Target(python_for_all(), "parked.py", user=NOBODY) as target:
            done = self.sampled("attach", target.pid, "-d", "0.5", "-f", "collapsed", "-o", "-", user=NOBODY)
            self.assertEqual(done.returncode, DONE, done.stderr)
            self.assertGreater(samples(done.stdout), 100)

    @support.needs_python
    def test_the_worst_failure_is_the_status_and_the_others_are_sampled(self):
        child = subprocess.Popen(["true"])
        child.wait()
        with support.Target(support.newest(), "parked.py") as target:
            done = self.sampled("attach", child.pid, target.pid, "-d", "0.5", "-f", "collapsed", "-o", "a.txt")
            self.assertEqual(done.returncode, NO_PYTHON)
            self.assertEqual(done.stdout, b"a.txt\n")
            self.assertIn(b"process %d: no such process" % child.pid, done.stderr)
        with open(self.path("a.txt"), "rb") as file:
            self.assertGreater(samples(file.read()), 100)


@functools.lru_cache(maxsize=None)
def python_for_all():
    """An interpreter that any user can run."""
    for python in support.all_pythons():
        if not python.root:
            try:
                subprocess.run(python.argv + ["-c", ""], check=True, stderr=subprocess.DEVNULL, user=NOBODY, group=NOBODY, cwd="/")
                return python
            except (OSError, subprocess.SubprocessError):
                pass
    raise unittest.SkipTest("no supported Python that user %d can run" % NOBODY)


@contextlib.contextmanager
def small_disk(folder):
    """A file system of 64 KiB mounted at folder."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mount(b"tmpfs", os.fsencode(folder), b"tmpfs", 0, b"size=64k") != 0:
        raise unittest.SkipTest("cannot mount a file system: %s" % os.strerror(ctypes.get_errno()))
    try:
        yield
    finally:
        libc.umount2(os.fsencode(folder), 2)


@support.needs_python
class Outputs(Folder):
    def setUp(self):
        super().setUp()
        self.target = support.Target(support.newest(), "busy.py").__enter__()
        self.addCleanup(self.target.stop)

    def refuse(self, output, says, status=FAILED):
        """Refused before sampling begins."""
        before = time.monotonic()
        done = self.sampled("attach", self.target.pid, "-d", "20", "-f", "collapsed", "-o", output)
        self.assert_error(done, status, "cannot write %s" % output, says)
        self.assertLess(time.monotonic() - before, 10)

    def test_unwritable(self):
        os.mkdir(self.path("folder"))
        os.symlink("elsewhere", self.path("link"))
        self.refuse("folder", "directory")
        self.refuse("link", "symbolic link")
        self.refuse("/dev/full", "not a regular file")
        self.refuse("missing/file", "No such file or directory")
        self.refuse("file/", "names no file" if not os.path.exists(self.path("file")) else "")
        self.assertEqual(sorted(os.listdir(self.folder)), ["folder", "link"])

    @support.need_root
    def test_no_right_to_write(self):
        with support.Target(python_for_all(), "parked.py", user=NOBODY) as target:
            done = self.sampled("attach", target.pid, "-d", "5", user=NOBODY)
            self.assert_error(done, FAILED, "cannot write sampled-", "Permission denied")
            self.assertEqual(os.listdir(self.folder), [])

    @support.need_root
    def test_disk_full(self):
        disk = self.path("disk")
        os.mkdir(disk)
        with small_disk(disk):
            done = self.sampled("attach", self.target.pid, "-q", "-d", "0.5", "-f", "flamegraph", "-o", "disk/out.html")
            left = os.listdir(disk)
        self.assert_error(done, FAILED, "cannot write disk/out.html", "No space left on device")
        self.assertEqual(left, [])

    @support.need_root
    def test_one_full_output_does_not_spoil_the_other(self):
        disk = self.path("disk")
        os.mkdir(disk)
        with small_disk(disk):
            done = self.sampled(
                "attach", self.target.pid, "-q", "-d", "0.5", "-f", "flamegraph", "-o", "disk/a.html", "-f", "text", "-o", "b.txt"
            )
        self.assertEqual((done.returncode, done.stdout), (FAILED, b"b.txt\n"))
        self.assertEqual(done.stderr, b"sampled: cannot write disk/a.html: No space left on device\n")
        self.assertGreater(os.path.getsize(self.path("b.txt")), 100)

    def test_names_and_modes(self):
        done = self.sampled("attach", self.target.pid, "-d", "0.5", "-f", "flamegraph", "-f", "collapsed", "-o", "stem")
        self.assertEqual(done.returncode, DONE, done.stderr)
        self.assertEqual(done.stdout, b"stem.html\nstem.collapsed\n")
        self.assertEqual(os.stat(self.path("stem.html")).st_mode & 0o777, 0o600)
        done = self.sampled("attach", self.target.pid, "-d", "0.2")
        self.assertRegex(done.stdout, rb"\Asampled-%d-[0-9-]+\.html\n\Z" % self.target.pid)
        self.assertTrue(os.path.exists(self.path(done.stdout.decode().strip())))

    def test_quiet(self):
        done = self.sampled("attach", self.target.pid, "-q", "-d", "0.3", "-o", "a.txt")
        self.assertEqual((done.returncode, done.stdout, done.stderr), (DONE, b"a.txt\n", b""))

    def test_summary(self):
        done = self.sampled("attach", self.target.pid, "-d", "0.5", "-o", "a.txt", "--stats")
        text = done.stderr.decode()
        for word in ("samples of", "asked 1000 Hz", "reached", "late", "torn", "dropped", "truncated", "not sampled", "self", "ring"):
            self.assertIn(word, text)
        self.assertNotIn("\033", text)
        self.assertNotIn("\r", text)

    def on_terminal(self, *args, **env):
        """Both outputs on one terminal; what was written to it."""
        master, slave = os.openpty()
        process = support.start_sampled(
            *args, cwd=self.folder, stdout=slave, stderr=slave, env=dict(os.environ, TERM="xterm", **env)
        )
        os.close(slave)
        text = b""
        with contextlib.suppress(OSError):  # EIO: the other side is closed
            while True:
                text += os.read(master, 4096)
        os.close(master)
        self.assertEqual(process.wait(timeout=30), DONE, text)
        return text.decode()

    def test_progress_only_on_a_terminal(self):
        text = self.on_terminal("attach", self.target.pid, "-d", "0.8", "-o", "a.txt")
        self.assertRegex(text, r"\Asampled: 0\.\d s, \d+ samples of 1 process; Ctrl-C stops and writes\r\x1b\[K")
        self.assertIn("\r\x1b[Ka.txt\r\n", text, "the name stands alone on its line")
        self.assertEqual(self.on_terminal("attach", self.target.pid, "-q", "-d", "0.3", "-o", "a.txt"), "a.txt\r\n")

    def test_no_color(self):
        self.assertIn("\x1b[", self.on_terminal("doctor", self.target.pid, NO_COLOR=""))
        self.assertNotIn("\x1b", self.on_terminal("doctor", self.target.pid, NO_COLOR="1"))
        self.assertNotIn("\x1b", self.on_terminal("dump", self.target.pid, NO_COLOR="1"))

    def test_duration(self):
        done = self.sampled("attach", self.target.pid, "-d", "1500ms", "-r", "100", "--stats", "-f", "flamegraph", "-o", "a.html")
        self.assertEqual(done.returncode, DONE)
        self.assertRegex(done.stderr.decode(), r" in 1\.[45]\d s\n")


@support.needs_python
class Endings(Folder):
    def setUp(self):
        super().setUp()
        self.target = support.Target(support.newest(), "busy.py").__enter__()
        self.addCleanup(self.target.stop)

    def test_second_interrupt_gives_up(self):
        """Standard output is a pipe that nobody empties, so that writing lasts."""
        reader, writer = os.pipe()
        fcntl.fcntl(writer, F_SETPIPE_SZ, 4096)
        process = support.start_sampled("attach", self.target.pid, "-f", "flamegraph", "-o", "-", cwd=self.folder, stdout=writer)
        os.close(writer)
        try:
            time.sleep(1)
            process.send_signal(signal.SIGINT)
            time.sleep(1)
            self.assertIsNone(process.poll(), "it waits for the pipe")
            process.send_signal(signal.SIGINT)
            self.assertEqual(process.wait(timeout=20), GIVEN_UP)
            self.assertIn(b"gave up", process.stderr.read())
        finally:
            process.kill()
            process.wait()
            process.stderr.close()
            os.close(reader)
        self.assertEqual(os.listdir(self.folder), [])
        self.assertIn(self.target.state(), "RS")

    def test_reader_that_goes_away(self):
        reader, writer = os.pipe()
        process = support.start_sampled("attach", self.target.pid, "-d", "0.5", "-o", "-", cwd=self.folder, stdout=writer)
        os.close(writer)
        os.close(reader)
        error = process.communicate(timeout=30)[1]
        self.assertEqual(process.returncode, FAILED, error)
        self.assertIn(b"cannot write standard output: Broken pipe", error)

    def test_target_dies_while_attaching(self):
        """Killed at ever later instants: an error or a valid file, and nothing else."""
        for delay_ms in range(0, 40, 4):
            with support.Target(support.newest(), "busy.py") as target:
                process = support.start_sampled("attach", target.pid, "-f", "collapsed", "-o", "a.txt", cwd=self.folder)
                time.sleep(delay_ms / 1000)
                target.process.kill()
                target.process.wait()
                out, error = process.communicate(timeout=30)
            with self.subTest(delay_ms=delay_ms, error=error):
                self.assertIn(process.returncode, (DONE, NO_PYTHON))
                self.assertEqual(os.path.exists(self.path("a.txt")), process.returncode == DONE)
                self.assertEqual(out, b"a.txt\n" if process.returncode == DONE else b"")
            for name in os.listdir(self.folder):
                os.unlink(self.path(name))

    def test_several_snapshots_have_rising_numbers(self):
        process = support.start_sampled("attach", self.target.pid, "-f", "collapsed", "-o", "a.txt", cwd=self.folder)
        time.sleep(1)
        for _ in range(3):
            process.send_signal(signal.SIGUSR1)
            time.sleep(0.3)
        process.send_signal(signal.SIGTERM)
        out = process.communicate(timeout=30)[0]
        self.assertEqual(process.returncode, DONE)
        names = out.decode().split()
        self.assertEqual(names, ["a.0001.txt", "a.0002.txt", "a.0003.txt", "a.txt"])
        counts = []
        for name in names:
            with open(self.path(name), "rb") as file:
                counts.append(samples(file.read()))
        self.assertEqual(counts, sorted(counts))
        self.assertGreater(counts[0], 0)

    def test_exec_into_another_program(self):
        """The process goes on as something else: what was sampled is written, and sampled ends."""
        script = "import os, time\nend = time.time() + 1.5\nwhile time.time() < end: pass\nos.execvp('sleep', ['sleep', '30'])"
        target = subprocess.Popen(support.newest().argv + ["-c", script])
        try:
            time.sleep(0.7)
            done = self.sampled("attach", target.pid, "-f", "collapsed", "-o", "-", timeout=20)
            self.assertEqual(done.returncode, DONE, done.stderr)
            self.assertGreater(samples(done.stdout), 50)
            self.assertIsNone(target.poll())
        finally:
            target.kill()
            target.wait()


@support.needs_python
class Run(Folder):
    def run_python(self, *args, options=("-q", "-f", "collapsed", "-o", "a.txt"), script=BUSY, **extra):
        return self.sampled("run", *options, "--", *support.newest().argv, "-c", script, *args, **extra)

    def read(self):
        with open(self.path("a.txt"), "rb") as file:
            return support.parse_collapsed(file.read())

    def test_exits_as_the_command_did(self):
        done = self.run_python("0.5", "7")
        self.assertEqual((done.returncode, done.stdout, done.stderr), (7, b"a.txt\n", b""))
        self.assertGreater(sum(line.count for line in self.read() if any(name == "spin" for name, _, _ in line.frames)), 20)
        self.assertEqual(self.run_python("0.2", "0").returncode, DONE)

    def test_death_by_signal(self):
        done = self.run_python(script="import os, time\ntime.sleep(0.3)\nos.kill(os.getpid(), 9)")
        self.assertEqual(done.returncode, 128 + signal.SIGKILL)
        self.assertTrue(self.read())

    def test_from_the_interpreters_start(self):
        """What is imported at the start is seen."""
        self.run_python(script="import json, asyncio, unittest, decimal")
        names = {name for line in self.read() for name, _, _ in line.frames}
        self.assertTrue(any(name.startswith("_find_and_load") for name in names), names)

    def test_through_env_and_shell(self):
        argv = support.newest().argv
        script = 'exec "$@"'
        done = self.sampled("run", "-q", "-o", "a.collapsed", "--", "/usr/bin/env", "sh", "-c", script, "sh", *argv, "-c", BUSY, "0.5", "3")
        self.assertEqual((done.returncode, done.stdout), (3, b"a.collapsed\n"), done.stderr)

    def test_before_exec(self):
        self.assert_error(self.sampled("run", "--", "/nonexistent/program"), BEFORE_EXEC, "cannot run /nonexistent/program")
        done = self.sampled("run", "-o", "missing/a.html", "--", "touch", "trace")
        self.assert_error(done, BEFORE_EXEC, "cannot write missing/a.html")
        self.assertEqual(os.listdir(self.folder), [], "the command did not begin")

    def test_not_a_python(self):
        done = self.sampled("run", "-q", "-o", "a.html", "--", "sh", "-c", "exit 4")
        self.assert_error(done, 4, "no Python was seen")
        self.assertEqual(os.listdir(self.folder), [])

    def test_interrupt_reaches_the_command(self):
        """As from a terminal: both get it, any number of times; the command decides, then the profile is written."""
        script = (
            "import signal, sys, time\nseen = []\nsignal.signal(signal.SIGINT, lambda *_: seen.append(1))\n"
            "print('ready', flush=True)\nwhile len(seen) < 3: time.sleep(0.01)\nsys.exit(5)"
        )
        argv = support.newest().argv + ["-c", script]
        process = support.start_sampled(
            "run", "-q", "-f", "collapsed", "-o", "a.txt", "--", *argv, cwd=self.folder, start_new_session=True
        )
        self.assertEqual(process.stdout.readline(), b"ready\n")
        for _ in range(3):
            time.sleep(0.2)
            os.killpg(process.pid, signal.SIGINT)
        out, error = process.communicate(timeout=30)
        self.assertEqual((process.returncode, out), (5, b"a.txt\n"), error)

    def test_terminate_is_passed_on(self):
        process = support.start_sampled(
            "run", "-q", "-f", "collapsed", "-o", "a.txt", "--", *support.newest().argv, "-c", BUSY, "60", "0", cwd=self.folder
        )
        time.sleep(1)
        process.send_signal(signal.SIGTERM)
        out, error = process.communicate(timeout=30)
        self.assertEqual((process.returncode, out), (128 + signal.SIGTERM, b"a.txt\n"), error)

    def test_signals_of_the_command_are_as_they_were(self):
        script = "import signal; print(sorted(map(int, signal.pthread_sigmask(signal.SIG_BLOCK, []))))"
        done = self.run_python(script=script)
        self.assertEqual(done.stdout.split(b"\n")[0], b"[]")

    def test_duration_ends_sampling_not_the_command(self):
        done = self.run_python("1.5", "6", options=("-q", "-d", "0.3", "-f", "collapsed", "-o", "a.txt"))
        self.assertEqual(done.returncode, 6)
        self.assertLess(sum(line.count for line in self.read()), 700)


@support.needs_python
class DumpAndDoctor(Folder):
    def test_dump_json(self):
        with support.Target(support.newest(), "parked.py") as target:
            done = self.sampled("dump", target.pid, "--json")
            self.assertEqual((done.returncode, done.stderr), (DONE, b""))
            dump = json.loads(done.stdout)
            self.assertEqual(dump["pid"], target.pid)
            self.assertEqual(dump["version"], support.newest().text)
            self.assertTrue(dump["threads"][0]["main"])
            self.assertTrue(all(thread["sampled"] for thread in dump["threads"]))
            text = self.sampled("dump", target.pid).stdout.decode()
            self.assertEqual(text.count("\nThread "), len(dump["threads"]))
            self.assertNotIn("\033", text)

    def test_dump_shows_source_lines(self):
        script = self.path("program.py")
        with open(script, "w") as file:
            file.write("import time\ndef wait():\n    time.sleep(60)  # here it waits\nwait()\n")
        python = [one for one in support.pythons() if not one.root]
        if not python:
            self.skipTest("no Python outside of another root")
        process = subprocess.Popen(python[-1].argv + [script])
        try:
            time.sleep(1)
            text = self.sampled("dump", process.pid).stdout.decode()
        finally:
            process.kill()
            process.wait()
        self.assertRegex(text, r"idle\n    wait \(\S*program\.py:3\)\n        time\.sleep\(60\)  # here it waits\n    <module> ")

    def test_doctor(self):
        with support.Target(support.newest(), "parked.py") as target:
            done = self.sampled("doctor", target.pid)
        text = done.stdout.decode()
        self.assertEqual(done.returncode, DONE, text)
        for line in text.splitlines():
            self.assertRegex(line, r"\A(ok  |warn|fail)  \S")
        for word in ("kernel:", "process_vm_readv", "CAP_SYS_PTRACE", "ptrace_scope", "on-CPU data", "Python " + support.newest().text,
                     "interpreter found by", "namespaces", "read whole"):
            self.assertIn(word, text)

    @support.need_root
    def test_doctor_names_missing_capabilities(self):
        text = self.sampled("doctor", user=NOBODY).stdout.decode()
        self.assertRegex(text, r"warn  no capability CAP_SYS_PTRACE \(.+\)")
        self.assertRegex(text, r"warn  no capability CAP_SYS_NICE \(.+\)")


if __name__ == "__main__":
    unittest.main()
