# SPDX-License-Identifier: Apache-2.0
"""sampled report: the same files read by every Python's own pstats, line by line; the browser against `python -m pstats`."""
import ast
import csv
import gzip
import io
import json
import os
import re
import select
import shutil
import subprocess
import tempfile
import termios
import unittest

import cli
import support

ENVIRONMENT = dict(os.environ, TZ="UTC", LC_ALL="C.UTF-8")
PROFILER = "import cProfile, profile, pstats, json, ast"


def run(python, *args, **extra):
    return subprocess.run(python.argv + list(args), env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=300, **extra)


class Profiles:
    """Three profiles that an interpreter's own profilers made, in a folder that it can reach."""

    def __init__(self, python):
        if python.version < (3, 8):
            raise unittest.SkipTest("pstats of before 3.8 is another one")
        if run(python, "-c", PROFILER).returncode != 0:
            raise unittest.SkipTest("this Python is installed without its profilers")
        self.python = python
        self.folder = tempfile.mkdtemp(prefix="sampled-report-", dir=(python.root or "") + "/tmp")
        self.inside = self.folder[len(python.root):]
        shutil.copy(os.path.join(support.TARGETS, "pstats_reference.py"), self.folder)
        self.reference("profile")

    def reference(self, what):
        done = run(self.python, self.inside + "/pstats_reference.py", what, self.inside)
        if done.returncode != 0:
            raise AssertionError(done.stderr.decode())

    def __enter__(self):
        return self

    def __exit__(self, *_error):
        shutil.rmtree(self.folder)

    def path(self, name):
        return os.path.join(self.folder, name)

    def sampled(self, *args, **extra):
        return support.sampled("report", *args, cwd=self.folder, env=ENVIRONMENT, **extra)

    def browse(self, commands, *files):
        """What the browsers print of these commands: Python's, and ours."""
        script = self.path("script")
        with open(script, "w") as file:
            file.write(commands)
        # The current folder is not the same in a root of its own; names on the command line are those of the prompt.
        start = "import os, runpy, sys; os.chdir(sys.argv.pop(1)); runpy.run_module('pstats', run_name='__main__')"
        with open(script) as file:
            theirs = run(self.python, "-c", start, self.inside, *files, stdin=file)
        with open(script) as file:
            ours = self.sampled("--interactive", *files, stdin=file)
        return theirs, ours


@support.each_python
class Tables(unittest.TestCase):
    maxDiff = None

    @support.on(support.each_version)
    def check_every_table_is_that_of_pstats(self, python):
        with Profiles(python) as profiles:
            profiles.reference("print")
            with open(profiles.path("expected.json")) as file:
                cases = json.load(file)
            self.assertGreater(len(cases), 130)
            for args, text in cases:
                with self.subTest(args=args):
                    done = profiles.sampled(*args)
                    self.assertEqual((done.returncode, done.stderr), (cli.DONE, b""))
                    self.assertEqual(done.stdout.decode().splitlines(), self.expected(text, profiles).splitlines())

    def expected(self, text, profiles):
        """pstats was given whole paths, sampled the names: only the lines of files differ."""
        return re.sub(r"(?m)^(.{24}    )%s/(\w+\.prof)$" % profiles.inside, r"\1\2", text)

    @support.on(support.each_version)
    def check_the_browser_answers_as_that_of_pstats(self, python):
        commands = """
help
?stats
help sort
help nothing
bogus command
stats 3
callers 0.1 copy
callees fib
sort
sort bogus
sort tim nam
stats 4

stats 1.5 2 {built
reverse
stats .02
callers even
strip
stats twin
sort cumulative
callees twin
add more.prof
stats 5
sort calls line
stats 10
read more.prof
stats 3
read
sort nfl
stats 2
read missing.prof
add missing.prof
callers (
!shell
sort 0
EOF
stats 1
"""
        with Profiles(python) as profiles:
            theirs, ours = profiles.browse(commands, "work.prof")
            self.assertEqual(theirs.returncode, 0, theirs.stderr)
            self.assertEqual((ours.returncode, ours.stderr), (cli.DONE, b""))
            self.assertEqual(ours.stdout.decode().splitlines(), theirs.stdout.decode().splitlines())
            for commands, files in (("stats\nsort\nread\nadd x\nquit\nstats\n", ()), ("stats 9\n", ("more.prof", "work.prof")), ("", ("more.prof",))):
                theirs, ours = profiles.browse(commands, *files)
                self.assertEqual(ours.stdout.decode().splitlines(), theirs.stdout.decode().splitlines())


MAKE_PROFILE = os.path.join(support.TOP, "build", "tests", "browser", "make_profile")
PROGRAM = """
import cProfile
def leaf(n): return sum(range(n))
def branch(n): return leaf(n) if n < 3 else branch(n - 1) + leaf(n)
profiler = cProfile.Profile()
profiler.runcall(branch, 30)
profiler.dump_stats("a.prof")
"""


def python_here():
    """One that can run in the test's folder, with its profilers."""
    for python in reversed(support.all_pythons()):
        if not python.root and python.version >= (3, 8) and run(python, "-c", PROFILER).returncode == 0:
            return python
    raise unittest.SkipTest("no Python with its profilers was found")


class Report(cli.Folder):
    def setUp(self):
        super().setUp()
        self.python = python_here()
        run(self.python, "-c", PROGRAM, cwd=self.folder).check_returncode()

    def report(self, *args, **extra):
        done = self.sampled("report", *args, env=ENVIRONMENT, **extra)
        self.assertEqual((done.returncode, done.stderr), (cli.DONE, b""))
        return done.stdout.decode()

    def stats(self):
        """{(file, line, name): (cc, nc, tt, ct, callers)}, as the newest Python here reads it."""
        script = "import pstats; print(repr(pstats.Stats('a.prof').stats))"
        done = run(self.python, "-c", script, cwd=self.folder)
        return ast.literal_eval(done.stdout.decode())

    def test_json_holds_all(self):
        found = json.loads(self.report("a.prof", "--json", "--callers", "--callees"))
        stats = self.stats()
        self.assertEqual([found[key] for key in ("counts", "unit", "facts")], ["calls", "seconds", []])
        self.assertEqual(found["ncalls"], sum(row[1] for row in stats.values()))
        self.assertEqual(found["pcalls"], sum(row[0] for row in stats.values()))
        place = lambda row: (row["file"], row["line"], row["function"])
        callers = {place(row): {place(caller): tuple(caller[key] for key in ("ncalls", "pcalls", "tottime", "cumtime")) for caller in row["callers"]}
                   for row in found["functions"]}
        self.assertEqual(callers, {key: row[4] for key, row in stats.items()})
        self.assertEqual(sum(len(row["callees"]) for row in found["functions"]), sum(len(row[4]) for row in stats.values()))
        self.assertEqual({place(row): (row["pcalls"], row["ncalls"], row["tottime"], row["cumtime"]) for row in found["functions"]},
                         {key: row[:4] for key, row in stats.items()})
        times = [row["tottime"] for row in found["functions"]]
        self.assertEqual(times, sorted(times, reverse=True))

    def test_csv_is_read_by_csv(self):
        rows = list(csv.DictReader(io.StringIO(self.report("a.prof", "--csv", "--sort", "nfl"), newline="")))
        self.assertEqual({(row["file"], int(row["line"]), row["function"]): (int(row["pcalls"]), int(row["ncalls"]), float(row["tottime"]),
                          float(row["cumtime"])) for row in rows}, {key: row[:4] for key, row in self.stats().items()})
        self.assertEqual([row["function"] for row in rows], sorted(row["function"] for row in rows))
        text = self.report("a.prof", "--csv", "--callers")
        self.assertEqual(text.count("\r\n"), text.count("\n"))
        calls = list(csv.DictReader(io.StringIO(text, newline="")))
        self.assertEqual(len(calls), sum(len(row[4]) for row in self.stats().values()))
        branch = [call for call in calls if call["function"] == call["caller_function"] == "branch"]
        self.assertEqual([call["ncalls"] for call in branch], ["28"], "of 30 down to 2, all but the first")

    def test_the_default_order_is_said(self):
        text = self.report("a.prof")
        self.assertIn("   Ordered by: internal time\n", text)
        self.assertEqual(text, self.report("a.prof", "--sort", "tottime"))

    def test_standard_input_and_packed_files(self):
        with open(self.path("a.prof"), "rb") as file:
            text = self.report("-", stdin=file)
        self.assertEqual(text.splitlines()[0], "standard input")
        with open(self.path("a.prof"), "rb") as file, gzip.open(self.path("b.gz"), "wb") as packed:
            packed.write(file.read())
        self.assertEqual(self.report("b.gz").splitlines()[1:], text.splitlines()[1:])

    def test_what_is_refused(self):
        with open(self.path("cut.prof"), "wb") as cut, open(self.path("a.prof"), "rb") as whole:
            cut.write(whole.read()[:-20])
        for status, says, args in (
            (cli.USAGE, "no file named", []),
            (cli.USAGE, "--sort c: more than one key begins so", ["a.prof", "--sort", "c"]),
            (cli.USAGE, "--sort cum: more than one key begins so", ["a.prof", "--sort", "time,cum"]),
            (cli.USAGE, "--sort zz: no such key", ["a.prof", "--sort", "zz"]),
            (cli.USAGE, "--sort : no such key", ["a.prof", "--sort", "time,"]),
            (cli.USAGE, "does not hold it", ["a.prof", "--sort", "gil"]),
            (cli.USAGE, "--limit 1.5: not a fraction", ["a.prof", "--limit", "1.5"]),
            (cli.USAGE, "--limit [: not a regular expression", ["a.prof", "--limit", "["]),
            (cli.USAGE, "one of them", ["a.prof", "--json", "--csv"]),
            (cli.USAGE, "are two", ["a.prof", "--csv", "--callers", "--callees"]),
            (cli.USAGE, "--interactive", ["a.prof", "--interactive", "--callers"]),
            (cli.USAGE, "for commands", ["-", "--interactive"]),
            (cli.USAGE, "hold no stacks", ["a.prof", "--focus", "x"]),
            (cli.USAGE, "no such option", ["a.prof", "--nonsense"]),
            (cli.FAILED, "cannot read missing.prof", ["a.prof", "missing.prof"]),
            (cli.FAILED, "cannot read missing.prof", ["--interactive", "missing.prof"]),
            (cli.FAILED, "cannot read cut.prof", ["cut.prof"]),
            (cli.FAILED, "unrecognised format", ["/etc/passwd"]),
        ):
            with self.subTest(args=args):
                self.assert_error(self.sampled("report", *args), status, says)
        with open("/dev/full", "wb") as full:
            done = subprocess.run([support.SAMPLED, "report", "a.prof"], cwd=self.folder, stdout=full, stderr=subprocess.PIPE)
        self.assertEqual((done.returncode, done.stderr.count(b"\n")), (cli.FAILED, 1))
        self.assertIn(b"No space left", done.stderr)

    def test_the_browser_adds_no_counts_to_seconds(self):
        with open(self.path("counts.collapsed"), "w") as file:
            file.write("only_in_counts 5\n")
        with open(self.path("script"), "w") as file:
            file.write("add counts.collapsed\nstats\n")
        with open(self.path("script")) as file:
            done = self.sampled("report", "--interactive", "a.prof", stdin=file)
        text = done.stdout.decode()
        self.assertEqual((done.returncode, done.stderr), (cli.DONE, b""))
        self.assertIn("Failed to load statistics for counts.collapsed: it counts samples, and those before it seconds: they cannot be added\n", text)
        self.assertNotIn("only_in_counts", text)
        self.assertIn("function calls", text, "what was there is there still")

    def test_the_browser_accounts_for_sampling_once_a_file(self):
        with open(self.path("counts.collapsed"), "w") as file:
            file.write("outer;inner 5\n")
        with open(self.path("script"), "w") as file:
            file.write("stats 1\nstats 2\nread counts.collapsed\ncallers 1\nstats 1\n")
        with open(self.path("script")) as file:
            done = self.sampled("report", "--interactive", "counts.collapsed", stdin=file)
        text = done.stdout.decode()
        self.assertEqual((done.returncode, done.stderr), (cli.DONE, b""))
        self.assertEqual((text.count("from samples: "), text.count("frames sampled")), (2, 3), text)

    def test_the_browser_goes_on_after_a_file_that_is_none(self):
        with open(self.path("bad.prof"), "wb") as file:
            file.write(b"{(\3\0\0\0")
        with open(self.path("script"), "w") as file:
            file.write("read bad.prof\nadd bad.prof\nadd .\nstats 1\n")
        with open(self.path("script")) as file:
            done = self.sampled("report", "--interactive", "a.prof", stdin=file)
        self.assertEqual(done.returncode, cli.DONE)
        self.assertEqual(done.stderr.decode().count("sampled: cannot read bad.prof: "), 2)
        self.assertIn("Is a directory", done.stdout.decode())
        self.assertIn("to 1 due to restriction <1>", done.stdout.decode())

    def test_a_terminal_gets_editing_completion_and_history(self):
        master, slave = os.openpty()
        process = subprocess.Popen([support.SAMPLED, "report", "--interactive", "a.prof"], cwd=self.folder, stdin=slave, stdout=slave,
                                   stderr=slave, env=dict(ENVIRONMENT, TERM="xterm"), start_new_session=True)
        os.close(slave)
        text = b""
        seen = 0
        try:
            for typed, expected in ((b"", b"a.prof% "), (b"so\tti\t\n", b"a.prof% "), (b"stat\tleaf 2\n", b"restriction <'leaf'>"),
                                    (b"", b"a.prof% "), (b"\x1b[A\n", b"restriction <'leaf'>"), (b"", b"a.prof% "),
                                    (b"add a.p\t\n", b"a.prof% "), (b"stats 1\n", b"to 1 due to restriction <1>"), (b"", b"a.prof% "), (b"\x04", b"Goodbye.")):
                # The prompt stands there a little before the terminal hands on each key; until then it keeps a ^D for itself.
                support.wait_until(lambda: not typed or not termios.tcgetattr(master)[3] & termios.ICANON, "it reads keys", 20)
                os.write(master, typed)
                while expected not in text[seen:]:
                    self.assertTrue(select.select([master], [], [], 20)[0], (typed, text, seen))
                    text += os.read(master, 65536)
                seen = text.index(expected, seen) + len(expected)
            self.assertEqual(process.wait(20), 0)
        finally:
            if process.poll() is None:
                process.kill()
            process.wait()
            os.close(master)
        self.assertIn(b"Ordered by: internal time", text)
        self.assertEqual(text.count(b"restriction <'leaf'>"), 2)
        self.assertNotIn(b"Failed to load", text)
        last = text.rpartition(b"stats 1")[2]
        self.assertEqual(last.count(b"    a.prof\r\n"), 2, "the file was added")
        self.assertNotIn(b"Ordered by", last)


class Samples(cli.Folder):
    """Profiles of ours: frames instead of calls, and the accounting."""

    def report(self, *args):
        done = self.sampled("report", *args, env=ENVIRONMENT)
        self.assertEqual((done.returncode, done.stderr), (cli.DONE, b""))
        return done.stdout.decode()

    @support.needs_python
    def test_of_a_running_program(self):
        with support.Target(support.newest(), "parked.py") as target:
            done = self.sampled("attach", target.pid, "-d", "0.5", "-f", "pstats", "-o", "a.pstats")
            self.assertEqual(done.returncode, cli.DONE, done.stderr)
        text = self.report("a.pstats")
        self.assertRegex(text, r"\n {9}\d+ frames sampled(?: \(\d+ primitive ones\))? in \d+\.\d{3} seconds\n {9}from samples: ")
        self.assertRegex(text, r"samples taken: [\d,]+")
        self.assertIn(" nsamples  tottime persample cumtime persample filename:lineno(function)\n", text)
        found = json.loads(self.report("a.pstats", "--json"))
        self.assertEqual(found["counts"], "samples")
        self.assertTrue(any(fact.startswith("lost: torn: ") for fact in found["facts"]), found["facts"])
        self.assertAlmostEqual(sum(row["tottime"] for row in found["functions"]), found["tottime"], places=6)

    @unittest.skipUnless(os.path.exists(MAKE_PROFILE), "make browser builds the profiles of known shape")
    def test_shapes(self):
        for shape in ("hostile", "huge", "deep2000", "one", "empty"):
            with self.subTest(shape=shape):
                subprocess.run([MAKE_PROFILE, shape, self.path(shape + ".pstats")], check=True, env=dict(os.environ, FORMAT="pstats"), timeout=120)
                for args in ([], ["--callers"], ["--callees", "--strip-dirs"], ["--sort", "nfl", "--reverse", "--limit", "5"]):
                    text = self.report(shape + ".pstats", *args)
                    self.assertFalse([c for c in text if (c < " " and c != "\n") or "\x7f" <= c < "\xa0" or c in "\u202e\u2028\u2029"])
                self.assertEqual(json.loads(self.report(shape + ".pstats", "--json"))["counts"], "samples")
                list(csv.reader(io.StringIO(self.report(shape + ".pstats", "--csv"), newline=""), strict=True))


if __name__ == "__main__":
    unittest.main()
