# SPDX-License-Identifier: Apache-2.0
"""Every ending writes everything and leaves the target undisturbed; and `sampled run` ends as its command did."""
import contextlib
import fcntl
import os
import resource
import signal
import subprocess
import sys
import time
import unittest

import cli
import support

F_SETPIPE_SZ = 1031
# Programs live for seconds of CPU time: where others get most of it they live longer, and sampled has the time it needs to find them.
BUSY = """
import sys, time
def spin():
    return sum(range(100))
end = time.process_time() + float(sys.argv[1])
while time.process_time() < end:
    spin()
sys.exit(int(sys.argv[2]))
"""

UNTIL_TOLD = """
import ctypes, os, select, sys
print('ready', flush=True)
while not select.select([sys.stdin], [], [], 0)[0]: pass
"""

AGAIN = """
import sys, time
end, known = time.process_time() + float(sys.argv[1]), set(sys.modules)
while time.process_time() < end:
    for name in set(sys.modules) - known:
        if name.split(".")[0] in ("json", "asyncio", "unittest"):
            del sys.modules[name]
    %s
"""


@support.needs_python
class Endings(cli.Folder):
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
            support.wait_sampling(process)
            process.send_signal(signal.SIGINT)
            support.wait_until(lambda: not support.turns(process.pid), "it has done with sampling")
            self.assertIsNone(process.poll(), "it waits for the pipe")
            process.send_signal(signal.SIGINT)
            self.assertEqual(process.wait(timeout=support.PATIENCE_S), cli.GIVEN_UP)
            self.assertIn(b"gave up", process.stderr.read())
        finally:
            process.kill()
            process.wait()
            process.stderr.close()
            os.close(reader)
        self.assertEqual(os.listdir(self.folder), [])
        self.assertIn(self.target.state(), "RSD")

    def test_reader_that_goes_away(self):
        reader, writer = os.pipe()
        process = support.start_sampled("attach", self.target.pid, "-d", "0.5", "-o", "-", cwd=self.folder, stdout=writer)
        os.close(writer)
        os.close(reader)
        error = process.communicate(timeout=support.PATIENCE_S)[1]
        self.assertEqual(process.returncode, cli.DONE, "it has read enough: %r" % error)
        self.assertNotIn(b"Broken pipe", error)

    def test_target_dies_while_attaching(self):
        """Killed at ever later instants: an error or a valid file, and nothing else."""
        for delay_ms in range(0, 40, 4):
            with support.Target(support.newest(), "busy.py") as target:
                process = support.start_sampled("attach", target.pid, "-f", "collapsed", "-o", "a.txt", cwd=self.folder)
                time.sleep(delay_ms / 1000)
                target.process.kill()
                target.process.wait()
                out, error = process.communicate(timeout=support.PATIENCE_S)
            with self.subTest(delay_ms=delay_ms, error=error):
                self.assertIn(process.returncode, (cli.DONE, cli.NO_PYTHON))
                self.assertEqual(os.path.exists(self.path("a.txt")), process.returncode == cli.DONE)
                self.assertEqual(out, b"a.txt\n" if process.returncode == cli.DONE else b"")
            for name in os.listdir(self.folder):
                os.unlink(self.path(name))

    def test_several_snapshots_have_rising_numbers(self):
        process = support.start_sampled("attach", self.target.pid, "-f", "collapsed", "-o", "a.txt", cwd=self.folder)
        support.wait_sampling(process)
        for name in ("a.0001.txt", "a.0002.txt", "a.0003.txt"):
            process.send_signal(signal.SIGUSR1)
            support.wait_until(lambda: os.path.exists(self.path(name)), name)
        process.send_signal(signal.SIGTERM)
        out = process.communicate(timeout=support.PATIENCE_S)[0]
        self.assertEqual(process.returncode, cli.DONE)
        names = out.decode().split()
        self.assertEqual(names, ["a.0001.txt", "a.0002.txt", "a.0003.txt", "a.txt"])
        counts = []
        for name in names:
            counts.append(cli.samples_in(self.path(name)))
        self.assertEqual(counts, sorted(counts))
        self.assertGreater(counts[0], 0)

    @support.need_root
    def test_permission_that_is_taken_away(self):
        """A process that may not be read any more: what was sampled is written, and that there is no more is an error."""
        python = cli.python_for_all()
        script = "ctypes.CDLL(None).prctl(4, 0, 0, 0, 0)\nwhile True: pass"
        with self.until_told(python, script, user=cli.NOBODY, group=cli.NOBODY, extra_groups=[], cwd="/") as target:
            process = support.start_sampled("attach", target.pid, "-f", "collapsed", "-o", "-", user=cli.NOBODY)
            out, error = self.tell_and_end(target, process)
            self.assertEqual(process.returncode, cli.NOT_PERMITTED, error)
            self.assertIn(b"cannot go on with process %d: not permitted" % target.pid, error)
            self.assertGreater(cli.samples(out), 0)

    @contextlib.contextmanager
    def until_told(self, python, script, **extra):
        """A program that is busy until it is told; then it goes on as `script` says."""
        target = subprocess.Popen(python.argv + ["-c", UNTIL_TOLD + script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, **extra)
        try:
            self.assertEqual(target.stdout.readline(), b"ready\n")
            yield target
        finally:
            target.kill()
            target.communicate()

    def tell_and_end(self, target, process):
        """When it is sampled it is told; what sampled says to its end."""
        try:
            support.wait_sampling(process)
            target.stdin.write(b"\n")
            target.stdin.flush()
            return process.communicate(timeout=support.PATIENCE_S)
        finally:
            process.kill()
            process.communicate()

    def test_exec_into_another_program(self):
        """The process goes on as something else: what was sampled is written, and sampled ends."""
        with self.until_told(support.newest(), "os.execvp('sleep', ['sleep', '600'])") as target:
            process = support.start_sampled("attach", target.pid, "-f", "collapsed", "-o", "-")
            out, error = self.tell_and_end(target, process)
            self.assertEqual(process.returncode, cli.DONE, error)
            self.assertGreater(cli.samples(out), 0)
            self.assertIsNone(target.poll())


@support.needs_python
class Run(cli.Folder):
    def run_python(self, *args, options=("-q", "-f", "collapsed", "-o", "a.txt"), script=BUSY, **extra):
        return self.sampled("run", *options, "--", *support.newest().argv, "-c", script, *args, **extra)

    def read(self):
        return support.read_collapsed(self.path("a.txt"))

    def test_exits_as_the_command_did(self):
        done = self.run_python(support.LIFE_S, "7")
        self.assertEqual((done.returncode, done.stdout, done.stderr), (7, b"a.txt\n", b""))
        self.assertGreater(sum(line.count for line in self.read() if any(name == "spin" for name, _, _ in line.frames)), 0)
        self.assertEqual(self.run_python(support.LIFE_S, "0").returncode, cli.DONE)

    def test_death_by_signal(self):
        done = self.run_python(support.LIFE_S, script="import os, sys, time\nwhile time.process_time() < float(sys.argv[1]): pass\nos.kill(os.getpid(), 9)")
        self.assertEqual(done.returncode, 128 + signal.SIGKILL)
        self.assertTrue(self.read())

    def test_after_many_execs(self):
        """A process that has just begun another program has no memory for a moment: that is no end."""
        with open(self.path("again.sh"), "w", encoding="utf-8") as file:
            file.write('[ "$1" -gt 0 ] && exec sh "$0" $(($1 - 1))\nexec "$PYTHON" -c "import time\nwhile time.process_time() < %s: pass"\n' % support.LIFE_S)
        for _ in range(3):
            done = self.sampled("run", "-q", "-f", "collapsed", "-o", "a.txt", "--", "sh", self.path("again.sh"), "300",
                                env=dict(os.environ, PYTHON=sys.executable))
            self.assertEqual((done.returncode, done.stdout), (0, b"a.txt\n"), done.stderr)
            self.assertTrue(self.read())  # a busy machine is slow to begin a program, which is said

    def test_from_the_interpreters_start(self):
        """What is imported at the start is seen. For a sanitized build, which is not as quick, the start is made to last: it is gone through
        again and again."""
        script = "import json, asyncio, unittest, decimal"
        if support.SANITIZED:
            script = AGAIN % script
        self.run_python(support.LIFE_S, script=script)
        names = {name for line in self.read() for name, _, _ in line.frames}
        self.assertTrue(any(name.startswith("_find_and_load") for name in names), names)

    def test_source_lines_of_a_program_that_has_ended(self):
        """At the time of writing the process is gone; its files are found all the same."""
        python = [one for one in support.pythons() if not one.root]
        if not python:
            self.skipTest("no Python outside of another root")
        with open(self.path("program.py"), "w") as file:
            file.write(BUSY)
        done = self.sampled("run", "-q", "-o", "a.html", "--", *python[-1].argv, "program.py", support.LIFE_S, "0")
        self.assertEqual((done.returncode, done.stdout), (cli.DONE, b"a.html\n"), done.stderr)
        with open(self.path("a.html")) as file:
            self.assertIn("return sum(range(100))", file.read())

    def test_through_env_and_shell(self):
        argv = support.newest().argv
        script = 'exec "$@"'
        done = self.sampled("run", "-q", "-o", "a.collapsed", "--", "/usr/bin/env", "sh", "-c", script, "sh", *argv, "-c", BUSY, support.LIFE_S, "3")
        self.assertEqual((done.returncode, done.stdout), (3, b"a.collapsed\n"), done.stderr)

    def test_before_exec(self):
        self.assert_error(self.sampled("run", "--", "/nonexistent/program"), cli.BEFORE_EXEC, "cannot run /nonexistent/program")
        with open(self.path("app.py"), "w"):
            pass
        self.assert_error(self.sampled("run", "--", "./app.py"), cli.BEFORE_EXEC, "Permission denied (sampled run -- python3 ./app.py)")
        os.unlink(self.path("app.py"))
        done = self.sampled("run", "-o", "missing/a.html", "--", "touch", "trace")
        self.assert_error(done, cli.BEFORE_EXEC, "cannot write missing/a.html")
        self.assertEqual(os.listdir(self.folder), [], "the command did not begin")

    def test_not_a_python(self):
        done = self.sampled("run", "-q", "-o", "a.html", "--", "sh", "-c", "exit 4")
        self.assert_error(done, 4, "the command ended without running Python")
        self.assertEqual(os.listdir(self.folder), [])

    def test_interrupt_reaches_the_command(self):
        """As from a terminal: both get it, any number of times; the command decides, then the profile is written."""
        script = (
            "import signal, sys, time\nseen = []\nsignal.signal(signal.SIGINT, lambda *_: seen.append(1))\n"
            "print('ready', flush=True)\nfor number in range(3):\n    while len(seen) <= number: time.sleep(0.01)\n    print('seen', flush=True)\nsys.exit(5)"
        )
        argv = support.newest().argv + ["-c", script]
        process = support.start_sampled(
            "run", "-q", "-f", "collapsed", "-o", "a.txt", "--", *argv, cwd=self.folder, start_new_session=True
        )
        self.assertEqual(process.stdout.readline(), b"ready\n")
        support.wait_sampling(process)
        for _ in range(3):
            os.killpg(process.pid, signal.SIGINT)
            self.assertEqual(process.stdout.readline(), b"seen\n")
        out, error = process.communicate(timeout=support.PATIENCE_S)
        self.assertEqual((process.returncode, out), (5, b"a.txt\n"), error)

    def test_terminate_is_passed_on(self):
        process = support.start_sampled(
            "run", "-q", "-f", "collapsed", "-o", "a.txt", "--", *support.newest().argv, "-c", BUSY, "60", "0", cwd=self.folder
        )
        support.wait_sampling(process)
        process.send_signal(signal.SIGTERM)
        out, error = process.communicate(timeout=support.PATIENCE_S)
        self.assertEqual((process.returncode, out), (128 + signal.SIGTERM, b"a.txt\n"), error)

    def test_signals_of_the_command_are_as_they_were(self):
        script = "import signal; print(sorted(map(int, signal.pthread_sigmask(signal.SIG_BLOCK, []))))"
        done = self.run_python(script=script)
        self.assertEqual(done.stdout.split(b"\n")[0], b"[]")

    def test_open_files_limit_of_the_command_is_as_it_was(self):
        script = "import resource; print(resource.getrlimit(resource.RLIMIT_NOFILE))"
        limits = (200, resource.getrlimit(resource.RLIMIT_NOFILE)[1])
        process = support.start_sampled(
            "run", "-q", "-f", "collapsed", "-o", "a.txt", "--", *support.newest().argv, "-c", script, cwd=self.folder,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, limits),
        )
        out, error = process.communicate(timeout=support.PATIENCE_S)
        self.assertEqual(out.decode().split("\n")[0], str(limits), error)

    def test_duration_ends_sampling_not_the_command(self):
        done = self.run_python(support.LIFE_S + 1, "6", options=("-d", "0.3", "-f", "collapsed", "-o", "a.txt"))
        self.assertEqual(done.returncode, 6)
        self.assertIn(b"sampling has ended, and the command goes on", done.stderr)
        self.assertLess(sum(line.count for line in self.read()), 700)


if __name__ == "__main__":
    unittest.main()
