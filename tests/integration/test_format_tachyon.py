# SPDX-License-Identifier: Apache-2.0
"""Binary profiles that python3.15 -m profiling.sampling wrote itself, against what its own replay makes of them: the same stacks
and counts, line for line."""
import functools
import os
import re
import shutil
import subprocess
import tempfile
import unittest

import cli
import htmlprofile
import support

SECONDS = "1.5"
# The Python lives in a root of its own, without /proc, which the profiler reads: one is mounted there, in a mount namespace that ends with it.
IN_ROOT = ["unshare", "-m", "--propagation", "private", "sh", "-c", 'mount --bind /proc "$0/proc" && exec chroot "$0" "$@"']


@functools.lru_cache(maxsize=None)
def tachyon():
    """(command, root, why not)"""
    for python in support.all_pythons():
        if python.version[:2] != (3, 15):
            continue
        command = IN_ROOT + [python.root] + python.argv[2:] if python.root else python.argv
        done = subprocess.run(command + ["-m", "profiling.sampling", "--help"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd="/")
        if done.returncode == 0:
            return command, python.root, None
        return None, None, "profiling.sampling of %r does not run: %s" % (python, done.stdout.decode()[-200:])
    return None, None, "no Python 3.15 on this machine (tests/setup-roots forky makes one)"


class Recorded:
    """A file of its own, and what it says of it."""

    def __init__(self, folder, root, command, kind, options):
        self.path = os.path.join(folder, "profile.bin")
        inside = folder[len(root):]
        module = command + ["-m", "profiling.sampling"]
        script = [os.path.join(inside, "tachyon.py"), kind, SECONDS]
        self.run(module + ["run", "--binary", "-o", inside + "/profile.bin"] + options + script)
        log = self.run(module + ["replay", "--collapsed", "-o", inside + "/replayed", inside + "/profile.bin"])
        self.samples = int(re.search(r"Replayed ([\d,]+) samples", log).group(1).replace(",", ""))
        with open(os.path.join(folder, "replayed"), encoding="utf-8") as file:
            self.lines = file.read().splitlines()

    def run(self, command):
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=120, cwd="/")
        if done.returncode:
            raise AssertionError("%s: %s" % (" ".join(command), done.stdout.decode()[-1000:]))
        return done.stdout.decode()


def with_frames(page):
    """At its start a program may be seen with a thread that has no number and no frame yet."""
    return [thread for thread in page.threads if len(thread.nodes) > 1]


class Tachyon(cli.Folder):
    def setUp(self):
        super().setUp()
        command, root, why = tachyon()
        if why:
            self.skipTest(why)
        folder = tempfile.mkdtemp(prefix="sampled-test-", dir=root + "/tmp")
        self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
        shutil.copy(os.path.join(support.TARGETS, "tachyon.py"), folder)
        self.record = lambda kind, *options: Recorded(folder, root, command, kind, list(options))

    def page(self, *args, **extra):
        done = self.sampled("convert", *args, "-f", "flamegraph", "-o", "-", **extra)
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        return htmlprofile.Profile(done.stdout)

    def check(self, kind, *options, mode="wall"):
        recorded = self.record(kind, *options)
        self.assertGreater(recorded.samples, 100)
        done = self.sampled("convert", recorded.path, "-f", "collapsed", "--collapsed-style", "tachyon", "-o", "-")
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        # It writes special frames bare, we with a file and a line; and it leaves empty stacks out.
        lines = [re.sub(r"~:(<\w+>):0", r"\1", line) for line in done.stdout.decode().splitlines()]
        stacks = [line for line in lines if ";" in line]
        self.assertEqual(sorted(stacks), sorted(recorded.lines))
        page = self.page(recorded.path)
        self.assertEqual(page.facts["in_profile"] + page.facts["filtered"], recorded.samples)
        self.assertEqual(sum(int(line.rpartition(" ")[2]) for line in lines), page.facts["in_profile"])
        self.assertEqual(page.data["mode"], mode)
        wall = sum(thread.total("wall") for thread in page.threads)
        self.assertEqual(wall, 1_000_000 * page.facts["in_profile"])
        return recorded, page

    def test_one_thread_plain(self):
        recorded, page = self.check("one", "--compression", "none")
        (thread,) = with_frames(page)
        self.assertTrue(thread.is_main)
        self.assertEqual(thread.pid, thread.tid)
        self.assertEqual(page.facts["cut_stacks"], 0)
        with open(recorded.path, "rb") as file:
            piped = self.page("-", stdin=file)
        self.assertEqual(piped.data["threads"], page.data["threads"])

    def test_one_thread_zstd(self):
        recorded, page = self.check("one", "--compression", "zstd")
        subprocess.run(["gzip", "-k", recorded.path], check=True)
        self.assertEqual(self.page(recorded.path + ".gz").data["threads"], page.data["threads"])

    def test_threads(self):
        _, page = self.check("threads", "-a", "--compression", "none")
        self.assertEqual(len(with_frames(page)), 5)
        self.assertEqual(sum(thread.is_main for thread in page.threads), 1)
        gc = sum(thread.total("gc") for thread in page.threads)
        # Not at the end of each: what was called between two of its reads has <GC> below it.
        named = sum(
            samples
            for thread in page.threads
            for path, samples in thread.paths().items()
            if path and path[-1][0] == "<GC>" and "<GC>" not in (name for name, _file, _line in path[:-1])
        )
        self.assertGreater(gc, 0)
        self.assertEqual(gc, 1_000_000 * named)

    def test_threads_native_zstd(self):
        self.check("threads", "-a", "--native", "--compression", "zstd")

    def test_modes(self):
        for mode, value in (("cpu", "runnable"), ("gil", "gil"), ("exception", "exception")):
            with self.subTest(mode):
                _, page = self.check("threads", "-a", "--mode", mode, mode=mode)
                share = sum(thread.total(value) for thread in page.threads) / sum(thread.total("wall") for thread in page.threads)
                self.assertGreater(share, 0.9)

    def test_deep_recursion_is_cut_by_the_writer(self):
        _, page = self.check("deep")
        self.assertGreater(page.facts["cut_stacks"], 0)
        self.assertEqual(max(len(path) for thread in page.threads for path in thread.paths()), 256)

    def test_asyncio(self):
        self.check("asyncio", "-a", "--opcodes")

    def test_windows_add_up(self):
        recorded, page = self.check("threads", "-a")
        whole = page.facts["in_profile"]
        parts = [self.page(recorded.path, *window).facts["in_profile"] for window in
                 (("--to", "700ms"), ("--from", "700ms", "--to", "1200ms"), ("--from", "1200ms"))]
        self.assertEqual(sum(parts), whole)
        self.assertGreater(min(parts[:2]), 0)

    def test_a_cut_file_is_refused_in_one_line(self):
        recorded = self.record("one")
        with open(recorded.path, "rb") as file:
            whole = file.read()
        for bytes_ in (8, 63, 64, 95, 96, len(whole) // 2, len(whole) - 1):
            with open(self.path("cut.bin"), "wb") as file:
                file.write(whole[:bytes_])
            self.assert_error(self.sampled("convert", "cut.bin", "-o", "x.html"), cli.FAILED, "cut off")


if __name__ == "__main__":
    unittest.main()
