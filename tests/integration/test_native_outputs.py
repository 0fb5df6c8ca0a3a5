# SPDX-License-Identifier: Apache-2.0
"""Native frames in what sampled writes: by attach, run and dump, in snapshots, recordings, reports and comparisons; for users who are not root, of
other roots, and of code that a program makes while it runs."""
import collections
import functools
import json
import os
import platform
import re
import signal
import time
import unittest

import support

ORDINARY = 4711


def python():
    """A new one that has a root in common with us."""
    return [python for python in support.pythons() if not python.root and python.version >= (3, 8)][-1]


@functools.lru_cache(maxsize=None)
def chroots():
    return [python for python in support.pythons() if python.root and python.version >= (3, 8)]


def stacks(data):
    """{names of the frames, root first: samples}"""
    result = collections.Counter()
    for line in support.parse_collapsed(data):
        result[tuple(re.sub(r" \(.*", "", frame[0]) for frame in line.frames)] += line.count
    return result


def holding(found, *names):
    """Samples whose stack has these frames, in this order."""
    count = 0
    for frames, samples in found.items():
        rest = iter(frames)
        count += samples if all(name in rest for name in names) else 0
    return count


class Native(unittest.TestCase):
    def check(self, found, whole_life=False):
        """Of mixed.py: Python through C, and C; the interpreter's own is folded away. whole_life: what a program begins and ends with is there, too."""
        every = sum(found.values())
        self.assertGreater(holding(found, "<module>", "pack", "deflate"), 0, found.most_common(5))
        self.assertGreater(holding(found, "<module>", "sort", "key"), 0, found.most_common(5))
        for frames in found:
            for name in frames:
                self.assertNotRegex(name, r"^(_PyEval_Eval.*|_start|Py_RunMain|start_thread)$", frames)
            if not whole_life:
                self.assertIn(frames[0], ("<module>", "<truncated>", "<cut>"), frames)

    def attach(self, target, *options, seconds="1.5", user=None):
        done = support.sampled("attach", target.pid, "--native", "-d", seconds, "-r", "400", "-f", "collapsed", "-o", "-", *options, user=user)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done


@support.needs_python
class Commands(Native):
    def setUp(self):
        self.target = self.enterContext(support.Target(python(), "mixed.py"))

    def test_attach(self):
        self.check(stacks(self.attach(self.target).stdout))

    def test_run(self):
        output = self.target.path("run.txt")
        done = support.sampled("run", "--native", "-r", "400", "-f", "collapsed", "-o", output, "--", *python().argv, self.target.path("mixed.py"), 2)
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(output, "rb") as file:
            self.check(stacks(file.read()), whole_life=True)

    def test_dump(self):
        """As JSON, frames have what JSON Lines has; as text, a function and where it stands."""
        deadline = time.monotonic() + support.PATIENCE_S
        native = []
        while time.monotonic() < deadline and not any(frame["name"] == "deflate" for frame in native):
            done = support.sampled("dump", self.target.pid, "--native", "--json")
            self.assertEqual(done.returncode, 0, done.stderr)
            frames = json.loads(done.stdout)["threads"][0]["frames"]
            native = [frame for frame in frames if frame.get("kind") == "native"]
            for frame in native:
                self.assertTrue(frame["module"].startswith("/") or frame["module"].startswith("["), frame)
                self.assertRegex(frame["build_id"], r"^([0-9a-f]{2})*$")
                self.assertGreaterEqual(frame["line"], frame["first_line"])
            self.assertEqual([frame["name"] for frame in frames if frame["file"].endswith(".py")][-1], "<module>")
        self.assertIn("deflate", [frame["name"] for frame in native])
        text = support.sampled("dump", self.target.pid, "--native=all").stdout.decode()
        self.assertRegex(text, r"(?m)^    (Py_RunMain|pymain_main|Py_BytesMain) \(")
        self.assertRegex(text, r"(?m)^    _start \(")

    def test_snapshots(self):
        stem = self.target.path("profile")
        process = support.start_sampled("attach", self.target.pid, "--native", "-r", "400", "-f", "collapsed", "-o", stem + ".txt")
        support.wait_sampling(process, 400)
        process.send_signal(signal.SIGUSR1)
        support.wait_until(lambda: os.path.exists(stem + ".0001.txt"), "the snapshot is there")
        support.wait_sampling(process)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=support.PATIENCE_S)
        self.assertEqual(process.returncode, 0, err)
        found = []
        for name in stem + ".0001.txt", stem + ".txt":
            with open(name, "rb") as file:
                found.append(stacks(file.read()))
            self.check(found[-1])
        for frames, samples in found[0].items():
            self.assertGreaterEqual(found[1][frames], samples, "a stack fell from one snapshot to the next")

    def test_recording(self):
        recording, self.stem = self.target.path("all.sampled"), self.target.path("x")
        done = self.attach(self.target, "--record", recording)
        live = stacks(done.stdout)
        self.check(live)
        done = support.sampled("convert", recording, "-f", "collapsed", "-o", "-")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(stacks(done.stdout), live, "what was recorded is what was written")
        report = support.sampled("report", recording)
        self.assertEqual(report.returncode, 0, report.stderr)
        self.assertIn(b"deflate", report.stdout)
        other = self.target.path("other.sampled")
        self.attach(self.target, "--record", other)
        diff = support.sampled("diff", recording, other)
        self.assertEqual(diff.returncode, 0, diff.stderr)
        self.assertRegex(diff.stdout, rb"(?m) (list_sort_impl|deflate|libz\.so\.[\d.]+\+0x[0-9a-f]+)$")


@support.needs_python
class Surroundings(Native):
    @support.need_root
    def test_an_ordinary_user(self):
        with support.Target(python_for_all(), "mixed.py", user=ORDINARY) as target:
            self.check(stacks(self.attach(target, user=ORDINARY).stdout))

    @support.need_root
    def test_root_by_sudo(self):
        """The child that reads files is the user's who asked."""
        with support.Target(python_for_all(), "mixed.py", user=ORDINARY) as target:
            env = dict(os.environ, SUDO_UID=str(ORDINARY), SUDO_GID=str(ORDINARY))
            process = support.start_sampled("attach", target.pid, "--native", "-d", "1.5", "-r", "400", "-f", "collapsed", "-o", "-", env=env)
            with open("/proc/%d/task/%d/children" % (process.pid, process.pid), encoding="ascii") as file:
                support.wait_until(lambda: named_child(file), "the naming child")
                child = named_child(file)
            support.wait_until(lambda: status(child, "Uid") == [str(ORDINARY)] * 4, "another user's child")
            self.assertEqual(status(child, "Gid"), [str(ORDINARY)] * 4)
            self.assertEqual(status(child, "CapEff"), ["0" * 16])
            out, err = process.communicate(timeout=support.PATIENCE_S)
            self.assertEqual(process.returncode, 0, err)
            self.check(stacks(out))

    def test_another_root(self):
        """A stripped interpreter and C library of another system, whose files are not ours."""
        if not chroots():
            self.skipTest("no other root with a Python (tests/setup-roots)")
        for other in chroots()[-1:]:
            with support.Target(other, "mixed.py") as target:
                found = stacks(self.attach(target).stdout)
            self.check(found)
            own = "[%s]" % os.path.basename(other.real)
            for frames in found:
                self.assertNotIn(own, frames[:-1], "of a stripped interpreter it is told where it ran, and not on the way")

    @unittest.skipUnless(platform.machine() == "x86_64", "its code is for x86-64")
    def test_memory_that_is_named_later(self):
        with support.Target(python(), "jitted.py", 1.2) as target:
            self.addCleanup(remove, "/tmp/perf-%d.map" % target.pid)
            found = stacks(self.attach(target, seconds="2.5").stdout)
        self.assertGreater(holding(found, "call", "made later"), sum(found.values()) * 0.8, found.most_common(4))

    def test_trampolines(self):
        new = python()
        if new.version < (3, 12) or platform.machine() not in ("x86_64", "aarch64"):
            self.skipTest("no Python with trampolines")
        env = dict(os.environ, PYTHONPERFSUPPORT="1")
        with support.Target(new, "mixed.py", env=env) as target:
            name = "/tmp/perf-%d.map" % target.pid
            self.addCleanup(remove, name)
            self.assertTrue(os.path.getsize(name), "no trampolines were made")
            found = stacks(self.attach(target).stdout)
            self.check(found)
            self.assertFalse([frames for frames in found if any(name.startswith("py::") for name in frames)])
            whole = stacks(support.sampled("attach", target.pid, "--native=all", "-d", "1.5", "-f", "collapsed", "-o", "-").stdout)
        self.assertTrue([frames for frames in whole if any(name.startswith("py::") for name in frames)], whole.most_common(2))


def python_for_all():
    """One that others than root can start."""
    for candidate in reversed(support.all_pythons()):
        if not candidate.root and candidate.real.startswith("/usr/"):
            return candidate
    raise unittest.SkipTest("no interpreter that all users can start")


def named_child(file):
    file.seek(0)
    for pid in file.read().split():
        try:
            with open("/proc/%s/comm" % pid, encoding="ascii") as comm:
                if comm.read().strip() == "sampled-names":
                    return int(pid)
        except OSError:
            pass
    return None


def status(pid, key):
    with open("/proc/%d/status" % pid, encoding="ascii") as file:
        return re.search(r"^%s:\s*(.*)$" % key, file.read(), re.M).group(1).split()


def remove(path):
    if os.path.exists(path):
        os.unlink(path)


if __name__ == "__main__":
    unittest.main()
