# SPDX-License-Identifier: Apache-2.0
"""Files: how they are named, what is refused before sampling begins, full disks, and what goes to the terminal."""
import contextlib
import ctypes
import fcntl
import gzip
import os
import re
import signal
import struct
import subprocess
import termios
import time
import unittest

import cli
import support


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
class Outputs(cli.Folder):
    def setUp(self):
        super().setUp()
        self.target = support.Target(support.newest(), "busy.py").__enter__()
        self.addCleanup(self.target.stop)

    def refuse(self, output, says, status=cli.FAILED):
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
        self.refuse("missing/file", "No such file or directory")
        self.refuse("file/", "names no file" if not os.path.exists(self.path("file")) else "")
        self.assertEqual(sorted(os.listdir(self.folder)), ["folder", "link"])

    def test_streams(self):
        """What is no regular file is written straight: devices, FIFOs, what a shell hands us, standard output by another name."""
        command = ["attach", str(self.target.pid), "-q", "-d", "1", "-f", "collapsed"]
        done = self.sampled(*command, "-o", "/dev/null")
        self.assertEqual((done.returncode, done.stdout, done.stderr), (cli.DONE, b"/dev/null\n", b""))
        for name in ("/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"):
            done = self.sampled(*command, "-o", name)
            self.assertEqual((done.returncode, done.stderr), (cli.DONE, b""))
            self.assertGreater(cli.samples(done.stdout), 0, "the profile, and not its name behind it")
        done = self.sampled(*command, "-o", "/dev/full")
        self.assert_error(done, cli.FAILED, "cannot write /dev/full: No space left on device")
        script = "%s %s -o >(gzip > by-shell.gz; touch done)" % (support.SAMPLED, " ".join(command))
        done = subprocess.run(["bash", "-c", script], cwd=self.folder, capture_output=True, timeout=60)
        self.assertEqual((done.returncode, done.stderr), (cli.DONE, b""))
        support.wait_until(lambda: os.path.exists(self.path("done")), "gzip is done")
        with gzip.open(self.path("by-shell.gz")) as file:
            self.assertGreater(cli.samples(file.read()), 0)
        os.mkfifo(self.path("fifo"))
        reader = subprocess.Popen("cat fifo >got", shell=True, cwd=self.folder)  # no pipe, that could be full before sampled ends
        self.assertEqual(self.sampled(*command, "-o", "fifo").stdout, b"fifo\n")
        self.assertEqual(reader.wait(timeout=support.PATIENCE_S), 0)
        self.assertGreater(cli.samples_in(self.path("got")), 0)
        self.assertEqual(sorted(os.listdir(self.folder)), ["by-shell.gz", "done", "fifo", "got"])
        self.assert_error(self.sampled("attach", self.target.pid, "--record", "/dev/null"), cli.FAILED, "a recording is a regular file")
        self.assert_error(self.sampled("attach", self.target.pid, "-f", "text", "-f", "svg", "-o", "/dev/null"), cli.USAGE,
                          "-o /dev/null: a stream takes one format only")

    def test_a_fifo_that_nobody_reads(self):
        """It is waited for, and said; a signal ends that."""
        os.mkfifo(self.path("fifo"))
        attach = ["attach", str(self.target.pid), "-q", "-d", "0.1", "-f", "collapsed", "-o", "fifo"]
        self.sampled("attach", self.target.pid, "-q", "-d", "0.1", "-o", "a.collapsed")
        waiting = b"sampled: fifo: waiting for a reader (Ctrl-C gives up)\n"
        gave_up = b"sampled: nobody reads the FIFO: gave up writing\n"
        for command, number, status, last in ((attach, signal.SIGINT, cli.GIVEN_UP, gave_up), (attach, signal.SIGTERM, cli.GIVEN_UP, gave_up),
                                              (["convert", "a.collapsed", "-o", "fifo", "-f", "text"], signal.SIGINT, -signal.SIGINT, b"")):
            with self.subTest(command=command[0], signal=number):
                process = subprocess.Popen([support.SAMPLED] + command, cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
                self.addCleanup(process.kill)
                self.assertEqual(process.stderr.readline(), waiting)
                process.send_signal(number)
                out, err = process.communicate(timeout=60)
                self.assertEqual((process.returncode, out, err), (status, b"", last))
        process = subprocess.Popen([support.SAMPLED] + attach, cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.assertEqual(process.stderr.readline(), waiting)
        with open(self.path("fifo"), "rb") as reader:
            self.assertGreater(cli.samples(reader.read()), 0, "a reader that comes late has all")
        self.assertEqual((process.communicate(timeout=60), process.returncode), ((b"fifo\n", b""), cli.DONE))

    def test_a_reader_that_has_read_enough(self):
        """| head is no failure, and nothing is said."""
        self.sampled("attach", self.target.pid, "-q", "-d", "0.3", "-o", "a.collapsed")
        for command in ("attach %d -q -d 0.3 -f text -o -" % self.target.pid, "report a.collapsed", "convert a.collapsed -o - -f jsonl",
                        "diff a.collapsed a.collapsed", "dump %d" % self.target.pid, "--help", "doctor",
                        "attach %d -q -d 0.3 -o a.txt" % self.target.pid, "convert a.collapsed -o b.txt"):
            with self.subTest(command=command):
                script = "set -o pipefail; { sleep 0.1; exec %s %s; } | true" % (support.SAMPLED, command)
                done = subprocess.run(["bash", "-c", script], cwd=self.folder, capture_output=True, timeout=60)
                said = re.sub(rb"sampled: the stacks are not of one moment: .*\n", b"", done.stderr)  # as may be so on a busy machine
                self.assertEqual((done.returncode, done.stdout, said), (cli.DONE, b"", b""))

    @support.need_root
    def test_no_right_to_write(self):
        with support.Target(cli.python_for_all(), "parked.py", user=cli.NOBODY) as target:
            done = self.sampled("attach", target.pid, "-d", "5", user=cli.NOBODY)
            self.assert_error(done, cli.FAILED, "cannot write sampled-", "Permission denied")
            self.assertEqual(os.listdir(self.folder), [])

    @support.need_root
    def test_disk_full(self):
        disk = self.path("disk")
        os.mkdir(disk)
        with small_disk(disk):
            done = self.sampled("attach", self.target.pid, "-q", "-d", "0.5", "-f", "flamegraph", "-o", "disk/out.html")
            left = os.listdir(disk)
        self.assert_error(done, cli.FAILED, "cannot write disk/out.html", "No space left on device")
        self.assertEqual(left, [])

    @support.need_root
    def test_one_full_output_does_not_spoil_the_other(self):
        disk = self.path("disk")
        os.mkdir(disk)
        with small_disk(disk):
            done = self.sampled(
                "attach", self.target.pid, "-q", "-d", "0.5", "-f", "flamegraph", "-o", "disk/a.html", "-f", "text", "-o", "b.txt"
            )
        self.assertEqual((done.returncode, done.stdout), (cli.FAILED, b"b.txt\n"))
        self.assertEqual(done.stderr, b"sampled: cannot write disk/a.html: No space left on device\n")
        self.assertGreater(os.path.getsize(self.path("b.txt")), 100)

    def test_names_and_modes(self):
        done = self.sampled("attach", self.target.pid, "-d", "0.5", "-f", "flamegraph", "-f", "collapsed", "-o", "stem")
        self.assertEqual(done.returncode, cli.DONE, done.stderr)
        self.assertEqual(done.stdout, b"stem.html\nstem.collapsed\n")
        self.assertEqual(os.stat(self.path("stem.html")).st_mode & 0o777, 0o600)
        done = self.sampled("attach", self.target.pid, "-d", "0.2")
        self.assertRegex(done.stdout, rb"\Asampled-%d-[0-9-]+\.html\n\Z" % self.target.pid)
        self.assertTrue(os.path.exists(self.path(done.stdout.decode().strip())))

    def test_quiet(self):
        done = self.sampled("attach", self.target.pid, "-q", "-d", "0.3", "-o", "a.txt")
        self.assertEqual((done.returncode, done.stdout, done.stderr), (cli.DONE, b"a.txt\n", b""))

    def test_summary(self):
        """What had the CPU, who waited, and what was lost, in 80 columns; all figures with -v."""
        figures = ("asked 250 Hz", "reached", "late", "missed", "torn", "unreadable", "dropped", "truncated", "not sampled", "excluded")
        text = self.sampled("attach", self.target.pid, "-d", "0.5", "-o", "a.txt").stderr.decode()
        self.assertRegex(text, r"\Asampled: [\d,]+ samples of \d+ threads? in [\d.]+ m?s\n  process  %d, Python " % self.target.pid)
        self.assertRegex(text, r"\n  time     CPU [\d.]+ %, GIL held [\d.]+ %")
        self.assertRegex(text, r"\n  on CPU +[\d.]+ %  \S+ +\S+busy\.py:\d+\n")
        self.assertRegex(text, r"\n  lost     ")
        for line in text.splitlines():
            self.assertLessEqual(len(line), 80)
        for word in (*figures, "ring", " open "):
            self.assertNotIn(word, text)
        text = self.sampled("attach", self.target.pid, "-d", "0.5", "-o", "a.txt", "--stats", "-v").stderr.decode()
        for word in ("samples of", "on CPU", *figures, "ring"):
            self.assertIn(word, text)
        self.assertNotIn("\033", text)
        self.assertNotIn("\r", text)

    def test_idle_threads_do_not_win(self):
        """Who sleeps stands in a line of its own, whatever the time."""
        with support.Target(support.newest(), "parked.py") as target:
            text = self.sampled("attach", target.pid, self.target.pid, "-d", "0.5", "-o", "a.txt").stderr.decode()
        first = re.search(r"\n  on CPU .*\n", text).group()
        self.assertIn("busy.py:", first, text)
        self.assertRegex(text, r"\n  idle +[\d.]+ %  \S")

    def test_fitted_to_the_terminal(self):
        """A line of the summary or of the progress is never wider than the terminal."""
        for columns in (40, 80, 200):
            with self.subTest(columns=columns):
                text = self.on_terminal("attach", self.target.pid, "-d", "0.8", "-o", "a.txt", columns=columns)
                self.assertIn("\r\x1b[K", text)
                for line in re.sub(r"\x1b\[K", "", text).replace("\r", "\n").split("\n"):
                    self.assertLessEqual(len(line), columns, text)
                self.assertIn("  open     less a.txt", text)

    def on_terminal(self, *args, columns=80, **env):
        """Both outputs on one terminal; what was written to it."""
        master, slave = os.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        process = support.start_sampled(
            *args, cwd=self.folder, stdout=slave, stderr=slave, env=dict(os.environ, TERM="xterm", **env)
        )
        os.close(slave)
        text = b""
        with contextlib.suppress(OSError):  # EIO: the other side is closed
            while True:
                text += os.read(master, 4096)
        os.close(master)
        self.assertEqual(process.wait(timeout=30), cli.DONE, text)
        return text.decode()

    def test_tables_fit_the_terminal(self):
        """And what cannot fit is left out; in a file there is all of it."""
        for name in ("a.sampled", "b.sampled"):
            self.sampled("attach", self.target.pid, "-q", "-d", "0.5", "--record", name)
        for command in (["report", "a.sampled"], ["diff", "a.sampled", "b.sampled"], ["diff", "--sort", "total", "a.sampled", "b.sampled"],
                        ["convert", "a.sampled", "-f", "text", "-o", "-"]):
            for columns in (80, 200):
                with self.subTest(command=command, columns=columns):
                    text = re.sub(r"\x1b\[[0-9]*m", "", self.on_terminal(*command, columns=columns))
                    self.assertIn("busy.py:", text)
                    for line in text.split("\r\n")[2:]:  # behind the file's time and name
                        self.assertLessEqual(len(line), columns, text)
        self.assertRegex(self.sampled("report", "a.sampled").stdout.decode(), r"filename:lineno\(function\)\n.* /\S+/busy\.py:")
        self.assertIn("\n   Ordered by: internal CPU time, internal time\n", self.sampled("report", "a.sampled").stdout.decode())
        self.assertIn("total %", self.sampled("diff", "a.sampled", "b.sampled").stdout.decode())

    def test_progress_only_on_a_terminal(self):
        text = self.on_terminal("attach", self.target.pid, "-d", "0.8", "-o", "a.txt")
        self.assertRegex(text, r"\Asampled: \d+\.\d s, \d+\.\d s left; \d+ samples, \d+/s; Ctrl-C stops and writes\r\x1b\[K")
        self.assertIn("\r\x1b[Ka.txt\r\n", text, "the name stands alone on its line")
        self.assertEqual(self.on_terminal("attach", self.target.pid, "-q", "-d", "0.3", "-o", "a.txt"), "a.txt\r\n")

    def test_no_color(self):
        self.assertIn("\x1b[", self.on_terminal("doctor", self.target.pid, NO_COLOR=""))
        self.assertNotIn("\x1b", self.on_terminal("doctor", self.target.pid, NO_COLOR="1"))
        self.assertNotIn("\x1b", self.on_terminal("dump", self.target.pid, NO_COLOR="1"))

    def test_duration(self):
        """As long as asked. A busy machine makes one run longer, not each of five."""
        for _ in range(5):
            done = self.sampled("attach", self.target.pid, "-d", "1500ms", "-r", "100", "--stats", "-f", "flamegraph", "-o", "a.html")
            self.assertEqual(done.returncode, cli.DONE)
            if re.search(r" in 1\.[45]\d s\n", done.stderr.decode()):
                return
            os.remove(self.path("a.html"))
        self.fail(done.stderr)


if __name__ == "__main__":
    unittest.main()
