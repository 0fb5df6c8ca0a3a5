# SPDX-License-Identifier: Apache-2.0
"""A core says what the process said: the stacks of a process that stands still, and those that sampled reads from its core, written by
gcore or by the kernel, are the same."""
import glob
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

import cli
import support
from cores import gcore, kernel_core, needs_gcore, needs_kernel_core

# Without arenas of 64 MiB a thread, which gcore writes whole.
ENVIRONMENT = dict(os.environ, MALLOC_ARENA_MAX="1", PYTHONDONTWRITEBYTECODE="1")
SLEEPS = ("230", "270", "23", "35", "115", "101", "72")  # clock_nanosleep, pselect6, select, nanosleep: of x86-64, of aarch64
WITH_FILES = "0x7f"  # coredump_filter (core(5)): file mappings as well


class Corpse(support.Target):
    def wait_ready(self):
        super().wait_ready()
        return self if self.crashes else self.wait_still()

    def __init__(self, python, *args, **extra):
        self.crashes = "crash" in args
        super().__init__(python, "corpse.py", *args, env=dict(ENVIRONMENT, **extra))


def stack_of(thread):
    return [(frame["name"], frame["file"], frame["line"], frame["first_line"]) for frame in thread["frames"]]


def plain(text, process):
    """The text of a dump without what differs between a process and its core: states, and the way to the binary under another root."""
    text = re.sub(r"(?m)^(Thread .*?): .*$", r"\1", text)
    if process.python.root:
        text = text.replace(process.python.root, "")
        text = re.sub(r"(?m)^        .*\n", "", text)  # source lines
    return text


class Case(cli.Folder):
    maxDiff = None

    def dump(self, *args):
        done = support.sampled("dump", *args, "--json")
        self.assertEqual((done.returncode, done.stderr), (cli.DONE, b""))
        return json.loads(done.stdout)

    def text(self, *args):
        done = support.sampled("dump", *args)
        self.assertEqual((done.returncode, done.stderr), (cli.DONE, b""))
        return done.stdout.decode()

    def assert_same(self, core, live, root=""):
        for key in ("pid", "command", "version"):
            self.assertEqual(core[key], live[key])
        self.assertEqual(core["binary"].replace(root, "", 1), live["binary"])
        self.assertEqual(len(core["threads"]), len(live["threads"]))
        for found, told in zip(core["threads"], live["threads"]):
            for key in ("tid", "name", "interpreter", "main", "sampled", "truncated"):
                self.assertEqual(found[key], told[key])
            self.assertEqual(stack_of(found), stack_of(told))
            self.assertTrue(found["sampled"])
            if not root:
                self.assertEqual([frame.get("source") for frame in found["frames"]], [frame.get("source") for frame in told["frames"]])

    def assert_whole_python(self, dump, facts):
        """As assert_whole(), of the Python frames in a dump with C frames."""
        threads = [dict(thread, frames=[frame for frame in thread["frames"] if frame.get("kind") != "native"]) for thread in dump["threads"]]
        self.assert_whole({"threads": threads}, facts)

    def assert_whole(self, dump, facts):
        """It is the program's truth at all."""
        by_name = {thread["name"]: [frame["name"] for frame in thread["frames"]] for thread in dump["threads"]}
        self.assertEqual([name for name in by_name["deep"] if name == "recursion"], ["recursion"] * 701)
        self.assertEqual(by_name["deep"][0], "wait")
        self.assertEqual([name for name in by_name["gen \u00e9"] if name == "nested"], ["nested"] * 6)
        self.assertEqual([name.rpartition(".")[2] for name in by_name["expression"][:3]], ["wait", "<genexpr>", "expression"])
        self.assertEqual(by_name["asleep"][0], "sleeping")
        inside = [thread for thread in dump["threads"] if thread["frames"] and thread["frames"][0]["name"] == "inside"]
        self.assertEqual([thread["interpreter"] != 0 for thread in inside], [True] if facts["subinterpreter"] else [])


@support.each_python
class Cores(Case):
    @needs_gcore
    def check_gcore(self, python):
        with Corpse(python) as target:
            live, text = self.dump(target.pid), self.text(target.pid)
            core = gcore(target)
            if target.holes:
                self.assert_what_there_is(core, live)
                return
            found = self.dump("--core", core)
            self.assert_same(found, live, python.root)
            self.assert_whole(found, target.facts)
            self.assertEqual([thread["signal"] for thread in found["threads"]], [None] * len(found["threads"]))
            if os.uname().machine == "x86_64":
                self.assertEqual([thread["status"] for thread in found["threads"]], [["idle"]] * len(found["threads"]))
            self.assertEqual(found["core"], core)
            self.assertEqual(plain(self.text("--core", core), target), plain(text, target))

    @needs_gcore
    def check_subinterpreter_in_the_main_thread(self, python):
        """Each system thread is there once: the main one in the interpreter that it has entered."""
        with Corpse(python, "main") as target:
            if not target.facts["subinterpreter"]:
                self.skipTest("no module for subinterpreters")
            live = self.dump(target.pid)
            core = gcore(target)
            if target.holes:
                self.skipTest("gcore leaves stacks out")
            found = self.dump("--core", core)
        for dump in (live, found):
            inside = [thread for thread in dump["threads"] if thread["frames"] and thread["frames"][0]["name"] == "inside"]
            self.assertEqual([(thread["tid"], thread["main"], thread["interpreter"] != 0) for thread in inside], [(target.pid, True, True)])
            tids = [thread["tid"] for thread in dump["threads"]]
            self.assertEqual(len(tids), len(set(tids)), dump["threads"])

    def assert_what_there_is(self, core, live):
        """The stacks that a core with holes can tell, and that others are missing."""
        done = support.sampled("dump", "--core", core, "--json")
        found = json.loads(done.stdout)["threads"]
        self.assertEqual(done.returncode, cli.DONE)
        self.assertRegex(done.stderr, rb"\Asampled: \d+ of %d threads could not be read whole\n\Z" % len(found))
        self.assertEqual([thread["tid"] for thread in found], [thread["tid"] for thread in live["threads"]])
        self.assertTrue(found[0]["main"] and found[0]["sampled"])
        for thread, told in zip(found, live["threads"]):
            self.assertEqual(stack_of(thread), stack_of(told) if thread["sampled"] else [])

    @support.on(support.each_version)
    @needs_gcore
    def check_native(self, python):
        """C frames are those of the process; where the kernel tells too little of a thread that waits, its core tells more."""
        if python.version < (3, 8):
            self.skipTest("native stacks are for 3.8 and later")
        if python.root:
            self.skipTest("the libraries of another root are not on this host")
        with Corpse(python) as target:
            live = self.dump(target.pid, "--native")
            core = gcore(target)
            if target.holes:
                self.skipTest("gcore leaves stacks out")
            found = self.dump("--core", core, "--native")
            self.assert_whole_python(found, target.facts)
            self.assert_whole_python(live, target.facts)
            for one, told in zip(found["threads"], live["threads"]):
                # To 3.10 each call of the recursion has C frames, more than are shown.
                if python.version >= (3, 11) or one["name"] != "deep":
                    self.assertNotIn("<cut>", [frame["name"] for frame in one["frames"]])
                if "<cut>" not in [frame["name"] for frame in told["frames"]]:
                    self.assertEqual(stack_of(one), stack_of(told))
            main = [frame.get("kind") for frame in found["threads"][0]["frames"]]
            self.assertEqual(main[0], "native", found["threads"][0])
            # C frames of a thread that is in a subinterpreter are not told apart from those of the main one.
            for thread in found["threads"]:
                if thread["interpreter"] and thread["tid"] == found["threads"][0]["tid"]:
                    self.assertEqual({frame.get("kind") for frame in thread["frames"]}, {None}, thread)

    @support.on(support.each_version)
    @needs_kernel_core
    def check_killed_by_sigsegv(self, python):
        with Corpse(python) as target:
            live = self.dump(target.pid)
            os.kill(target.pid, signal.SIGSEGV)
            core = kernel_core(target)
            # The kernel names files as the process saw them.
            exe = ["--exe", python.real] if python.root else []
            found = self.dump("--core", core, *exe)
            self.assert_same(found, live, python.root)
            self.assert_whole(found, target.facts)
            # To 3.12 a subinterpreter that stands idle has a state with the ids of the thread that made it.
            self.assertEqual({thread["tid"] for thread in found["threads"] if thread["signal"] == "SIGSEGV"}, {target.pid})
            self.assertRegex(self.text("--core", core, *exe), r"\nThread %d \"MainThread\": SIGSEGV, " % target.pid)

    @support.on(support.each_version)
    @needs_kernel_core
    def check_crash(self, python):
        with Corpse(python, "crash") as target:
            core = kernel_core(target)
            found = self.dump("--core", core, *(["--exe", python.real] if python.root else []))
            crasher = [thread for thread in found["threads"] if thread["signal"] == "SIGSEGV"]
            self.assertEqual([thread["name"] for thread in crasher], ["crasher"])
            self.assertEqual([frame["name"] for frame in crasher[0]["frames"]][:2], ["string_at", "crash"])
            self.assertIn("gil", crasher[0]["status"])
            if python.version >= (3, 8) and not python.root:
                self.assert_crash_in_c(core)
            self.assertEqual([thread["name"] for thread in found["threads"] if "gil" in thread["status"]], ["crasher"])

    def assert_crash_in_c(self, core):
        """Which C function it was, and how Python came there."""
        found = self.dump("--core", core, "--native")
        frames = [thread["frames"] for thread in found["threads"] if thread["signal"] == "SIGSEGV"][0]
        native = [frame for frame in frames if frame.get("kind") == "native"]
        self.assertRegex(native[0]["module"], r"/libc[.-][^/]*$")
        self.assertTrue(any(frame["name"] == "ffi_call" and "/libffi.so" in frame["module"] for frame in native), native)
        self.assertTrue(any("/_ctypes." in frame["module"] for frame in native), native)
        self.assertEqual([frame["name"] for frame in frames if frame.get("kind") != "native"][:2], ["string_at", "crash"])
        self.assertEqual(frames[: len(native)], native, "all of it is above Python's innermost frame")

    @needs_gcore
    def check_moved(self, python):
        """The file of the interpreter is elsewhere, another stands in its place, or the core has all of it."""
        if python.root:
            self.skipTest("the interpreter is started by its name in a root that is not ours")
        folder = self.path("")
        holder = self.binary_of(python)
        copy = shutil.copy(holder, self.path(os.path.basename(holder)))
        real = python.argv
        if holder == python.real:
            python = support.Python([copy], "", python.version, python.text, python.kind, copy)
        home = subprocess.run(real + ["-c", "import sys; print(sys.base_prefix)"], stdout=subprocess.PIPE, check=True).stdout.decode().strip()
        with Corpse(python, LD_LIBRARY_PATH=folder, PYTHONHOME=home) as target:
            live = self.dump(target.pid)
            self.assertEqual(live["binary"], copy)
            core = shutil.move(gcore(target), self.path("core"))
            whole = shutil.move(gcore(target, WITH_FILES), self.path("whole"))
            moved = shutil.move(copy, self.path("moved"))
            self.assert_same(self.dump("--core", core, "--exe", moved), live)
            done = support.sampled("dump", "--core", core)
            self.assertEqual((done.returncode, done.stdout), (cli.FAILED, b""))
            self.assertEqual(done.stderr.decode().count("%s: not here" % copy), 1, done.stderr)
            # All that is asked of the file is in the core: that the file is gone is said once, and costs nothing.
            done = support.sampled("dump", "--core", whole, "--json")
            self.assertEqual(done.returncode, cli.DONE, done.stderr)
            self.assertEqual(done.stderr.decode().count("\n"), 1, done.stderr)
            self.assert_same(json.loads(done.stdout), live)
            shutil.copy(support.SAMPLED, copy)
            done = support.sampled("dump", "--core", core)
            self.assertIn("%s: not the one that was mapped" % copy, done.stderr.decode())
            self.assert_same(self.dump("--core", core, "--exe", moved), live)
            done = support.sampled("dump", "--core", core, "--exe", support.SAMPLED)
            self.assertEqual(done.returncode, cli.USAGE)
            self.assertIn("no file like it was mapped", done.stderr.decode())

    def binary_of(self, python):
        with Corpse(python) as target:
            return self.dump(target.pid)["binary"]


@support.needs_python
class Errors(Case):
    def refuse(self, status, text, *args):
        self.assert_error(self.sampled("dump", *args), status, text)

    def test_what_is_no_core(self):
        path = self.path("core")
        for content, why in ((b"", "not a core file"), (b"plain text", "not a core file"), (b"\x28\xb5\x2f\xfd" + bytes(60), "compressed with zstd (unpack it first")):
            with open(path, "wb") as file:
                file.write(content)
            self.refuse(cli.NO_PYTHON, why, "--core", path)
        os.unlink(path)
        self.refuse(cli.FAILED, "No such file or directory", "--core", path)
        self.refuse(cli.NO_PYTHON, "it is a program or a library, not a core file", "--core", support.SAMPLED)
        self.refuse(cli.NO_PYTHON, "not a core file", "--core", self.folder)

    def test_command_line(self):
        self.refuse(cli.USAGE, "a core or a process, not both", "--core", "core", "1")
        self.refuse(cli.USAGE, "--core", "--core")
        self.refuse(cli.USAGE, "--exe: goes with --core", "--exe", "python3", "1")
        self.refuse(cli.USAGE, "its threads stand", "--core", "core", "--blocking")

    @needs_gcore
    def test_no_python_in_it(self):
        self.refuse(cli.NO_PYTHON, "not a Python process", "--core", self.core_of(["sleep", "100"]))

    @needs_gcore
    def test_version_not_supported(self):
        found = glob.glob(os.path.expanduser("~/.pyenv/versions/2.7*/bin/python2.7"))
        if not found:
            self.skipTest("no Python 2.7 on this machine")
        self.refuse(5, "Python 2.7", "--core", self.core_of([found[0], "-c", "import time; time.sleep(100)"]))

    def sleeps(self, pid):
        """In sleep(1) or time.sleep(), that is, and not in what comes before."""
        with open("/proc/%d/syscall" % pid, encoding="ascii") as file:
            return file.read().split()[0] in SLEEPS

    def core_of(self, command):
        process = subprocess.Popen(command, env=ENVIRONMENT)
        try:
            support.wait_until(lambda: self.sleeps(process.pid), "it sleeps")
            subprocess.run(["gcore", "-o", self.path("core"), str(process.pid)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
        finally:
            process.kill()
            process.wait()
        return shutil.move(self.path("core.%d" % process.pid), os.path.join(tempfile.mkdtemp(dir=self.made.name), "core"))

    def setUp(self):
        super().setUp()
        self.made = tempfile.TemporaryDirectory(prefix="sampled-core-")
        self.addCleanup(self.made.cleanup)

    @needs_kernel_core
    def test_a_core_that_was_cut(self):
        """What is there is used, and what is missing said."""
        python = [one for one in support.pythons() if not one.root][-1]
        with Corpse(python) as target:
            live = self.dump(target.pid)
            os.kill(target.pid, signal.SIGSEGV)
            core = kernel_core(target)
            size = os.path.getsize(core)
            whole = 0
            for part in (0.999, 0.9, 0.5, 0.1, 0.01, 0.001):
                os.truncate(core, int(size * part))
                done = support.sampled("dump", "--core", core, "--json")
                self.assertRegex(done.stderr.decode(), r"it was cut: \d+ bytes of memory are missing\n")
                self.assertIn(done.returncode, (cli.DONE, cli.FAILED, cli.NO_PYTHON), done.stderr)
                if done.returncode != cli.DONE:
                    continue
                for thread in json.loads(done.stdout)["threads"]:
                    told = [one for one in live["threads"] if one["tid"] == thread["tid"]]
                    if thread["sampled"] and told:
                        self.assertIn(stack_of(thread), [stack_of(one) for one in told])
                        whole += 1
            self.assertGreater(whole, 0)


if __name__ == "__main__":
    unittest.main()
