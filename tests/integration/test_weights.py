# SPDX-License-Identifier: Apache-2.0
"""Sums and shares before and after: for each pair of formats that hold stacks and weights, a profile keeps its weight and what each stack has of
it; counts are written where samples are meant only, and what cannot be added is refused."""
import collections
import json
import os
import unittest

import cli
import support

TREES = ("collapsed", "dask", "speedscope", "pprof")
GRAPHS = ("pstats", "callgrind")
SUFFIXES = {"collapsed": ".collapsed", "dask": ".dask.json", "speedscope": ".speedscope.json", "pprof": ".pb.gz", "pstats": ".pstats",
            "callgrind": ".callgrind"}
ROWS = {"$schema": "https://www.speedscope.app/file-format-schema.json", "shared": {"frames": [{"name": "a"}, {"name": "b"}]},
        "profiles": [{"type": "sampled", "name": "t", "unit": "milliseconds", "startValue": 0, "endValue": 2750, "samples": [[0], [0, 1]],
                      "weights": [250, 2500]}]}


class Weights(cli.Folder):
    def write(self, name, content):
        with open(self.path(name), "w") as file:
            file.write(content if isinstance(content, str) else json.dumps(content))
        return self.path(name)

    def convert(self, source, target, *options):
        done = self.sampled("convert", source, "-o", target, *options)
        self.assertEqual((done.returncode, done.stderr), (cli.DONE, b""))
        return self.path(target)

    def stacks(self, path, *options):
        """{frames: weight}, and its unit, by JSON Lines."""
        self.convert(path, "out.jsonl", *options)
        frames, parents, found = {}, {}, collections.Counter()
        with open(self.path("out.jsonl")) as file:
            for item in map(json.loads, file):
                if item["type"] == "profile":
                    weight = item["weight"]
                    unit = next(value["unit"] for value in item["values"] if value["name"] == weight)
                elif item["type"] == "frame":
                    frames[item["id"]] = item["function"]
                elif item["type"] == "node":
                    parents[item["id"]] = () if item["parent"] is None else parents[item["parent"]] + (frames[item["frame"]],)
                    found[parents[item["id"]]] += item["self"].get(weight, 0)
        return {stack: value for stack, value in found.items() if value}, unit

    def functions(self, path):
        done = self.sampled("report", path, "--json")
        self.assertEqual(done.returncode, cli.DONE, done.stderr)
        report = json.loads(done.stdout)
        return {f["function"]: (round(f["tottime"], 6), round(f["cumtime"], 6)) for f in report["functions"]}, report["unit"]

    def check_pairs(self, path):
        before = self.stacks(path)
        graph = self.functions(path)
        for first in TREES:
            one = self.convert(path, "one" + SUFFIXES[first])
            self.assertEqual(self.stacks(one), before, first)
            for second in TREES:
                two = self.convert(one, "two" + SUFFIXES[second])
                self.assertEqual(self.stacks(two), before, (first, second))
            for second in GRAPHS:
                two = self.convert(one, "two" + SUFFIXES[second])
                self.assertEqual(self.functions(two), graph, (first, second))
                for third in GRAPHS:
                    three = self.convert(two, "three" + SUFFIXES[third])
                    self.assertEqual(self.functions(three), graph, (first, second, third))

    def test_rows_that_weigh_differently(self):
        path = self.write("w.speedscope.json", ROWS)
        self.assertEqual(self.stacks(path), ({("a",): 250000000, ("a", "b"): 2500000000}, "nanoseconds"))
        self.check_pairs(path)
        with open(self.convert(path, "w.collapsed")) as file:
            self.assertEqual(file.read(), '# value: wall, in nanoseconds\nthread ? "t";a;b 2500000000\nthread ? "t";a 250000000\n')

    def test_bytes(self):
        self.check_pairs(self.write("m.collapsed", "# mode: memory\nP1;T0:1;a.py:f:3 1000\nP1;T0:1;a.py:f:3;a.py:g:4 24\n"))

    def test_periods_of_perf(self):
        path = self.write("p.perf", "x 1/1 100.000001:          1 cycles: \n\t 400 start (/bin/x)\n\n"
                                    "x 1/1 100.001001:    1000000 cycles: \n\t 500 work (/bin/x)\n\n")
        before = self.stacks(path)
        self.assertEqual(before, ({("start",): 1, ("work",): 1000000}, "count"))
        for name in TREES:
            self.assertEqual(self.stacks(self.convert(path, "p" + SUFFIXES[name])), before, name)
        for name in ("collapsed", "dask"):
            self.assertEqual(self.functions(self.path("p" + SUFFIXES[name])), self.functions(path), name)

    def test_samples_stay_counts(self):
        path = self.write("c.collapsed", "a;b 3\na 2\n")
        self.check_pairs(path)
        rows = dict(ROWS, profiles=[dict(ROWS["profiles"][0], weights=[10, 10])])
        with open(self.convert(self.write("even.speedscope.json", rows), "even.collapsed")) as file:
            self.assertEqual(file.read(), 'thread ? "t";a 1\nthread ? "t";a;b 1\n')

    def test_calls_and_spans_have_their_time(self):
        spans = [{"ph": "X", "pid": 1, "tid": 1, "name": "a", "ts": 0, "dur": 2750}, {"ph": "X", "pid": 1, "tid": 1, "name": "b", "ts": 100, "dur": 2500}]
        session = {"start_time": 1.0, "duration": 1.0, "sample_count": 2, "start_call_stack": [], "target_description": "x", "cpu_time": 1.0,
                   "frame_records": [[["MainThread\0<thread>\x001", "a\0a.py\x001"], 0.00025], [["MainThread\0<thread>\x001", "a\0a.py\x001", "b\0a.py\x002"], 0.0025]]}
        gecko = {"meta": {"interval": 1, "processType": 0, "preprocessedProfileVersion": 50}, "threads": [
            {"name": "t", "pid": 1, "tid": 1, "stringArray": ["a", "b"], "frameTable": {"length": 2, "func": [0, 1]},
             "funcTable": {"length": 2, "name": [0, 1]}, "stackTable": {"length": 2, "frame": [0, 1], "prefix": [None, 0]},
             "samples": {"length": 2, "stack": [0, 1], "time": [1, 2], "weight": [0.25, 2.5], "weightType": "tracing-ms"}}]}
        for name, content in (("trace.json", {"traceEvents": spans}), ("s.pyisession", session), ("gecko.json", gecko)):
            with self.subTest(name):
                path = self.write(name, content)
                self.assertEqual(self.stacks(path), ({("a",): 250000, ("a", "b"): 2500000}, "nanoseconds"))
                self.check_pairs(path)

    def test_value_chooses(self):
        path = self.convert(self.write("w.speedscope.json", ROWS), "w.pb.gz")
        for name in TREES:
            chosen = self.convert(path, "chosen" + SUFFIXES[name], "--value", "samples")
            self.assertEqual(self.stacks(chosen)[0], {("a",): 1, ("a", "b"): 1}, name)
        done = self.sampled("convert", path, "-o", "x.collapsed", "--value", "Ir")
        self.assertEqual(done.returncode, cli.USAGE)
        self.assertIn(b"it has no value Ir; its values: records wall", done.stderr)

    def test_what_cannot_be_added_is_refused(self):
        counts, time = self.write("c.collapsed", "a;only_in_counts 100\n"), self.write("w.speedscope.json", ROWS)
        done = self.sampled("convert", counts, time, "-o", "both.collapsed")
        self.assertEqual(done.returncode, cli.USAGE)
        self.assertIn(b"it counts wall, in nanoseconds, and those before it samples: they cannot be added", done.stderr)
        both = self.convert(counts, "both.collapsed", time, "--value", "samples")
        with open(both) as file:
            self.assertEqual(file.read(), 'a;only_in_counts 100\nthread ? "t";a 1\nthread ? "t";a;b 1\n')
        graphs = [self.convert(counts, "c.pstats"), self.convert(time, "w.pstats")]
        self.assertEqual(self.sampled("report", *graphs).returncode, cli.USAGE)


if __name__ == "__main__":
    unittest.main()
