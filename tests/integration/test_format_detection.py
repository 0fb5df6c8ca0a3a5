# SPDX-License-Identifier: Apache-2.0
"""Every format that a recording of a real program is written in, given back by content: what is read shows the same functions with the same sums; what
is not read is refused, in one line and by exit status 1. (tests/unit/test_detection.c gives each to each reader.)"""
import json
import os
import unittest

import cli
import support

# Functions are named like the keys of formats in JSON.
PROGRAM = """
import time
def traceEvents(end):
    while time.process_time() < end:
        sum(range(100))
def shared():
    traceEvents(time.process_time() + 0.4)
def frames():
    shared()
def children():
    frames()
children()
"""
READ = {"recording": ".sampled", "pstats": ".pstats", "pprof": ".pb.gz", "speedscope": ".speedscope.json", "firefox": ".firefox.json",
        "chrome": ".trace.json", "callgrind": ".callgrind", "dask": ".dask.json", "collapsed": ".collapsed"}
DRAWN = ("chrome",)  # when what was seen: two samples close to each other are one span, between others is a gap
REFUSED = {"flamegraph": "a page for a browser", "heatmap": "a page for a browser", "svg": "a drawing (SVG)", "dot": "a graph for Graphviz",
           "jsonl": "sampled's JSON Lines", "text": "sampled's text report", "otlp": "unrecognised format"}


class Detection(cli.Folder):
    def functions(self, path):
        done = self.sampled("report", path, "--json")
        self.assertEqual((done.returncode, done.stderr), (cli.DONE, b""), path)
        report = json.loads(done.stdout)
        return report["unit"], {f["function"]: f["cumtime"] for f in report["functions"] if f["function"] in ("traceEvents", "shared", "frames", "children")}

    @support.needs_python
    def test_a_real_recording(self):
        with open(self.path("job.py"), "w") as file:
            file.write(PROGRAM)
        done = self.sampled("run", "-q", "-r", "250", "--record", "r.sampled", "-o", "/dev/null", "-f", "collapsed", "--", *cli.python_for_all().argv, self.path("job.py"))
        self.assertEqual(done.returncode, cli.DONE, done.stderr)
        seconds = self.functions("r.sampled")[1]
        samples = self.sampled("report", "r.sampled", "--value", "samples", "--json")
        samples = {f["function"]: f["cumtime"] for f in json.loads(samples.stdout)["functions"]}
        self.assertEqual(set(seconds), {"traceEvents", "shared", "frames", "children"})
        for name, suffix in READ.items():
            with self.subTest(name):
                self.assertEqual(self.sampled("convert", "r.sampled", "-f", name, "-o", "out" + suffix).returncode, cli.DONE)
                unit, found = self.functions("out" + suffix)
                self.assertEqual(set(found), set(seconds))
                for function, amount in found.items():  # formats round times to the microsecond, a sample
                    due = samples[function] if unit == "samples" else seconds[function]
                    if name == "firefox":  # an interval a sample, whatever was missed before it
                        due = samples[function] / 250
                    if name in DRAWN:
                        self.assertGreater(amount, 0, function)
                    else:
                        self.assertAlmostEqual(amount, due, delta=0.001 * due + 0.001, msg=function)
        for name, what in REFUSED.items():
            with self.subTest(name):
                self.assertEqual(self.sampled("convert", "r.sampled", "-f", name, "-o", "out." + name).returncode, cli.DONE)
                self.assert_error(self.sampled("convert", "out." + name, "-f", "collapsed", "-o", "never"), cli.FAILED, what)

    def test_json_of_another_kind(self):
        """Keys that come too late, or are none: it is said that it is JSON, and what was looked for."""
        for text in (json.dumps({"pad": "x" * 70000, "traceEvents": []}), json.dumps({"name": "traceEvents", "other": ["shared", "frames"]}), "{}"):
            with open(self.path("x.json"), "w") as file:
                file.write(text)
            self.assert_error(self.sampled("report", "x.json"), cli.FAILED, "it is JSON of another kind", "first 64 KiB")

    def test_what_is_written_where(self):
        """A name that tells no format is refused, and so is an output that is an input; the input stays as it is."""
        for name in ("a.collapsed", "b.collapsed"):
            with open(self.path(name), "w") as file:
                file.write("main;work 3\n")
        os.link(self.path("a.collapsed"), self.path("same.collapsed"))
        for args, says in ((("convert", "a.collapsed", "-o", "foo"), "-o foo: its name tells no format (give -f;"),
                           (("convert", "a.collapsed", "-o", "a.collapsed"), "it is the input a.collapsed"),
                           (("convert", "b.collapsed", "a.collapsed", "-o", "./a.collapsed"), "it is the input a.collapsed"),
                           (("convert", "a.collapsed", "-o", "same.collapsed"), "it is the input a.collapsed"),
                           (("diff", "a.collapsed", "b.collapsed", "-f", "svg", "-o", "b.collapsed"), "it is the input b.collapsed")):
            self.assert_error(self.sampled(*args), cli.USAGE, says)
        self.assertEqual(sorted(os.listdir(self.folder)), ["a.collapsed", "b.collapsed", "same.collapsed"])
        with open(self.path("a.collapsed")) as file:
            self.assertEqual(file.read(), "main;work 3\n")
        self.assertEqual(self.sampled("convert", "a.collapsed", "-f", "text", "-o", "foo").returncode, cli.DONE)

    def test_a_recording_without_its_first_block(self):
        """Its rate is not known."""
        with open(os.path.join(os.path.dirname(__file__), "data", "recording-1.sampled"), "rb") as whole, open(self.path("cut.sampled"), "wb") as cut:
            cut.write(whole.read(40))
        done = self.sampled("convert", "cut.sampled", "-f", "text", "-o", "-")
        self.assertEqual(done.returncode, cli.DONE, done.stderr)
        self.assertRegex(done.stdout.decode(), r"rate asked +unknown")

    def test_a_trace_of_microseconds(self):
        """Its times have the unit in which they can be read; for programs they are seconds."""
        for scale, unit in ((1, "microseconds"), (1000, "milliseconds"), (1000000, "seconds")):
            with open(self.path("t.json"), "w") as file:
                json.dump([{"ph": "X", "pid": 1, "tid": 1, "name": name, "ts": start * scale, "dur": duration * scale}
                           for name, start, duration in (("a", 0, 27), ("b", 1, 2.5))], file)
            text = self.sampled("report", "t.json").stdout.decode()
            self.assertIn("3 frames sampled in 27.000 %s\n" % unit, text)
            self.assertRegex(text, r"\n +1 +2\.500 +2\.500 +2\.500 +2\.500 b\n")
            functions = {f["function"]: f["tottime"] for f in json.loads(self.sampled("report", "t.json", "--json").stdout)["functions"]}
            self.assertAlmostEqual(functions["b"], 2.5e-6 * scale)


if __name__ == "__main__":
    unittest.main()
