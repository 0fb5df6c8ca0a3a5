# SPDX-License-Identifier: Apache-2.0
"""A signal at any moment of a command's life, its first and its last included, does what the manual says."""
import ctypes
import os
import re
import shutil
import signal
import subprocess
import time
import unittest

import cli
import service
import stopping
import support

CALLS = range(0, 200, 4)  # moments, by system calls of the main thread
PTRACE_TRACEME, PTRACE_DETACH, PTRACE_SYSCALL = 0, 17, 24
ALL = 1 << (signal.SIGPIPE - 1)  # what main() blocks before anything else


def blocked(pid):
    """The signals that the main thread blocks, as the kernel's mask; 0 once it has ended."""
    try:
        with open("/proc/%d/status" % pid) as file:
            found = re.search(r"^SigBlk:\s+(\w+)", file.read(), re.M)
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return int(found.group(1), 16) if found else 0


def wait_begun(process):
    """Until main() has begun: what comes before that meets the dynamic loader, not us."""
    while not blocked(process.pid) & ALL and process.poll() is None:
        pass


def trace(request, pid, data=0):
    if stopping.LIBC.ptrace(request, pid, None, data) != 0:
        raise OSError(ctypes.get_errno(), "ptrace")


def go_to(process, calls):
    """Stands before the given system call of main(), whatever else the machine does; False: it has ended before."""
    def step():
        trace(PTRACE_SYSCALL, process.pid)
        _, status = os.waitpid(process.pid, 0)
        if os.WIFSTOPPED(status):
            return True
        process.returncode = os.waitstatus_to_exitcode(status)
        return False

    os.waitpid(process.pid, 0)  # the stop of its exec
    while not blocked(process.pid) & ALL:
        if not step():
            return False
    return all(step() for _ in range(calls))


@support.needs_python
class Signals(cli.Folder):
    def setUp(self):
        super().setUp()
        self.target = support.Target(support.newest(), "busy.py").__enter__()
        self.addCleanup(self.target.stop)

    def start(self, *args, **extra):
        process = support.start_sampled(*args, cwd=self.folder, **extra)
        self.addCleanup(self.end, process)
        return process

    def end(self, process):
        process.kill()
        process.communicate()

    def commands(self):
        argv = support.newest().argv
        return {
            "attach": ("attach", self.target.pid, "-d", "0.1", "-f", "collapsed", "-o", "out"),
            "run": ("run", "-f", "collapsed", "-o", "out", "--", *argv, "-c", "import signal; signal.signal(signal.SIGHUP, signal.SIG_IGN)"),
        }

    def start_and_signal(self, number, calls, *args):
        """Signalled at that system call; its exit status."""
        process = self.start(*args, preexec_fn=lambda: trace(PTRACE_TRACEME, 0))
        if go_to(process, calls):
            process.send_signal(number)
            trace(PTRACE_DETACH, process.pid)
        return process

    def test_first_calls(self):
        """SIGUSR1 writes a snapshot, or none where nothing was sampled yet; SIGHUP stops attach, which says so where it has nothing to write yet."""
        for name, number in (("attach", signal.SIGUSR1), ("attach", signal.SIGHUP), ("run", signal.SIGUSR1)):
            for calls in CALLS:
                with self.subTest(command=name, signal=number, calls=calls):
                    process = self.start_and_signal(number, calls, *self.commands()[name])
                    _, error = process.communicate(timeout=support.PATIENCE_S)
                    self.assertIn(process.returncode, (0, 1) if name == "attach" else (0,), error)

    def test_service(self):
        """SIGUSR1 dumps and SIGHUP reads the configuration: neither ends it, in its first moments or its last."""
        one = service.Service("*busy.py*")
        self.addCleanup(shutil.rmtree, one.folder)
        for number in (signal.SIGUSR1, signal.SIGHUP):
            for calls in CALLS:
                with self.subTest(signal=number, calls=calls):
                    process = self.start_and_signal(number, calls, "daemon", "--config", one.config, "--socket", one.socket)
                    support.wait_until(lambda: os.path.exists(one.socket) or process.poll() is not None, "it is ready")
                    process.terminate()
                    while process.poll() is None:
                        process.send_signal(number)
                        time.sleep(0.0005)
                    self.assertEqual(process.returncode, 0, process.stderr.read())

    def test_last_moments(self):
        """From the stop to the exit, again and again."""
        for name, command in self.commands().items():
            with self.subTest(command=name):
                process = self.start(*command)
                wait_begun(process)
                while process.poll() is None:
                    process.send_signal(signal.SIGUSR1)
                    time.sleep(0.0005)
                self.assertEqual(process.returncode, 0, process.stderr.read())

    def test_others_are_as_any_program(self):
        process = subprocess.Popen([support.SAMPLED, "report", "-"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(self.end, process)
        wait_begun(process)
        support.wait_until(lambda: blocked(process.pid) == ALL, "it blocks no more than SIGPIPE")
        process.send_signal(signal.SIGUSR1)
        self.assertEqual(process.wait(support.PATIENCE_S), -signal.SIGUSR1)


if __name__ == "__main__":
    unittest.main()
