# SPDX-License-Identifier: Apache-2.0
"""JSON Lines, added up by jq."""
import json
import os
import shutil
import subprocess
import unittest

import cli
import support

MAKE_PROFILE = os.path.join(os.path.dirname(support.SAMPLED), "tests", "browser", "make_profile")

# One line: samples as the first line says them, as its facts do, as all nodes' own, as the roots' totals; whether totals hold.
SUMS = """
[inputs] | .[0] as $p | map(select(.type == "node")) as $nodes
| [$p.samples, $p.facts.in_profile, ($nodes | map(.self.samples // 0) | add // 0),
   ($nodes | map(select(.id == 0).total.samples // 0) | add // 0),
   ($nodes | map(.self[$p.weight] // 0) | add // 0), ($nodes | map(select(.id == 0).total[$p.weight] // 0) | add // 0),
   ($nodes | all((.self.samples // 0) <= (.total.samples // 0))), ($nodes | all(.parent == null or .parent < .id)),
   ((map(select(.type == "frame").id)) | . == [range(length)])]
"""


@unittest.skipUnless(shutil.which("jq"), "jq is not installed")
class JsonLines(cli.Folder):
    def jq(self, program, name, *options):
        done = subprocess.run(["jq", "-cn", *options, program, name], stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=self.folder, timeout=300)
        self.assertEqual((done.returncode, done.stderr), (0, b""))
        return done.stdout.decode()

    def check(self, name):
        said, facts, own, roots, weight, roots_weight, *good = json.loads(self.jq(SUMS, name))
        self.assertEqual((facts, own, roots), (said, said, said), name)
        self.assertEqual(weight, roots_weight)
        self.assertEqual(good, [True, True, True])
        return said

    @support.needs_python
    def test_real_program(self):
        with support.Target(support.newest(), "busy.py", 4) as target:
            done = self.sampled("attach", target.pid, "-d", "2", "-f", "collapsed", "-f", "jsonl", "-o", "out")
        self.assertEqual(done.returncode, cli.DONE, done.stderr)
        lines = support.read_collapsed(self.path("out.collapsed"))
        self.assertEqual(self.check("out.jsonl"), sum(line.count for line in lines))
        # The example of docs/JSONL.md: a function's own time is what the samples that end in it have.
        with open(os.path.join(support.TOP, "docs", "JSONL.md")) as file:
            program = file.read().split("jq -rn '")[1].split("'")[0]
        shown = [line.split("\t") for line in self.jq(program, "out.jsonl", "-r").splitlines()]
        names = {name for _, name in shown}
        self.assertTrue({"leaf", "descend"} & names, shown)
        own = json.loads(self.jq('[inputs] | (map(select(.type == "frame" and .function == "leaf").id)) as $f'
                                 ' | map(select(.type == "node" and (.frame as $x | $f | index($x))).self.samples // 0) | add', "out.jsonl"))
        self.assertEqual(own, sum(line.count for line in lines if line.frames and line.frames[-1][0] == "leaf"))

    def test_shapes(self):
        if not os.access(MAKE_PROFILE, os.X_OK):
            self.skipTest("make browser has not built make_profile")
        for kind in ("hostile", "huge", "deep2000", "one", "empty"):
            subprocess.run([MAKE_PROFILE, kind, self.path(kind)], check=True, env={**os.environ, "FORMAT": "jsonl"})
            self.check(kind)
            with open(self.path(kind)) as file:
                for line in file:
                    json.loads(line)
