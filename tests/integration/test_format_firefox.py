# SPDX-License-Identifier: Apache-2.0
"""The Firefox Profiler's command line program reads what we write: threads, call trees, markers."""
import json
import os
import shutil
import subprocess
import tempfile
import time
import unittest

import shapes
import support


class Session:
    """A profile in a session of profiler-cli."""

    def __init__(self, path):
        self.program = shapes.consumer("firefox", "node_modules", "@firefox-devtools", "profiler-cli", "dist", "profiler-cli.js")
        if not shutil.which("node"):
            raise unittest.SkipTest("node is not installed")
        self.folder = tempfile.TemporaryDirectory(prefix="sampled-firefox-")
        self.path = path

    def run(self, *args):
        env = dict(os.environ, PROFILER_CLI_SESSION_DIR=self.folder.name)
        return subprocess.run(["node", self.program, *args, "--session", "test"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              timeout=200, env=env)

    def ask(self, *args):
        done = self.run(*args, "--json")
        if done.returncode != 0:
            raise AssertionError(done.stderr.decode() + done.stdout.decode())
        return json.loads(done.stdout)

    def __enter__(self):
        done = self.run("load", self.path)
        deadline = time.monotonic() + 120
        while done.returncode != 0:  # on a busy machine its server is not ready at once
            if time.monotonic() > deadline:
                raise AssertionError(done.stderr.decode())
            time.sleep(1)
            done = self.run("thread", "list", "--json")
        return self

    def __exit__(self, *_error):
        subprocess.run(["node", self.program, "stop", "test"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=60,
                       env=dict(os.environ, PROFILER_CLI_SESSION_DIR=self.folder.name))
        self.folder.cleanup()


class Firefox(shapes.Shapes):
    FORMAT, SUFFIX = "firefox", ".firefox.json"

    def check_thread(self, session, handle, lines):
        counted = [line for line in lines if line.frames]
        tree = session.ask("thread", "samples-top-down", "--thread", handle, "--include-idle", "--max-lines", "5")["regularCallTree"]
        self.assertEqual(tree["totalSamples"], sum(line.count for line in counted))
        own, total = {}, {}
        for line in counted:
            own[line.frames[-1][0]] = own.get(line.frames[-1][0], 0) + line.count
            for name in {frame[0] for frame in line.frames}:
                total[name] = total.get(name, 0) + line.count
        for function in session.ask("thread", "functions", "--thread", handle, "--include-idle", "--limit", "40")["functions"]:
            if function["name"] in total:
                self.assertEqual(function["selfSamples"], own.get(function["name"], 0), function["name"])
                self.assertEqual(function["totalSamples"], total[function["name"]], function["name"])

    def test_threads_and_trees(self):
        for kind in ("one", "hostile", "deep2000", "huge"):
            with self.subTest(kind=kind), Session(self.files[kind]) as session:
                threads = {thread["tid"]: thread["threadHandle"] for thread in session.ask("thread", "list", "--limit", "0")["threads"]}
                expected = self.threads(kind)
                if kind != "hostile":  # its main thread's id is the process' that wrote it
                    self.assertEqual(set(threads), set(expected))
                for tid, lines in expected.items():
                    if tid in threads and (kind != "huge" or tid == 5003):
                        self.check_thread(session, threads[tid], lines)

    def test_empty(self):
        with Session(self.files["empty"]) as session:
            self.assertEqual([thread["name"] for thread in session.ask("thread", "list")["threads"]], ["no threads"])

    def test_markers(self):
        with Session(self.files["hostile"]) as session:
            found = {}
            for thread in session.ask("thread", "list")["threads"]:
                if thread["name"] != "MainThread":
                    continue
                for kind in session.ask("thread", "markers", "--thread", thread["threadHandle"], "--limit", "100")["byType"]:
                    found[kind["markerName"]] = (kind["count"], round(kind["durationStats"]["avg"] * kind["count"]))
        # Derived by hand from make_hostile(): 140 + 900 held, 260 waiting, 700 held, 310 on a CPU only, 120 held in the collector, 1500 idle, 90 unknown.
        self.assertEqual(found, {
            "Has GIL": (3, 1860), "No GIL": (3, 260 + 310 + 1590), "Waiting for GIL": (1, 260), "Runnable": (2, 1040 + 1130),
            "Not runnable": (2, 260 + 1500), "GC": (1, 120), "Native Code": (1, 310)})

    def test_columns_are_of_one_length(self):
        for kind, path in self.files.items():
            with self.subTest(kind=kind), open(path, "rb") as file:
                profile = json.load(file)
                strings = len(profile["shared"]["stringArray"])
                for thread in profile["threads"]:
                    for table in ("samples", "markers", "stackTable", "frameTable", "funcTable", "resourceTable", "nativeSymbols"):
                        for name, column in thread[table].items():
                            if isinstance(column, list):
                                self.assertEqual(len(column), thread[table]["length"], "%s.%s" % (table, name))
                    self.assertTrue(all(name < strings for name in thread["funcTable"]["name"] + thread["markers"]["name"]))
                    prefixes = thread["stackTable"]["prefix"]
                    self.assertTrue(all(prefix is None or prefix < i for i, prefix in enumerate(prefixes)))
                    self.assertTrue(all(start <= end for start, end in zip(thread["markers"]["startTime"], thread["markers"]["endTime"])))

    @support.needs_python
    def test_real_program(self):
        recording = shapes.record(self, self.folder)
        path, other = self.path("real.firefox.json"), self.path("real.collapsed")
        for out in (path, other):
            done = self.sampled("convert", recording, "-o", out)
            self.assertEqual(done.returncode, 0, done.stderr)
        lines = support.read_collapsed(other)
        with Session(path) as session:
            names = set()
            for thread in session.ask("thread", "list", "--limit", "0")["threads"]:
                self.check_thread(session, thread["threadHandle"], [line for line in lines if line.tid == thread["tid"]])
                names |= {kind["markerName"] for kind in session.ask("thread", "markers", "--thread", thread["threadHandle"])["byType"]}
        self.assertIn("Has GIL", names)
        self.assertIn("Runnable", names)


if __name__ == "__main__":
    unittest.main()
