# SPDX-License-Identifier: Apache-2.0
"""The text of perf script of a real program, folded by us as stackcollapse-perf.pl does: its command and frames, root first."""
import collections
import json
import re
import shutil
import subprocess
import unittest

import cli
import support

PROGRAM = "import time\ndef f(n): return n if n < 2 else f(n - 1) + f(n - 2)\nwhile time.process_time() < 1: f(15)\n"


def expected(text):
    """{(command, frames root first): [samples, period]} by the rules of the text, in as few words as they take."""
    found = collections.defaultdict(lambda: [0, 0])
    for sample in re.split(r"\n\s*\n", text):
        lines = [line for line in sample.split("\n") if line and not line.startswith("#")]
        head = lines and re.match(r"(\S.*?)\s+(?:\d+/)?\d+ .*?\d+\.\d+:\s+(\d+) (\S+):\s*$", lines[0])
        if head:
            frames = [re.match(r"\s*[0-9a-f]+ (.+) \((.*)\)$", line).groups() for line in lines[1:]]
            key = head.group(1), tuple((re.sub(r"\+0x[0-9a-f]+$", "", name), module) for name, module in reversed(frames))
            found[key][0] += 1
            found[key][1] += int(head.group(2))
    return found


def got(lines):
    found = collections.Counter()
    for line in lines:
        found[line.thread, tuple((name, file) for name, file, _ in line.frames)] += line.count
    return found


def cleaned(frames):
    """As a collapsed line shows them."""
    return tuple((name.replace(";", ":"), "" if module in ("[unknown]", "inlined") else module.replace(";", ":")) for name, module in frames)


@unittest.skipUnless(shutil.which("perf"), "perf is not installed")
@support.needs_python
class Perf(cli.Folder):
    def record(self, *options):
        python = cli.python_for_all()
        with open(self.path("program.py"), "w") as file:
            file.write(PROGRAM)
        done = subprocess.run(["perf", "record", "-q", "-F", "499", "-o", "perf.data", *options, "--", *python.argv, "program.py"],
                              cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=120)
        if done.returncode != 0:
            self.skipTest("perf record: %s" % done.stdout.decode(errors="replace").strip()[-200:])

    def script(self, *options):
        done = subprocess.run(["perf", "script", "-i", "perf.data", *options], cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                              timeout=120, check=True)
        with open(self.path("perf.txt"), "wb") as file:
            file.write(done.stdout)
        return done.stdout.decode(errors="replace")

    def convert(self, *args):
        done = self.sampled("convert", "perf.txt", *args)
        self.assertEqual((done.returncode, done.stderr), (cli.DONE, b""))
        return done.stdout

    def test_counts_and_time(self):
        self.record("-g", "-e", "cpu-clock")
        for options in ((), ("-F", "comm,pid,tid,time,period,event,ip,sym,symoff,dso")):
            want = expected(self.script(*options))
            self.assertGreater(sum(samples for samples, _ in want.values()), 200)
            lines = support.parse_collapsed(self.convert("-f", "collapsed", "-o", "-"))
            counts = collections.Counter()
            for (command, frames), (samples, _) in want.items():
                counts[command, cleaned(frames)] += samples
            self.assertEqual(got(lines), counts)
            profile = json.loads(self.convert("-f", "jsonl", "-o", "-").split(b"\n")[0])
            self.assertEqual(profile["weight"], "cpu")
            self.assertGreater(profile["duration_ns"], 5e8)
        # The period of a clock is nanoseconds: that is the weight.
        own = re.findall(rb'"self":\{[^}]*"cpu":(\d+)', self.convert("-f", "jsonl", "-o", "-"))
        self.assertEqual(sum(map(int, own)), sum(period for _, period in want.values()))

    def test_windows_add_up(self):
        self.record("-g", "-e", "cpu-clock")
        self.script()
        whole = support.parse_collapsed(self.convert("-f", "collapsed", "-o", "-"))
        first = support.parse_collapsed(self.convert("-f", "collapsed", "-o", "-", "--to", "0.4"))
        rest = support.parse_collapsed(self.convert("-f", "collapsed", "-o", "-", "--from", "0.4"))
        self.assertTrue(first and rest)
        self.assertEqual(got(first) + got(rest), got(whole))

    def test_without_call_chains(self):
        self.record("-e", "cpu-clock")
        samples = len(self.script().splitlines())
        lines = support.parse_collapsed(self.convert("-f", "collapsed", "-o", "-"))
        self.assertEqual(sum(line.count for line in lines), samples)
        self.assertTrue(all(len(line.frames) == 1 for line in lines))
