# SPDX-License-Identifier: Apache-2.0
"""Dask profiles: ours in the hands of distributed's own profile.py (tests/consumers/setup-dask), and its own in ours."""
import json
import os
import subprocess
import unittest

import cli
import support

DASK = os.path.join(support.CACHE, "consumers", "dask", "bin", "python")
MAKE_PROFILE = os.path.join(os.path.dirname(support.SAMPLED), "tests", "browser", "make_profile")

# What distributed makes of a file of ours, as JSON. Its functions recurse, once or twice a frame, and so does json: within the limit of Python.
ASK = """
import json, sys

def nodes(tree):
    count, stack = 0, [tree]
    while stack:
        node = stack.pop()
        assert set(node) - {"sampled"} == {"identifier", "description", "count", "children"}, node.keys()
        assert set(node["description"]) == {"filename", "name", "line_number", "line"}
        assert node["count"] >= sum(child["count"] for child in node["children"].values())
        assert all(key == child["identifier"] for key, child in node["children"].items())
        count += 1
        stack.extend(node["children"].values())
    return count

def ask():
    from distributed import profile
    tree = json.load(open(sys.argv[1]))
    both = profile.merge(tree, tree)
    stack = [(tree, both)]
    while stack:
        one, two = stack.pop()
        assert two["count"] == 2 * one["count"] and set(one["children"]) == set(two["children"])
        stack.extend((one["children"][key], two["children"][key]) for key in one["children"])
    data = profile.plot_data(tree, 0.001)
    print(json.dumps({"count": tree["count"], "nodes": nodes(tree), "shown": len(data["left"]), "facts": tree["sampled"]["facts"]["in_profile"],
        "right": max(data["right"], default=1), "names": sorted(set(data["name"]))}))

ask()
"""

# distributed's watcher on a real thread of its own process: a history, and its merge, as JSON.
MAKE = """
import json, sys, threading, time
from distributed import profile

def deep(n):
    return deep(n - 1) if n else sum(k * k for k in range(300))

def work():
    while not done:
        deep(9)

done = []
worker = threading.Thread(target=work)
worker.start()
log = profile.watch(worker.ident, interval="2ms", cycle="20ms", stop=lambda: bool(done))
tree = profile.create()
for _ in range(200):
    profile.process(sys._current_frames()[worker.ident], None, tree)
    time.sleep(0.002)
done.append(1)
worker.join()
time.sleep(0.1)
json.dump(list(log), open(sys.argv[1], "w"))
json.dump(tree, open(sys.argv[2], "w"))
json.dump(profile.merge(tree, profile.get_profile(list(log))), open(sys.argv[3], "w"), sort_keys=True)
json.dump(profile.get_profile(list(log)), open(sys.argv[4], "w"))
"""

# What its get_profile() takes of a history of ours between two times.
SLICE = """
import json, sys
from distributed import profile
history = [(time, tree) for time, tree in json.load(open(sys.argv[1]))]
first = history[0][0]
print(json.dumps([len(history), profile.get_profile(history)["count"], profile.get_profile(history, start=history[1][0])["count"],
    [time - first for time, _ in history], [tree["count"] for _, tree in history]]))
"""


def counts(tree):
    """{identifiers from the root on: count} of a tree."""
    found, stack = {}, [((), tree)]
    while stack:
        path, node = stack.pop()
        found[path] = node["count"]
        stack.extend((path + (key,), child) for key, child in node["children"].items())
    return found


@unittest.skipUnless(os.access(DASK, os.X_OK), "distributed is not installed (tests/consumers/setup-dask)")
class Dask(cli.Folder):
    def dask(self, script, *args):
        done = subprocess.run([DASK, "-c", script, *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=self.folder, timeout=300)
        self.assertEqual((done.returncode, done.stderr), (0, b""))
        return json.loads(done.stdout) if done.stdout else None

    def convert(self, *args):
        done = self.sampled("convert", *args)
        self.assertEqual((done.returncode, done.stderr), (cli.DONE, b""))
        return done.stdout

    def load(self, name):
        with open(self.path(name)) as file:
            return json.load(file)

    @support.needs_python
    def test_real_program(self):
        with support.Target(support.newest(), "busy.py", 4) as target:
            done = self.sampled("attach", target.pid, "-d", "2", "-f", "collapsed", "-f", "dask", "-o", "out")
        self.assertEqual(done.returncode, cli.DONE, done.stderr)
        sampled = cli.samples_in(self.path("out.collapsed"))
        got = self.dask(ASK, "out.dask.json")
        self.assertGreater(sampled, 0)
        self.assertEqual((got["count"], got["facts"]), (sampled, sampled))
        self.assertEqual(got["nodes"], got["shown"])
        self.assertAlmostEqual(got["right"], 1)
        self.assertIn("descend", got["names"])
        # And into ours again.
        lines = self.convert("out.dask.json", "-f", "collapsed", "-o", "-").splitlines()
        self.assertEqual(sum(int(line.rpartition(b" ")[2]) for line in lines), sampled)

    def test_shapes(self):
        if not os.access(MAKE_PROFILE, os.X_OK):
            self.skipTest("make browser has not built make_profile")
        for kind in ("hostile", "huge", "deep2000", "one", "empty"):
            name = kind + ".dask.json"
            subprocess.run([MAKE_PROFILE, kind, self.path(name)], check=True, env={**os.environ, "FORMAT": "dask"})
            got = self.dask(ASK, name)
            self.assertEqual(got["count"], got["facts"], kind)
            self.assertEqual(got["shown"], got["nodes"] if got["count"] else 0, kind)
            if kind == "deep2000":
                self.assertIn("<truncated>", got["names"])
            again = self.convert(name, "-f", "dask", "-o", "-")
            self.assertEqual(json.loads(again)["count"], got["count"])

    def test_what_distributed_made(self):
        self.dask(MAKE, "history.json", "tree.json", "sorted.json", "whole.json")
        for name, like in (("tree.json", "tree.json"), ("sorted.json", "sorted.json"), ("history.json", "whole.json")):
            ours = json.loads(self.convert(name, "-f", "dask", "-o", "-"))
            self.assertEqual(counts(ours), counts(self.load(like)), name)
            self.assertGreater(ours["count"], 5)
        history = self.load("history.json")
        # From the second entry on; an entry stands at its time.
        second = history[1][0] - history[0][0]
        late = json.loads(self.convert("history.json", "-f", "dask", "-o", "-", "--from", "%.9f" % (second - 0.001)))
        self.assertEqual(late["count"], sum(tree["count"] for _, tree in history[1:]))

    def test_history(self):
        with open(self.path("perf.txt"), "w") as file:
            for k in range(100):  # one in 100 ms, for ten seconds
                file.write("prog 7/7 %d.%d00000: 100000000 cpu-clock: \n\t1 leaf%d (x)\n\t2 main (x)\n\n" % (100 + k // 10, k % 10, k // 20))
        self.convert("perf.txt", "-f", "dask", "--history", "2", "-o", "h.dask.json")
        self.assertEqual(self.dask(SLICE, "h.dask.json"), [5, 100, 80, [0, 2, 4, 6, 8], [20] * 5])
        self.assertEqual(set(self.load("h.dask.json")[1][1]["children"]["main;x;0"]["children"]), {"leaf1;x;0"})
        part = json.loads(self.convert("h.dask.json", "-f", "dask", "-o", "-", "--from", "2", "--to", "6"))
        self.assertEqual(part["count"], 40)
        self.assert_error(self.sampled("convert", "perf.txt", "--history", "0", "-f", "dask", "-o", "x"), cli.USAGE, "--history 0: not a time")
        self.assert_error(self.sampled("convert", "perf.txt", "--history", "1", "-f", "text", "-o", "x"), cli.USAGE, "--history: text has none")
        self.convert("perf.txt", "-f", "dask", "-o", "tree.dask.json")
        self.assert_error(self.sampled("convert", "tree.dask.json", "--history", "1", "-f", "dask", "-o", "x"), cli.USAGE, "no time order")
