# SPDX-License-Identifier: Apache-2.0
"""pstats files: read by pstats of every Python, snakeviz and gprof2dot; those of cProfile, profile and Python 3.15's profiler, converted."""
import functools
import glob
import json
import marshal
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import unittest
import urllib.error
import urllib.parse
import urllib.request

import callgraphs
import cli
import support

# All that pstats does with a file; prints what it found. Runs in every Python from 3.6 on.
CHECK = r"""
import io, json, pstats, sys
path, limit = sys.argv[1], json.loads(sys.argv[2])
out = io.StringIO()
stats = pstats.Stats(path, stream=out)
assert type(stats) is pstats.Stats, type(stats)
before, total = dict(stats.stats), stats.total_tt
for func, (cc, nc, tt, ct, callers) in before.items():
    assert isinstance(func, tuple) and [type(part) for part in func] == [str, int, str], func
    assert cc <= nc and tt <= ct + 1e-9 and ct <= total + 1e-6, (func, cc, nc, tt, ct, total)
    for caller, value in callers.items():
        assert caller in before, caller
        assert isinstance(value, tuple) and len(value) == 4, value
        assert value[0] >= value[1] and value[3] <= ct + 1e-9, (func, value)
keys = [key.value for key in pstats.SortKey] if hasattr(pstats, "SortKey") else list(stats.sort_arg_dict_default)
for key in [key for key in keys if key != "file"] + [-1, 0, 1, 2]:  # 3.6 names "file" and does not know it
    stats.sort_stats(key)
stats.reverse_order()
stats.sort_stats("cumulative", "name")
stats.print_stats(limit); stats.print_callers(limit); stats.print_callees(limit)
if hasattr(stats, "get_stats_profile"):
    stats.get_stats_profile()
stats.add(path)
assert abs(stats.total_tt - 2 * total) <= 1e-6 * max(total, 1)
assert all(stats.stats[func][0] == 2 * before[func][0] for func in before)
stats.strip_dirs().sort_stats("nfl").print_stats(limit).print_callers(limit)
assert "function calls" in out.getvalue()
json.dump({"functions": len(before), "total": total}, sys.stdout)
"""

# A program whose code holds constants of all kinds, and code in code.
PROGRAM = r"""
def work(n):
    def generate():
        for i in range(n):
            yield i, 1j, 2.5, b"bytes", (1, (None, "x", 3 ** 40)), ..., True
    return [len(str(each)) for each in generate() if each[0] not in {1, 2, 3}]
class Some:
    "text"
    def method(self, *, key=...): return lambda value: value in ("a", "b")
for i in range(3):
    work(20)
    Some().method()("a")
"""

# The figures of a file, without what differs in each run.
FIGURES = r"""
import json, pstats, re, sys
stats = pstats.Stats(sys.argv[1])
json.dump([["~" if func[0] == "~" and func[1] == 0 else func[0], func[1],
            func[2] if isinstance(func[2], str) else re.sub(" at 0x[0-9a-f]+", "", repr(func[2])), *value[:4]]
           for func, value in stats.stats.items()], sys.stdout)
"""

# Profiles a program with cProfile (and profile), and writes what came of it in every version of marshal.
MAKE = r"""
import cProfile, json, marshal, profile, pstats, sys
def fib(n): return n if n < 2 else fib(n - 1) + fib(n - 2)
def ping(n): return pong(n - 1) if n else 0
def pong(n): return ping(n - 1) if n else 0
space = {}
exec(compile("def \u00e9t\u00e9(): return sum(map(len, ['x'] * 100))\n", "/tmp/\udcff\u00e9.py", "exec"), space)
def work():
    fib(12), ping(50), space["\u00e9t\u00e9"](), sorted([3, 1, 2], key=lambda x: -x), (lambda: 1)()
    json.loads(json.dumps({str(i): [i] * 3 for i in range(100)}))
profiler = cProfile.Profile()
profiler.runcall(work)
profiler.dump_stats(sys.argv[1] + "/cprofile.in")
stats = pstats.Stats(sys.argv[1] + "/cprofile.in").stats
for version in range(marshal.version + 1):
    with open(sys.argv[1] + "/version%d.in" % version, "wb") as file:
        marshal.dump(stats, file, version)
both = pstats.Stats(sys.argv[1] + "/cprofile.in").add(sys.argv[1] + "/cprofile.in").strip_dirs()
both.dump_stats(sys.argv[1] + "/added.in")
slow = profile.Profile()
slow.runcall(fib, 5)
slow.dump_stats(sys.argv[1] + "/profile.in2")
"""

# Whether what came back is what went in, to the last bit of each float.
COMPARE = r"""
import glob, pstats, struct, sys
def bits(value): return (int, value) if isinstance(value, int) else (float, struct.pack("<d", value))
def plain(stats):
    return {func: tuple(map(bits, value[:4])) + ({caller: tuple(map(bits, one)) for caller, one in value[4].items()},)
            for func, value in stats.items()}
files = sorted(glob.glob(sys.argv[1] + "/*.in"))
for path in files:
    before, after = pstats.Stats(path).stats, pstats.Stats(path[:-3] + ".pstats").stats
    assert plain(before) == plain(after), path
slow, again = pstats.Stats(sys.argv[1] + "/profile.in2").stats, pstats.Stats(sys.argv[1] + "/profile.pstats").stats
# What has no file is ("", 0) in profile's and ("~", 0) in cProfile's and ours.
slow = {("~", 0, func[2]) if func[:2] == ("", 0) else func: value for func, value in slow.items()}
assert {func: value[:4] for func, value in slow.items()} == {func: value[:4] for func, value in again.items()}
assert all(again[func][4][caller][:2] == (calls, calls) for func, value in slow.items() for caller, calls in value[4].items())
print(len(files))
"""


def in_python(python, code, *args, timeout=300):
    done = subprocess.run(python.argv + ["-c", code] + [str(arg) for arg in args], cwd="/", stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=timeout,
                          env=dict(os.environ, PYTHONIOENCODING="utf-8:backslashreplace"))
    if done.returncode != 0:
        raise AssertionError("%r: %s" % (python, done.stderr.decode(errors="replace")[-2000:]))
    return done.stdout.decode()


@functools.lru_cache(maxsize=None)
def shape(kind):
    """Written once for all tests; removed with the module."""
    folder = tempfile.mkdtemp(prefix="sampled-pstats-")
    unittest.addModuleCleanup(shutil.rmtree, folder, ignore_errors=True)
    return callgraphs.write_shape(kind, "pstats", os.path.join(folder, kind + ".pstats"))


@support.each_python
class EveryPython(callgraphs.Profiles):
    def place(self, python):
        """A folder that the interpreter sees: (outside, inside)."""
        folder = tempfile.TemporaryDirectory(prefix="sampled-pstats-", dir=(python.root or "") + "/tmp")
        self.addCleanup(folder.cleanup)
        return folder.name, folder.name[len(python.root):]

    @support.on(support.each_version)
    def check_shapes(self, python):
        outside, inside = self.place(python)
        for kind in callgraphs.SHAPES:
            if kind == "huge" and python not in (support.pythons()[0], support.pythons()[-1]):
                continue  # the same code reads it in all of them, and it takes seconds
            with self.subTest(kind=kind):
                shutil.copy(shape(kind), outside)
                found = json.loads(in_python(python, CHECK, inside + "/" + kind + ".pstats", 0.1 if kind == "huge" else 1000))
                self.assertEqual(found["functions"], {"hostile": 3020, "huge": 4000, "native": 9}.get(kind, 1))
                total = {"hostile": 7.759, "huge": 599.66, "deep2000": 0.5, "one": 0.001, "native": 0.87, "empty": 0}[kind]
                self.assertAlmostEqual(found["total"], total, places=6)

    @support.on(support.each_version)
    def check_round_trip(self, python):
        outside, inside = self.place(python)
        in_python(python, MAKE, inside)
        files = glob.glob(outside + "/*.in*")
        self.assertGreaterEqual(len(files), 6)
        for path in files:
            done = self.sampled("convert", path, "-o", re.sub(r"\.in2?$", ".pstats", path))
            self.assertEqual((done.returncode, done.stderr), (cli.DONE, b""))
        self.assertEqual(int(in_python(python, COMPARE, inside)), len(files) - 1)

    def check_profile_module(self, python):
        """What python -m profile -o writes has a code object, of this version's own make, in a function's name."""
        outside, inside = self.place(python)
        with open(outside + "/program.py", "w") as file:
            file.write(PROGRAM)
        subprocess.run(python.argv + ["-m", "profile", "-o", inside + "/out.pstats", inside + "/program.py"], check=True, timeout=120,
                       stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        wanted = json.loads(in_python(python, FIGURES, inside + "/out.pstats"))
        done = self.sampled("report", outside + "/out.pstats", "--json")
        self.assertEqual((done.returncode, done.stderr), (cli.DONE, b""))
        functions = json.loads(done.stdout)["functions"]
        own = sorted([f["file"], f["line"], f["function"], f["pcalls"], f["ncalls"], f["tottime"], f["cumtime"]] for f in functions)
        self.assertEqual(own, sorted(wanted))
        self.assertTrue(any(f["function"].startswith("<code object <module>, file \"") for f in functions))


@support.needs_python
class Real(callgraphs.Profiles):
    def test_the_same_sums_as_collapsed(self):
        pstats_path, collapsed = self.profile("pstats", "collapsed")
        found = json.loads(in_python(next(p for p in support.pythons() if not p.root), CHECK, pstats_path, 1000))
        lines = support.read_collapsed(collapsed)
        with open(pstats_path, "rb") as file:
            stats = marshal.load(file)
            facts = marshal.load(file)
        self.assertGreater(found["total"], 0.5)
        for (file_name, _, name), (cc, nc, _tt, _ct, _callers) in stats.items():
            # Functions of a file that share a name are one here; the line in a stack is another.
            alike = {key for key in stats if (key[0], key[2]) == (file_name, name)}
            if len(alike) == 1 and file_name != "~":
                holding = [line for line in lines if any(frame[0] == name and frame[1] == file_name for frame in line.frames)]
                self.assertEqual(cc, sum(line.count for line in holding), name)
                self.assertEqual(nc, sum(line.count * sum(frame[:2] == (name, file_name) for frame in line.frames) for line in lines), name)
        self.assertTrue(facts.startswith("sampled: what was sampled and lost\n"))
        self.assertIn("samples in this profile: {:,}\n".format(sum(line.count for line in lines)), facts)

    @callgraphs.needs("dot")
    def test_svg_beside_it(self):
        with support.Target(support.newest(), "busy.py") as target:
            done = self.sampled("attach", target.pid, "-d", "1", "-f", "pstats", "-o", "a.pstats", "--svg", "-q")
        self.assertEqual((done.returncode, done.stdout), (cli.DONE, b"a.pstats\na.svg\n"), done.stderr)
        with open(self.path("a.svg")) as file:
            self.assertIn("descend", file.read())
        done = self.sampled("convert", "a.pstats", "-o", "b.pstats", "--svg")
        self.assertEqual((done.returncode, done.stdout), (cli.DONE, b"b.pstats\nb.svg\n"), done.stderr)
        self.assertTrue(os.path.exists(self.path("b.svg")))

    @callgraphs.needs("dot")
    def test_snapshots_have_theirs(self):
        with support.Target(support.newest(), "busy.py") as target:
            process = support.start_sampled("attach", target.pid, "-f", "pstats", "-o", "a.pstats", "--svg", "-q", cwd=self.folder)
            time.sleep(1)
            process.send_signal(signal.SIGUSR1)
            first = [process.stdout.readline(), process.stdout.readline()]
            process.send_signal(signal.SIGINT)
            rest, errors = process.communicate(timeout=support.SAMPLED_TIMEOUT_S)
        self.assertEqual((process.returncode, errors), (cli.DONE, b""))
        self.assertEqual(first + [rest], [b"a.0001.pstats\n", b"a.0001.svg\n", b"a.pstats\na.svg\n"])
        self.assertEqual(sorted(os.listdir(self.folder)), ["a.0001.pstats", "a.0001.svg", "a.pstats", "a.svg"])

    def test_svg_needs_pstats_and_a_file(self):
        self.assert_error(self.sampled("attach", "1", "-f", "text", "--svg"), cli.USAGE, "--svg: goes with -f pstats")
        self.assert_error(self.sampled("attach", "1", "-f", "pstats", "-o", "-", "--svg"), cli.USAGE, "standard output")
        self.assert_error(self.sampled("convert", "x", "-f", "dot", "-o", "a.dot", "--svg"), cli.USAGE, "--svg: goes with -f pstats")
        self.assert_error(self.sampled("convert", "x", "-f", "pstats", "-o", "a.svg", "--svg"), cli.USAGE, "would have this name")

    def test_svg_without_graphviz_is_said_before_sampling(self):
        with support.Target(support.newest(), "parked.py") as target:
            done = self.sampled("attach", target.pid, "-d", "1", "-f", "pstats", "-o", "a.pstats", "--svg", env={"PATH": self.folder})
        self.assert_error(done, cli.FAILED, "cannot write a.svg: Graphviz is not installed")
        self.assertEqual(os.listdir(self.folder), [])


class Reading(cli.Folder):
    def test_python_2(self):
        pythons = sorted(glob.glob(os.path.expanduser("~/.pyenv/versions/2.7*/bin/python"))) or list(filter(None, [shutil.which("python2.7")]))
        if not pythons:
            self.skipTest("no Python 2.7 was found")
        make = "import cProfile; cProfile.run('import json; json.dumps(range(99))', 'two.prof')"
        subprocess.run([pythons[0], "-c", make], cwd=self.folder, check=True)
        done = self.sampled("convert", "two.prof", "-o", "two.pstats")
        self.assertEqual((done.returncode, done.stderr), (cli.DONE, b""))
        compare = "import pstats; assert pstats.Stats('two.prof').stats == pstats.Stats('two.pstats').stats"
        subprocess.run([pythons[0], "-c", compare], cwd=self.folder, check=True)

    @support.need_root
    def test_tachyon(self):
        roots = [python for python in support.all_pythons() if python.version >= (3, 15) and python.root]
        if not roots or not shutil.which("unshare"):
            self.skipTest("no root with Python 3.15, or no unshare, on this machine")
        folder = tempfile.TemporaryDirectory(prefix="sampled-tachyon-", dir=roots[0].root + "/tmp")
        self.addCleanup(folder.cleanup)
        inside = folder.name[len(roots[0].root):]
        with open(folder.name + "/t.py", "w") as file:
            file.write("def fib(n): return n if n < 2 else fib(n - 1) + fib(n - 2)\nfor _ in range(14): fib(23)\n")
        script = "mount --bind /proc %s/proc && exec chroot %s %s -m profiling.sampling run --pstats -o %s/t.pstats %s/t.py" % (
            roots[0].root, roots[0].root, roots[0].argv[-1], inside, inside)
        done = subprocess.run(["unshare", "-m", "sh", "-c", script], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=120)
        self.assertTrue(os.path.exists(folder.name + "/t.pstats"), done.stdout)
        with open(folder.name + "/t.pstats", "rb") as file:
            theirs = marshal.load(file)
        self.assertTrue(theirs.pop(("__sampled__",)))
        done = self.sampled("convert", folder.name + "/t.pstats", "-o", "t.pstats")
        self.assertEqual((done.returncode, done.stderr), (cli.DONE, b""))
        with open(self.path("t.pstats"), "rb") as file:
            ours = marshal.load(file)
        self.assertEqual(set(ours), set(theirs))
        for func, (_direct, holding, tottime, cumtime, callers) in theirs.items():
            self.assertEqual(ours[func][:4], (holding, holding, tottime, cumtime))
            self.assertEqual({key: value[0] for key, value in ours[func][4].items()}, callers)

    def test_merged_and_stripped(self):
        for name in ("one", "two"):
            os.mkdir(self.path(name))
            callgraphs.write_shape("deep2000", "pstats", self.path(name + "/a.pstats"))
        done = self.sampled("convert", "one/a.pstats", "two/a.pstats", "--strip-dirs", "-o", "sum.pstats")
        self.assertEqual((done.returncode, done.stderr), (cli.DONE, b""))
        with open(self.path("sum.pstats"), "rb") as file:
            (key, (cc, nc, tt, ct, callers)), = marshal.load(file).items()
        self.assertEqual(key, ("deep.py", 1, "recurse"))
        self.assertEqual((cc, nc), (1000, 1000 + 2 * sum(range(0, 2000, 4))))
        self.assertAlmostEqual(tt, 1.0)
        self.assertAlmostEqual(ct, 1.0)
        self.assertEqual(list(callers), [key])

    def test_to_a_format_of_stacks_is_refused(self):
        callgraphs.write_shape("one", "pstats", self.path("a.pstats"))
        self.assert_error(self.sampled("convert", "a.pstats", "-o", "a.html"), cli.USAGE, "hold function totals, no stacks")
        self.assert_error(self.sampled("convert", "a.pstats", "--focus", "x", "-o", "a.dot"), cli.USAGE, "hold no stacks")

    def test_damaged(self):
        path = callgraphs.write_shape("hostile", "pstats", self.path("a.pstats"))
        with open(path, "r+b") as file:
            file.truncate(100000)
        self.assert_error(self.sampled("convert", "a.pstats", "-o", "b.pstats"), cli.FAILED, "it ends too early, at byte 100000")


class Consumers(cli.Folder):
    def setUp(self):
        super().setUp()
        for program in ("snakeviz", "gprof2dot"):
            if not os.access(os.path.join(callgraphs.CONSUMERS, program), os.X_OK):
                self.skipTest("%s is not installed: tests/consumers/setup-pstats gets it" % program)

    def test_snakeviz_shows_it(self):
        for kind in ("hostile", "one", "deep2000", "huge"):
            shutil.copy(shape(kind), self.folder)
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        server = subprocess.Popen([os.path.join(callgraphs.CONSUMERS, "snakeviz"), "-s", "-H", "127.0.0.1", "-p", str(port), self.folder],
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            for kind, says in (("hostile", "Handler.handle"), ("one", "only"), ("deep2000", "recurse"), ("huge", "Class7.method_150")):
                page = self.fetch(port, self.path(kind + ".pstats"))
                self.assertIn(says, page)
                self.assertIn("profile_data", page)
        finally:
            server.kill()
            server.wait()

    def fetch(self, port, path):
        url = "http://127.0.0.1:%d/snakeviz/%s" % (port, urllib.parse.quote(path, safe=""))
        for _ in range(100):
            try:
                with urllib.request.urlopen(url, timeout=120) as answer:
                    self.assertEqual(answer.status, 200)
                    return answer.read().decode()
            except urllib.error.HTTPError as error:
                raise AssertionError("%s: %s" % (path, error.read().decode()[-2000:])) from error
            except (urllib.error.URLError, ConnectionError):
                time.sleep(0.2)
        raise AssertionError("snakeviz did not start")

    def test_gprof2dot_draws_it(self):
        for kind in ("hostile", "one", "deep2000", "huge"):
            with self.subTest(kind=kind):
                done = callgraphs.run(os.path.join(callgraphs.CONSUMERS, "gprof2dot"), "-f", "pstats", shape(kind))
                self.assertEqual(done.stderr, "")
                self.assertIn("->" if kind != "one" else "only", done.stdout)
                if kind == "hostile":
                    self.assertRegex(done.stdout, r"server:10:serve\\n96\.65%\\n\(0\.00%\)")


if __name__ == "__main__":
    unittest.main()
