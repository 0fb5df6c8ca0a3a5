# SPDX-License-Identifier: Apache-2.0
"""The command line's contract: nonsense, processes that cannot be attached, dump and doctor."""
import json
import os
import re
import shlex
import subprocess
import time
import unittest

import cli
import support

PF_KTHREAD = 0x00200000
MANUAL = os.path.join(support.TOP, "docs", "sampled.1")


def is_kernel_thread(pid):
    try:
        with open("/proc/%d/stat" % pid, "rb") as file:
            return int(file.read().rpartition(b") ")[2].split()[6]) & PF_KTHREAD != 0
    except OSError:
        return False


class Usage(cli.Folder):
    def refuse(self, *args, says):
        with self.subTest(args=args):
            self.assert_error(self.sampled(*args), cli.USAGE, says)
            self.assertEqual(os.listdir(self.folder), [])

    def test_nonsense(self):
        self.refuse(says="no command")
        self.refuse("nonsense", says="nonsense: no such command (sampled --help lists them)")
        self.refuse("attch", says="attch: no such command (is it attach?)")
        self.refuse("4711", says="4711: no such command (sampled attach 4711 profiles it, sampled dump 4711 prints its stacks)")
        for words in (["-p", "4711"], ["--pid", "4711"], ["--pid=4711"]):
            self.refuse(*words, says=": a command comes first (sampled attach 4711 profiles it")
        self.refuse("-d", "5", "4711", says="-d: a command comes first (sampled --help lists them)")
        self.refuse("help", "attch", says="is it attach?")
        self.refuse("attach", "-p", "4711", says="-p: no such option (a process is named by its number alone: sampled attach PID")
        self.refuse("dump", "--pid=4711", says="a process is named by its number alone")
        self.refuse("attach", "1", "--rat", "5", says="--rat: no such option (is it --rate?)")
        self.refuse("attach", "1", "--durration", "5", says="--durration: no such option (is it --duration?)")
        self.refuse("attach", "1", "--mode", "cpuu", says="--mode cpuu: no such mode (is it cpu?)")
        self.refuse("attach", "1", "-f", "flame", says="-f flame: no such format (is it flamegraph?)")
        self.refuse("attach", "1", "-f", "html", says="-f html: no such format (is it flamegraph?)")
        self.refuse("ctl", "lst", says="ctl lst: no such command (is it list?)")
        self.refuse("attach", says="no process named")
        self.refuse("attach", "abc", says="abc: not a process id")
        self.refuse("attach", "0", says="0: not a process id")
        self.refuse("attach", "-1", says="no such option")
        self.refuse("attach", "1", "-r", "0", says="not a rate")
        self.refuse("attach", "1", "-d", "-3", says="not a duration")
        self.refuse("attach", "1", "-f", "nonsense", says="formats: flamegraph ")
        self.refuse("attach", "1", "-f", "text", "-f", "collapsed", "-o", "-", says="one format only")
        self.refuse("attach", "1", "-f", "text", "-o", "a", "-o", "b", says="do not pair")
        self.refuse("attach", "1", "-o", "a.unknown", says="unknown suffix .")
        self.refuse("attach", "1", "--omit", "[", says="not a regular expression")
        self.refuse("attach", "1", "--record", "a", "--record", "b", says="--record: given twice")
        self.refuse("convert", "a", "-o", "b.txt", "--output", "c.svg", says="--output: given twice (once only)")
        self.refuse("diff", "a", "b", "-o", "c.svg", "-f", "svg", "-f", "flamegraph", says="-f: given twice (once only)")
        self.refuse("run", says="no command")
        self.refuse("dump", says="no process named")
        self.refuse("dump", "1", "two", says="two: not a process id")
        self.refuse("dump", "--core", "core", "--subprocesses", says="--subprocesses is for processes")
        self.refuse("dump", "1", "--native=some", says="--native=some: no such choice (all, leaf, extensions or marks)")
        self.refuse("attach", "1", "--native=some", says="no such choice")
        self.refuse("attach", "1", "--debuginfod", says="goes with native frames")
        self.refuse("doctor", "x", says="not a process id")

    def test_later_and_reserved(self):
        for command in ("top", "view"):
            self.refuse(command, says="sampled: %s: not built yet\n" % command)
        for option in ("--async", "--greenlets"):
            for command in ("attach", "dump"):
                self.refuse(command, "1", option, says="sampled: %s: not built yet\n" % option)
        self.refuse("attach", "1", "--async=all", says="--async: not built yet")

    def test_locals(self):
        self.refuse("attach", "1", "--locals", says="sampled: --locals: values are in no profile (sampled dump PID --locals shows them)\n")
        self.refuse("dump", "1", "--locals=2", says="--locals=2: takes no value")
        self.refuse("dump", "1", "--locals-all", says="--locals-all: goes with --locals")

    def test_help_and_version(self):
        for args in (["--help"], ["-h"], ["attach", "--help"], ["run", "-h"], ["dump", "--help"], ["doctor", "--help"],
                     ["ctl", "--help"], ["convert", "--help"], ["report", "--help"], ["diff", "-h"], ["daemon", "-h"],
                     ["push", "--help"], ["help"], ["help", "attach"]):
            done = self.sampled(*args)
            self.assertEqual((done.returncode, done.stderr), (cli.DONE, b""), args)
            self.assertIn(b"sampled", done.stdout)
            for word in (b"--async", b"sampled top"):
                self.assertNotIn(word, done.stdout)
        for command in ("attach", "run", "dump", "ctl", "diff", "push", "daemon", "doctor"):
            self.assertEqual(self.sampled("help", command).stdout, self.sampled(command, "--help").stdout)
        for args in (["--version"], ["version"], ["attach", "--version"]):
            self.assertRegex(self.sampled(*args).stdout, rb"\Asampled \d+\.\d+\.\d+\n\Z")

    def test_manual_and_help_agree(self):
        text = "".join(self.sampled(command, "--help").stdout.decode() for command in ("attach", "dump", "ctl", "convert", "report", "diff"))
        with open(MANUAL) as file:
            manual = file.read().replace("\\-", "-")
        described = set(re.findall(r"^\.It .*", manual, re.M))
        in_manual = {"--" + name for line in described for name in re.findall(r"Fl -([a-z-]+)", line)}
        self.assertEqual(set(re.findall(r"(?<![\w-])--[a-z-]+", text)), in_manual)

    def test_manual_of_push_and_help_agree(self):
        with open(os.path.join(support.TOP, "docs", "sampled-push.8")) as file:
            described = re.findall(r"^\.It Fl -([a-z-]+)", file.read(), re.M)
        options = set(re.findall(r"(?<![\w-])--([a-z-]+)", self.sampled("push", "--help").stdout.decode())) - {"help", "version"}
        self.assertEqual(options, set(described))

    def test_a_file_whose_name_cannot_be_printed(self):
        """It is there, and a failure is never silent."""
        with open(self.path("in.txt"), "w") as file:
            file.write("main;work 3\n")
        for command in (["convert", "in.txt"], ["diff", "in.txt", "in.txt"]):
            with open("/dev/full", "wb") as full:
                done = subprocess.run([support.SAMPLED, *command, "-o", "out.svg"], stdout=full, stderr=subprocess.PIPE,
                                      timeout=30, cwd=self.folder)
            self.assertEqual(done.returncode, cli.FAILED)
            self.assertIn(b"wrote out.svg, but cannot print its name", done.stderr)
            os.remove(self.path("out.svg"))

    def test_closed_and_full_standard_output(self):
        with open("/dev/full", "wb") as full:
            done = subprocess.run([support.SAMPLED, "--help"], stdout=full, stderr=subprocess.PIPE, timeout=30)
        self.assertEqual(done.returncode, cli.FAILED)
        self.assertIn(b"No space left", done.stderr)
        done = subprocess.run(["sh", "-c", "%s --version >&-" % support.SAMPLED], stderr=subprocess.PIPE, timeout=30)
        self.assertEqual(done.returncode, cli.FAILED)
        self.assertIn(b"standard output", done.stderr)


class NoTarget(cli.Folder):
    def refuse(self, pid, status, *texts, **extra):
        self.assert_error(self.sampled("attach", pid, "-d", "1", **extra), status, "process %d" % pid, *texts)
        self.assertEqual(os.listdir(self.folder), [])
        self.assert_error(self.sampled("dump", pid, **extra), status, *texts)
        self.assertEqual(self.sampled("doctor", pid, **extra).returncode, status)

    def test_no_such_process(self):
        child = subprocess.Popen(["true"])
        child.wait()
        self.refuse(child.pid, cli.NO_PYTHON, "no such process")

    def test_not_a_python(self):
        child = subprocess.Popen(["sleep", "60"])
        try:
            self.refuse(child.pid, cli.NO_PYTHON, "not a Python")
            self.assertIsNone(child.poll())
        finally:
            child.kill()
            child.wait()

    def test_zombie(self):
        child = subprocess.Popen(["true"])
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        try:
            done = self.sampled("attach", child.pid)
            self.assert_error(done, cli.NO_PYTHON, "it has ended")
        finally:
            child.wait()

    @unittest.skipUnless(is_kernel_thread(2), "no kernel thread in sight")
    def test_kernel_thread(self):
        self.refuse(2, cli.NO_PYTHON, "kernel thread")

    @support.needs_python
    def test_thread_of_a_process(self):
        with support.Target(support.newest(), "parked.py") as target:
            tids = sorted(int(name) for name in os.listdir("/proc/%d/task" % target.pid))
            other = [tid for tid in tids if tid != target.pid]
            self.assertTrue(other)
            self.assert_error(self.sampled("attach", other[0]), cli.NO_PYTHON, "thread of process %d" % target.pid)

    @support.need_root
    @support.needs_python
    def test_not_permitted(self):
        with support.Target(support.newest(), "parked.py") as target:
            os.chmod(self.folder, 0o777)
            for command in (["attach", target.pid, "--stop", "it's", "-o", "a.txt"], ["dump", target.pid]):
                done = self.sampled(*command, user=cli.NOBODY)
                error, sudo = done.stderr.decode().splitlines()
                self.assertEqual((done.returncode, done.stdout), (cli.NOT_PERMITTED, b""), error)
                self.assertRegex(error, r"\Asampled: .*not permitted \(")
                self.assertTrue(sudo.startswith("    sudo "), sudo)
                self.assertEqual(shlex.split(sudo)[-len(command):], [str(word) for word in command])
            self.assertEqual(os.listdir(self.folder), [])
            self.assertIn(target.state(), "RSD")

    @support.need_root
    @support.needs_python
    def test_own_processes_need_no_privilege(self):
        scope = "/proc/sys/kernel/yama/ptrace_scope"
        if os.path.exists(scope) and open(scope).read().strip() != "0":
            self.skipTest("ptrace_scope forbids it on this machine")
        with support.Target(cli.python_for_all(), "parked.py", user=cli.NOBODY) as target:
            done = self.sampled("attach", target.pid, "-d", "0.5", "-f", "collapsed", "-o", "-", user=cli.NOBODY)
            self.assertEqual(done.returncode, cli.DONE, done.stderr)
            self.assertGreater(cli.samples(done.stdout), 0)

    @support.needs_python
    def test_the_worst_failure_is_the_status_and_the_others_are_sampled(self):
        child = subprocess.Popen(["true"])
        child.wait()
        with support.Target(support.newest(), "parked.py") as target:
            done = self.sampled("attach", child.pid, target.pid, "-d", "0.5", "-f", "collapsed", "-o", "a.txt")
            self.assertEqual(done.returncode, cli.NO_PYTHON)
            self.assertEqual(done.stdout, b"a.txt\n")
            self.assertIn(b"process %d: no such process" % child.pid, done.stderr)
        self.assertGreater(cli.samples_in(self.path("a.txt")), 0)


@support.needs_python
class DumpAndDoctor(cli.Folder):
    def test_dump_json(self):
        with support.Target(support.newest(), "parked.py") as target:
            target.wait_still()  # the thread that reports ends behind its report
            done = self.sampled("dump", target.pid, "--json")
            self.assertEqual((done.returncode, done.stderr), (cli.DONE, b""))
            dump = json.loads(done.stdout)
            self.assertEqual(dump["pid"], target.pid)
            self.assertEqual(dump["version"], support.newest().text)
            self.assertTrue(dump["threads"][0]["main"])
            self.assertTrue(all(thread["sampled"] for thread in dump["threads"]))
            text = self.sampled("dump", target.pid).stdout.decode()
            self.assertEqual(text.count("\nThread "), len(dump["threads"]))
            self.assertNotIn("\033", text)

    def test_dump_waits_for_what_is_put_off(self):
        """A stack on generators is put off in one first look of twenty-five."""
        with support.Target(support.newest(), "parked.py") as target:
            target.wait_still()
            for _ in range(60):
                self.assertEqual(self.sampled("dump", target.pid, "--json").stderr, b"")

    def test_dump_names_system_calls(self):
        """Of threads that are blocked; of who runs there is none."""
        script = self.path("program.py")
        with open(script, "w") as file:
            file.write("import os, select, threading\nends = os.pipe()\ndef burn():\n    while True: pass\n"
                       "for work, name in ((lambda: os.read(ends[0], 1), 'reader'), (burn, 'burner')):\n"
                       "    threading.Thread(target=work, name=name, daemon=True).start()\n"
                       "print('up', flush=True)\nselect.epoll().poll()\n")
        python = [one for one in support.pythons() if not one.root]
        if not python:
            self.skipTest("no Python outside of another root")
        process = subprocess.Popen(python[-1].argv + ["-B", script], stdout=subprocess.PIPE)
        try:
            process.stdout.readline()
            support.wait_until(lambda: b"epoll_" in self.sampled("dump", process.pid).stdout, "it waits for events")
            text = self.sampled("dump", process.pid).stdout.decode()
            dump = json.loads(self.sampled("dump", process.pid, "--json").stdout)
        finally:
            process.kill()
            process.communicate()
        self.assertRegex(text, r"idle in epoll_p?wait\n")
        self.assertRegex(text, r"idle in read\n")
        calls = sorted(thread.get("syscall", "none") for thread in dump["threads"])
        self.assertRegex(" ".join(calls), r"^epoll_p?wait none read$")

    def test_dump_shows_source_lines(self):
        script = self.path("program.py")
        with open(script, "w") as file:
            file.write("import time\ndef wait():\n    time.sleep(60)  # here it waits\nwait()\n")
        python = [one for one in support.pythons() if not one.root]
        if not python:
            self.skipTest("no Python outside of another root")
        process = subprocess.Popen(python[-1].argv + [script])
        try:
            support.wait_until(lambda: b"idle in " in self.sampled("dump", process.pid).stdout, "it waits")
            text = self.sampled("dump", process.pid).stdout.decode()
        finally:
            process.kill()
            process.wait()
        self.assertRegex(text, r"idle in \w+\n    wait \(\S*program\.py:3\)\n        time\.sleep\(60\)  # here it waits\n    <module> ")

    def test_doctor(self):
        with support.Target(support.newest(), "parked.py") as target:
            done = self.sampled("doctor", target.pid)
        text = done.stdout.decode()
        self.assertEqual(done.returncode, cli.DONE, text)
        for line in text.splitlines():
            self.assertRegex(line, r"\A(ok  |warn|fail)  \S")
        for word in ("kernel:", "process_vm_readv", "CAP_SYS_PTRACE", "ptrace_scope", "on-CPU data", "Python " + support.newest().text,
                     "interpreter found by", "namespaces", "read whole", "threads can be stopped",
                     "native stacks: where the interpreter's loop lies is known"):
            self.assertIn(word, text)

    @support.need_root
    def test_doctor_names_missing_capabilities(self):
        text = self.sampled("doctor", user=cli.NOBODY).stdout.decode()
        self.assertRegex(text, r"warn  no capability CAP_SYS_PTRACE \(.+\)")
        self.assertRegex(text, r"warn  no capability CAP_SYS_NICE \(.+\)")


if __name__ == "__main__":
    unittest.main()
