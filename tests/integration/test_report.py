# SPDX-License-Identifier: Apache-2.0
"""sampled report: the same files read by every Python's own pstats, line by line; the browser against `python -m pstats`."""
import json
import os
import re
import shutil
import subprocess
import tempfile
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


if __name__ == "__main__":
    unittest.main()
