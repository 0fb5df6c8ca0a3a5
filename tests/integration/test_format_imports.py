# SPDX-License-Identifier: Apache-2.0
"""Files of other profilers, written by these (tests/consumers/setup-recorders; Tachyon, CPython 3.15's own), are read to the totals that their own
tools show of them."""
import collections
import gzip
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

import cli
import shapes
import support
from test_format_speedscope import imported
from test_format_tachyon import tachyon

PROGRAM = """
import threading, time
def leaf():
    return sum(i * i for i in range(500))
def inner(n):
    return leaf() if n == 0 else inner(n - 1)
def work(n):
    for _ in range(n):
        inner(3)
def main():
    other = threading.Thread(target=work, args=(40,), name="helper")
    other.start()
    work(60)
    time.sleep(0.05)
    other.join()
main()
"""


class Imports(cli.Folder):
    def setUp(self):
        super().setUp()
        with open(self.path("program.py"), "w") as file:
            file.write(PROGRAM)

    def recorder(self, name):
        return shapes.consumer("recorders", "bin", name)

    def run_tool(self, *argv, **extra):
        done = subprocess.run(argv, cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=300, **extra)
        self.assertEqual(done.returncode, 0, done.stdout.decode()[-2000:])
        return done.stdout.decode()

    def convert(self, *args):
        done = self.sampled("convert", *args)
        self.assertEqual(done.returncode, cli.DONE, done.stderr)
        return done.stdout

    def functions(self, path):
        """name: (self s, total s), of report."""
        done = self.sampled("report", path, "--json")
        self.assertEqual(done.returncode, cli.DONE, done.stderr)
        told = json.loads(done.stdout)
        sums = collections.defaultdict(lambda: [0, 0])
        for function in told["functions"]:
            for place, key in enumerate(("tottime", "cumtime")):
                sums[function["function"]][place] += function[key]
        return sums


class VizTracer(Imports):
    def record(self):
        self.run_tool(self.recorder("viztracer"), "-o", "viz.json", "--quiet", "program.py")

    def test_calls_and_times(self):
        """Each call of a function is counted, and time is what the events say."""
        self.record()
        with open(self.path("viz.json"), "rb") as file:
            events = [event for event in json.load(file)["traceEvents"] if event["ph"] == "X"]
        found = self.functions("viz.json")
        text = self.convert("viz.json", "-f", "collapsed", "-o", "-")  # calls are no samples: it has the time
        own = sum(line.count for line in support.parse_collapsed(text))
        self.assertTrue(text.startswith(b"# value: wall, in nanoseconds\n"), text[:80])
        self.assertAlmostEqual(own / 1e9, sum(seconds for seconds, _ in found.values()), places=5)
        text = self.convert("viz.json", "-f", "collapsed", "-o", "-", "--value", "samples")
        self.assertIn(b"helper", text)
        calls = collections.Counter()
        for line in support.parse_collapsed(text):
            calls[line.frames[-1][0]] += line.count
        for name in ("leaf", "work"):
            mine = [event for event in events if event["name"].startswith(name + " (")]
            self.assertEqual(calls[name], len(mine))
            self.assertAlmostEqual(found[name][1], sum(event["dur"] for event in mine) / 1e6, places=5)
        self.assertEqual(calls["leaf"], 100)
        self.assertEqual(calls["inner"], 400)

    def test_as_speedscope_reads_it(self):
        """speedscope's own reader of such files finds the same self and total times."""
        self.record()
        group = imported(self.path("viz.json"))[self.path("viz.json")]
        self.convert("viz.json", "-f", "speedscope", "-o", "ours.json")
        ours = imported(self.path("ours.json"))[self.path("ours.json")]

        theirs = sum(frame[3] for profile in group["profiles"] for frame in profile["frames"])
        mine = sum(frame[3] for profile in ours["profiles"] for frame in profile["frames"]) / 1e3
        self.assertAlmostEqual(theirs, mine, delta=theirs * 0.001)

    def test_packed(self):
        self.record()
        with open(self.path("viz.json"), "rb") as file, gzip.open(self.path("viz.json.gz"), "wb") as packed:
            shutil.copyfileobj(file, packed)
        self.assertEqual(self.convert("viz.json", "-f", "collapsed", "-o", "-"), self.convert("viz.json.gz", "-f", "collapsed", "-o", "-"))


class PySpy(Imports):
    def test_begins_and_ends(self):
        with open(self.path("busy.py"), "w") as file:
            file.write("import time\ndef spin():\n    end = time.time() + 2\n    while time.time() < end:\n        pass\nspin()\n")
        done = subprocess.run([self.recorder("py-spy"), "record", "-f", "chrometrace", "-r", "50", "-o", "spy.json", "--", sys.executable, "busy.py"],
                              cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=120)
        if done.returncode or not os.path.exists(self.path("spy.json")):
            self.skipTest("py-spy does not run here: " + done.stdout.decode()[-200:])
        with open(self.path("spy.json"), "rb") as file:
            events = json.load(file)
        stack, own = [], collections.Counter()
        before = 0
        for event in events:  # of one thread
            if stack:
                own[stack[-1]] += event["ts"] - before
            before = event["ts"]
            if event["ph"] == "B":
                stack.append(event["name"])
            else:
                self.assertEqual(stack.pop(), event["name"])
        found = self.functions("spy.json")
        for name, us in own.items():
            self.assertAlmostEqual(found[name][0], us / 1e6, places=6)


class Pyinstrument(Imports):
    def test_session(self):
        """Its own pstats of the session has the same times."""
        tool = self.recorder("pyinstrument")
        self.run_tool(tool, "-r", "session", "-i", "0.0005", "-o", "a.pyisession", "program.py")
        self.run_tool(tool, "--load", "a.pyisession", "-r", "json", "--show-all", "-o", "their.json")
        with open(self.path("a.pyisession"), "rb") as file:
            session = json.load(file)
        found = self.functions("a.pyisession")
        self.assertAlmostEqual(sum(own for own, _ in found.values()), sum(time for _, time in session["frame_records"]), places=6)
        total = collections.Counter()
        with open(self.path("their.json"), "rb") as file:
            todo = [json.load(file)["root_frame"]]
        while todo:
            frame = todo.pop()
            if frame["function"] == "work":
                total["work"] += frame["time"]
            todo.extend(frame["children"])
        self.assertAlmostEqual(found["work"][1], total["work"], places=4)
        # A record has the time that has passed since the one before, be it a thousand intervals: what has one number has the time.
        lines = support.parse_collapsed(self.convert("a.pyisession", "-f", "collapsed", "-o", "-"))
        self.assertAlmostEqual(sum(line.count for line in lines) / 1e9, sum(time for _, time in session["frame_records"]), places=5)
        # In the order of time: the records last as long as their samples stand for.
        self.convert("a.pyisession", "-f", "speedscope", "-o", "order.json")
        with open(self.path("order.json"), "rb") as file:
            told = json.load(file)
        self.assertNotIn("no time order", told["name"])

    def test_other_json_is_refused(self):
        self.run_tool(self.recorder("pyinstrument"), "-r", "json", "-o", "a.json", "program.py")
        self.assert_error(self.sampled("convert", "a.json", "-f", "text", "-o", "-"), cli.FAILED, "pyinstrument -r session")


class Austin(Imports):
    @support.needs_python
    def test_binary_file_is_what_its_text_is(self):
        """mojo2austin makes text of it, which is read to the same bytes."""
        austin = self.recorder("austin")
        root = None
        if subprocess.run([austin, "--version"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode:
            _, root, why = tachyon()  # a newer C library than this machine's: that of the root
            if not root:
                self.skipTest("austin does not run here, and " + (why or "there is no root with a newer C library"))
            folder = tempfile.mkdtemp(dir=os.path.join(root, "tmp"))
            self.addCleanup(shutil.rmtree, folder)
            shutil.copy(austin, folder)
            shutil.copy(self.path("program.py"), folder)
            inside = folder[len(root):]
            script = 'mount --bind /proc "$0/proc" && exec chroot "$0" sh -c "cd $1 && ./austin -i 1ms -o a.mojo python3.14 program.py"'
            done = subprocess.run(["unshare", "-m", "--propagation", "private", "sh", "-c", script, root, inside], stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, env={**os.environ, "AUSTIN_NO_LOGGING": "1"}, timeout=120, cwd="/")
            if not os.path.exists(os.path.join(folder, "a.mojo")):
                self.skipTest("austin does not run in the root: " + done.stdout.decode(errors="replace")[-200:])
            shutil.copy(os.path.join(folder, "a.mojo"), self.path("a.mojo"))
        else:
            self.run_tool(austin, "-i", "1ms", "-o", "a.mojo", sys.executable, "program.py", env={**os.environ, "AUSTIN_NO_LOGGING": "1"})
        self.run_tool(self.recorder("mojo2austin"), "a.mojo", "a.austin")
        for style in ("collapsed", "jsonl"):
            ours, theirs = (self.convert(path, "-f", style, "-o", "-") for path in ("a.mojo", "a.austin"))
            if style == "jsonl":  # its head has the program's own words of each format
                ours, theirs = ([line for line in text.splitlines() if b'"node"' in line] for text in (ours, theirs))
            self.assertEqual(ours, theirs)


class Tachyon(Imports):
    def replay(self):
        command, root, why = tachyon()
        if not command:
            self.skipTest(why)
        folder = tempfile.mkdtemp(dir=os.path.join(root, "tmp") if root else None)
        self.addCleanup(shutil.rmtree, folder)
        shutil.copy(self.path("program.py"), folder)
        inside = folder[len(root):]
        module = command + ["-m", "profiling.sampling"]
        with open(os.path.join(folder, "program.py"), "a") as file:
            file.write("for _ in range(30):\n    main()\n")
        self.run_tool(*module, "run", "-a", "--binary", "-o", inside + "/a.bin", inside + "/program.py")
        for kind in ("gecko", "jsonl", "collapsed", "pstats"):
            self.run_tool(*module, "replay", "--" + kind, "-o", inside + "/a." + kind, inside + "/a.bin")
            shutil.copy(os.path.join(folder, "a." + kind), self.path("a." + kind))

    def test_gecko_and_jsonl_hold_what_its_own_files_hold(self):
        """Of one recording: --gecko against --collapsed, --jsonl against --pstats."""
        self.replay()
        # Gecko keeps the functions' lines in a table by function: what both hold is who called whom.
        stacks = []
        for path in ("a.gecko", "a.collapsed"):
            sums = collections.Counter()
            for line in support.parse_collapsed(self.convert(path, "-f", "collapsed", "-o", "-", "--strip-dirs")):
                sums[tuple(frame[0] for frame in line.frames)] += line.count
            stacks.append(sums)
        self.assertGreater(sum(stacks[0].values()), 50)
        self.assertEqual(stacks[0], stacks[1])
        ours, theirs = self.functions("a.jsonl"), self.functions("a.pstats")
        self.assertAlmostEqual(sum(one[0] for one in ours.values()), sum(one[0] for one in theirs.values()), places=6)
        for name in ("leaf", "main", "<GC>"):
            self.assertAlmostEqual(ours[name][0], theirs[name][0], places=6, msg=name)


class Firefox(Imports):
    @support.needs_python
    def test_ours_comes_back(self):
        """What was written for the Firefox Profiler and Perfetto reads as it was."""
        with support.Target(support.newest(), "busy.py") as target:
            done = self.sampled("attach", target.pid, "-d", "1", "-q", "--record", "r.sampled", "-o", "a.collapsed")
        self.assertEqual(done.returncode, cli.DONE, done.stderr)
        self.convert("r.sampled", "-f", "firefox", "-o", "a.json")
        self.convert("r.sampled", "-f", "chrome", "-o", "a.trace")
        self.assertEqual(self.convert("a.json", "-f", "collapsed", "-o", "-"), self.convert("r.sampled", "-f", "collapsed", "-o", "-"))
        with open(self.path("a.trace"), "rb") as file:
            events = [event for event in json.load(file)["traceEvents"] if event["ph"] == "X"]
        back = self.functions("a.trace")
        for name in ("<module>", "leaf"):
            spans = [event["dur"] for event in events if event["name"].startswith(name + " (")]
            self.assertGreater(len(spans), 0)
            self.assertAlmostEqual(back[name][1], sum(spans) / 1e6, delta=1e-3, msg=name)


if __name__ == "__main__":
    unittest.main()
