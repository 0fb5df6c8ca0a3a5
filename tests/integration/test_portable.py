# SPDX-License-Identifier: Apache-2.0
"""The portable program (make static): one file that runs under any C library, or none, and reads what the other reads."""
import glob
import os
import shutil
import subprocess
import tempfile
import unittest

import support

PORTABLE = os.path.join(support.TOP, "build", "static", "sampled")
MIB = 1 << 20


def setUpModule():
    made = subprocess.run(["make", "--no-print-directory", "-j%d" % os.cpu_count(), "static"], cwd=support.TOP, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env={key: value for key, value in os.environ.items() if key != "BUILD"})
    if made.returncode != 0:
        raise AssertionError("make static: " + made.stdout.decode()[-3000:])


def portable(*args):
    return subprocess.run([PORTABLE, *map(str, args)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          timeout=support.SAMPLED_TIMEOUT_S)


class File(unittest.TestCase):
    def test_needs_nothing(self):
        headers = subprocess.run(["readelf", "-lW", PORTABLE], stdout=subprocess.PIPE, check=True).stdout.decode()
        self.assertNotIn("INTERP", headers)
        self.assertIn("DYN (Position-Independent Executable file)", headers)
        self.assertLess(os.path.getsize(PORTABLE), 6 * MIB)

    def test_what_it_has_not_got_is_said(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "push.conf")
            with open(path, "w", encoding="utf-8") as file:
                file.write("[destination a]\ntype = pyroscope\nurl = http://127.0.0.1:9/\n")
            done = portable("push", "--once", "--config", path, "--spool", folder)
        self.assertEqual(done.returncode, 1)
        self.assertEqual(done.stderr.decode().count("\n"), 1, done.stderr)
        self.assertIn("the portable program has none (use a build with shared libraries", done.stderr.decode())


@support.each_python
class Targets(unittest.TestCase):
    @support.on(support.few)
    def check_reads_a_program(self, python):
        with support.Target(python, "busy.py") as target, tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "x.sampled")
            done = portable("attach", target.pid, "-d", "1", "--native", "--record", path)
            self.assertEqual(done.returncode, 0, done.stderr)
            for name in ("x.svg", "x.pb.gz", "x.pstats", "x.speedscope.json", "x.html", "x.collapsed"):
                done = portable("convert", path, "-o", os.path.join(folder, name))
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertGreater(os.path.getsize(os.path.join(folder, name)), 0, name)
            with open(os.path.join(folder, "x.collapsed"), encoding="utf-8") as file:
                self.assertIn("busy.py", file.read())
            report = portable("report", path)
            self.assertEqual(report.returncode, 0, report.stderr)
            dump = portable("dump", "--native", target.pid)
            self.assertEqual(dump.returncode, 0, dump.stderr)
            self.assertIn(b"busy.py", dump.stdout)


@unittest.skipUnless(os.geteuid() == 0, "only root can change its root directory")
class Roots(unittest.TestCase):
    """It runs in other Debians' roots, and in one where nothing else is, and reads a process outside."""

    def in_root(self, root):
        python = support.newest()
        if not python:
            self.skipTest("no supported Python was found")
        folder = tempfile.mkdtemp(prefix="sampled-portable-", dir=os.path.join(root, "tmp"))
        self.addCleanup(shutil.rmtree, folder)
        shutil.copy(PORTABLE, folder)
        inside = folder[len(root):]
        with support.Target(python, "busy.py") as target:
            # A mount that goes with the namespace of this one command.
            script = 'mount -t proc proc "$1/proc" && exec chroot "$1" "$2/sampled" attach "$3" -d 1 -o "$2/x.collapsed"'
            done = subprocess.run(["unshare", "--mount", "sh", "-c", script, "sh", root, inside, str(target.pid)], stdin=subprocess.DEVNULL,
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=support.SAMPLED_TIMEOUT_S)
            self.assertEqual(done.returncode, 0, done.stderr)
            with open(os.path.join(folder, "x.collapsed"), encoding="utf-8") as file:
                self.assertIn("busy.py", file.read())

    def test_of_other_releases(self):
        roots = sorted(glob.glob(os.path.join(support.CACHE, "root-*")))
        if not roots:
            self.skipTest("no Debian roots (tests/setup-roots)")
        for root in roots:
            with self.subTest(root=os.path.basename(root)):
                self.in_root(root)

    def test_of_nothing_else(self):
        root = tempfile.mkdtemp(prefix="sampled-empty-")
        self.addCleanup(shutil.rmtree, root)
        os.mkdir(os.path.join(root, "proc"))
        os.mkdir(os.path.join(root, "tmp"))
        self.in_root(root)


if __name__ == "__main__":
    unittest.main()
