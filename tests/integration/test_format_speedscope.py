# SPDX-License-Identifier: Apache-2.0
"""speedscope's own page, its schema, and our reader take what we write."""
import collections
import json
import os
import shutil
import subprocess
import unittest

import cli
import shapes
import support

VALIDATE = """
const [modules, ...files] = process.argv.slice(1);
const {createRequire} = require("module"), fs = require("fs"), require2 = createRequire(modules + "/x.js");
const Ajv = require2("ajv").default;
const schema = JSON.parse(fs.readFileSync(modules + "/speedscope/dist/release/file-format-schema.json"));
const check = new Ajv({strict: false}).compile(schema);
for (const file of files)
    if (!check(JSON.parse(fs.readFileSync(file))))
        console.log(file, JSON.stringify(check.errors).slice(0, 2000));
"""


def imported(*files):
    """What speedscope's page makes of files."""
    modules = shapes.consumer("speedscope", "node_modules")
    script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "speedscope_read.mjs")
    done = subprocess.run(["node", script, modules, shapes.need_chromium(), *files], stdout=subprocess.PIPE, check=True, timeout=550)
    return json.loads(done.stdout)


class Speedscope(shapes.Shapes):
    FORMAT, SUFFIX = "speedscope", ".speedscope.json"

    def validate(self, *files):
        modules = shapes.consumer("speedscope", "node_modules")
        if not shutil.which("node"):
            self.skipTest("node is not installed")
        done = subprocess.run(["node", "-e", VALIDATE, modules, *files], stdout=subprocess.PIPE, check=True, timeout=300)
        self.assertEqual(done.stdout.decode(), "")

    def test_schema(self):
        self.validate(*self.files.values())

    def check_page(self, group, kind):
        expected = {}
        for tid, lines in self.threads(kind).items():
            expected[tid] = round(sum(map(shapes.wall_ms, lines)) * 1e6)
        self.assertEqual(group["problems"], [])
        if not expected:
            self.assertEqual([p["total"] for p in group["profiles"]], [0])
            return
        self.assertEqual(sorted(p["total"] for p in group["profiles"]), sorted(expected.values()))
        for profile in group["profiles"]:
            # The main thread's id in "hostile" is that of the process that wrote it.
            tid = next((tid for tid in expected if str(tid) in profile["name"]), None) or next(iter(set(expected) - {4712, 4713}))
            lines = self.threads(kind)[tid]
            self.assertEqual(profile["unit"], "nanoseconds")
            self.assertEqual(profile["total"], expected[tid])
            self.assertEqual(profile["deepest"], max(len(line.frames) for line in lines))
            own, total = collections.Counter(), collections.Counter()
            for line in lines:
                for frame in set(line.frames):
                    total[frame] += round(shapes.wall_ms(line) * 1e6)
                if line.frames:
                    own[line.frames[-1]] += round(shapes.wall_ms(line) * 1e6)
            if kind == "hostile":  # collapsed stacks replace what they cannot hold
                self.assertEqual(sorted(frame[3] for frame in profile["frames"] if frame[3]), sorted(own.values()))
                continue
            found = {(name, file, line): (self_, all_) for name, file, line, self_, all_ in profile["frames"]}
            wanted = {frame: (own[frame], total[frame]) for frame in total}
            if kind == "native":  # the format has no module and no address: where there is no source line, the name alone is the same
                found, wanted = ({frame[0].split("+")[0].split(" (")[0]: values for frame, values in of.items()} for of in (found, wanted))
            self.assertEqual(found, wanted)

    def test_page(self):
        groups = imported(*self.files.values())
        for kind, path in self.files.items():
            with self.subTest(kind=kind):
                self.check_page(groups[path], kind)

    def test_page_reads_our_collapsed_stacks(self):
        for kind in ("one", "hostile"):
            path = shapes.make(kind, "collapsed", self.path(kind + ".collapsedstack.txt"))
            group = imported(path)[path]
            self.assertEqual([p["total"] for p in group["profiles"]], [sum(line.count for line in self.lines[kind])])

    def test_comes_back(self):
        for kind, path in self.files.items():
            with self.subTest(kind=kind):
                done = self.sampled("convert", path, "-f", "collapsed", "-o", "-")
                self.assertEqual(done.returncode, cli.DONE, done.stderr)
                with open(shapes.make(kind, "collapsed", self.path("expected")), "rb") as file:
                    expected = file.read()
                if kind == "hostile":  # a process id, and nothing else, differs between two runs of make_profile
                    lines = [[(line.count, line.frames) for line in support.parse_collapsed(text)] for text in (done.stdout, expected)]
                    self.assertEqual(sorted(lines[0]), sorted(lines[1]))
                elif kind == "native":  # the format has no module: what is read back is a file without a line
                    self.assertEqual(done.stdout.replace(b":0)", b")"), expected)
                else:
                    self.assertEqual(done.stdout, expected)

    @support.needs_python
    def test_real_program(self):
        path, other = self.path("real.speedscope.json"), self.path("real.collapsed")
        with support.Target(support.newest(), "busy.py") as target:
            done = self.sampled("attach", target.pid, "-d", "1", "-f", "speedscope", "-o", path, "-f", "collapsed", "-o", other)
        self.assertEqual(done.returncode, cli.DONE, done.stderr)
        self.validate(path)
        with open(path, "rb") as file:
            told = json.load(file)
        count = sum(line.count for line in support.read_collapsed(other))
        self.assertEqual(sum(sum(p["counts"]) for p in told["profiles"]), count)
        self.assertEqual(told["sampled"]["in_profile"], count)
        group = imported(path)[path]
        self.assertEqual(group["problems"], [])
        self.assertEqual(sorted(p["total"] for p in group["profiles"]), sorted(sum(p["weights"]) for p in told["profiles"]))


class Order(cli.Folder):
    """speedscope opens in the order of time, so rows are runs, not stacks."""

    def rows(self, path):
        with open(self.path(path), "rb") as file:
            told = json.load(file)
        return told["name"], [p["samples"] for p in told["profiles"] if not p["sampled"].get("cpu")]

    @support.needs_python
    def test_of_a_program_and_of_its_recording(self):
        with support.Target(support.newest(), "busy.py") as target:
            done = self.sampled("attach", target.pid, "-d", "1", "-f", "speedscope", "-o", "a.json", "--record", "r.sampled")
        self.assertEqual(done.returncode, cli.DONE, done.stderr)
        done = self.sampled("convert", "r.sampled", "-f", "speedscope", "-o", "b.json")
        self.assertEqual(done.returncode, cli.DONE, done.stderr)
        for path in ("a.json", "b.json"):
            name, threads = self.rows(path)
            self.assertNotIn("no time order", name)
            self.assertTrue(any(len(rows) > len({tuple(row) for row in rows}) for rows in threads), "each stack has one row: a tree")
            for rows in threads:  # what goes on is one row
                self.assertTrue(all(one != next_ for one, next_ in zip(rows, rows[1:])))

    def test_without_order_says_so(self):
        with open(self.path("in.collapsed"), "w") as file:
            file.write("a (a.py:1);b (a.py:2) 2\na (a.py:1) 1\n")
        done = self.sampled("convert", "in.collapsed", "-f", "speedscope", "-o", "a.json")
        self.assertEqual(done.returncode, cli.DONE, done.stderr)
        self.assertIn("no time order", self.rows("a.json")[0])


class Others(cli.Folder):
    """Files as other programs write them."""

    def read(self, text):
        with open(self.path("in.json"), "w") as file:
            file.write(text)
        done = self.sampled("convert", "in.json", "-f", "collapsed", "-o", "-")
        self.assertEqual(done.returncode, cli.DONE, done.stderr)
        return done.stdout.decode()

    def test_py_spy(self):
        """The frames come behind the stacks, times are seconds."""
        text = """{"$schema":"https://www.speedscope.app/file-format-schema.json","profiles":[{"type":"sampled",
            "name":"Process 7 Thread 8 \\"MainThread\\"","unit":"seconds","startValue":0.0,"endValue":0.03,"samples":[[0,1],[0,1],[0]],
            "weights":[0.01,0.01,0.01]}],"shared":{"frames":[{"name":"main","file":"a.py","line":3,"col":null},{"name":"work",
            "file":"b.py","line":9,"col":null}]},"activeProfileIndex":null,"exporter":"py-spy@0.4.0","name":"py-spy profile"}"""
        self.assertEqual(self.read(text).split("\n")[:2], [
            'thread ? "Process 7 Thread 8 "MainThread"";main (a.py:3);work (b.py:9) 2',
            'thread ? "Process 7 Thread 8 "MainThread"";main (a.py:3) 1'])

    def test_evented(self):
        """As speedscope itself exports: stretches of time between events, which are no samples: their times are kept."""
        text = """{"exporter":"speedscope@1.25.0","name":"x","activeProfileIndex":0,
            "$schema":"https://www.speedscope.app/file-format-schema.json","shared":{"frames":[{"name":"a"},{"name":"b"}]},
            "profiles":[{"type":"evented","name":"t","unit":"milliseconds","startValue":0,"endValue":9,"events":[
            {"type":"O","frame":0,"at":0},{"type":"O","frame":1,"at":2},{"type":"C","frame":1,"at":7},{"type":"C","frame":0,"at":9}]}]}"""
        self.assertEqual(self.read(text), '# value: wall, in nanoseconds\nthread ? "t";a;b 5000000\nthread ? "t";a 4000000\n')

    def test_malformed(self):
        for text, says in (
            ('{"$schema":"https://www.speedscope.app/file-format-schema.json"', "premature"),
            ('{"shared":{"frames":[]}}', "no \"profiles\""),
            ('{"shared":{"frames":[]},"profiles":[{"samples":[[0]],"weights":[1]}]}', "frame 0 of 0"),
            ('{"shared":{"frames":[{"name":"a"}]},"profiles":[{"samples":[[0]],"weights":[]}]}', "1 samples and 0 weights"),
        ):
            with open(self.path("in.json"), "w") as file:
                file.write(text)
            self.assert_error(self.sampled("convert", "in.json", "-f", "collapsed", "-o", "-"), cli.FAILED, says)


if __name__ == "__main__":
    unittest.main()
