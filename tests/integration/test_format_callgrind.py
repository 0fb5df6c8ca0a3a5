# SPDX-License-Identifier: Apache-2.0
"""callgrind files, read by callgrind_annotate: its totals, self and inclusive, are those of the same profile's pstats file, and its
costs beside the source those of the same profile's stacks, which tell each frame's line."""
import collections
import json
import marshal
import os
import re
import shutil
import unittest

import callgraphs
import cli
import support



def number(text):
    return 0 if text == "." else int(text.replace(",", ""))


def rows(path, text):
    """Of what callgrind_annotate printed: (samples, ns and, if the file has it, ns of CPU time; what stands beside)."""
    with open(path) as file:
        events = next(line.split()[1:] for line in file if line.startswith("events:"))
    row = re.compile("^ *" + " +".join([r"([\d,]+|\.)"] * len(events)) + "  (.*)$")
    for match in map(row.match, text.splitlines()):
        if match:
            yield tuple(map(number, match.groups()[:-1])), match.groups()[-1]


CALL = re.compile(r"=> .*?:([^ ]+) \(([\d,]+)x\)")
FRAME = re.compile(r"(\S+) \((.+):(\d+)\)$")


def annotate(path, inclusive):
    """(total samples, total ns, …), {file:function: (samples, ns, …)}."""
    done = callgraphs.run("callgrind_annotate", "--threshold=100", "--auto=no", "--show-percs=no", "--inclusive=" + inclusive, path)
    if done.stderr or "WARNING" in done.stdout:
        raise AssertionError("callgrind_annotate warns: %s" % (done.stderr + done.stdout)[-2000:])
    costs = {beside: cost for cost, beside in rows(path, done.stdout)}
    total, = (beside for beside in costs if beside.startswith("PROGRAM TOTALS"))
    return costs.pop(total), costs


def expected(path):
    """What the pstats file of the same profile says: {file:function: (self ns, inclusive ns)}."""
    with open(path, "rb") as file:
        stats = marshal.load(file)
    alike = collections.Counter((func[0], func[2]) for func in stats)
    return {
        "%s:%s%s" % ("???" if func[:2] == ("~", 0) else func[0], func[2], ":%d" % func[1] if alike[func[0], func[2]] > 1 else ""):
        (round(value[2] * 1e9), round(value[3] * 1e9))
        for func, value in stats.items()
    }


def beside_source(path, source, root):
    """What callgrind_annotate prints beside the lines of a file, which lies below root: {text of the line: samples}, {text of the line:
    {callee: samples}}."""
    done = callgraphs.run("callgrind_annotate", "--threshold=100", "--auto=yes", "--context=9999", "--tree=calling", "--show-percs=no",
                          "--include=" + root, path)
    sections = re.split(r"^-- Auto-annotated source: (.*)$", done.stdout, flags=re.M)
    section, = (text for name, text in zip(sections[1::2], sections[2::2]) if name.endswith(source))
    lines, calls, line = {}, collections.defaultdict(dict), None
    for cost, beside in rows(path, section):
        call = CALL.match(beside)
        if call:
            calls[line][call.group(1)] = cost[0]
        elif beside != "events annotated":
            line = beside
            lines[line] = lines.get(line, 0) + cost[0]
    return lines, calls


def by_line(path, source):
    """The same of the stacks, by numbers of lines: {line: samples}, {line: {caller: {callee: samples whose outermost frame of it is called
    there}}}."""
    lines, calls = collections.Counter(), collections.defaultdict(lambda: collections.defaultdict(collections.Counter))
    with open(path) as file:
        for stack in file:
            frames, count = stack.rsplit(" ", 1)
            frames = [m.groups() for m in map(FRAME.match, frames.split(";")) if m]
            if frames[-1][1] == source:
                lines[int(frames[-1][2])] += int(count)
            for i, (caller, callee) in enumerate(zip(frames, frames[1:])):
                if caller[1] == source:
                    is_outermost = callee[:2] not in (frame[:2] for frame in frames[:i + 1])
                    calls[int(caller[2])][caller[0]][callee[0]] += int(count) if is_outermost else 0
    return lines, calls


def cpu_time(path, is_wanted):
    """The own CPU time of functions, as the same profile's JSON Lines have it."""
    frames, sum_ns = {None: ""}, 0
    with open(path) as file:
        for item in map(json.loads, file):
            if item["type"] == "frame":
                frames[item["id"]] = item["function"]
            elif item["type"] == "node" and is_wanted(frames[item["frame"]]):
                sum_ns += item["self"].get("cpu", 0)
    return sum_ns


@callgraphs.needs("callgrind_annotate")
class Annotate(callgraphs.Profiles):
    def compare(self, callgrind, pstats):
        wanted = expected(pstats)
        total, self_costs = annotate(callgrind, "no")
        total_too, inclusive = annotate(callgrind, "yes")
        self.assertEqual(total, total_too)
        self.assertEqual(total[1], sum(ns for ns, _ in wanted.values()))
        self.assertEqual(inclusive.pop("???:<root>"), total)
        self_costs.pop("???:<root>", None)
        self.assertEqual(tuple(map(sum, zip(*self_costs.values()))), total)
        for name, (self_ns, total_ns) in wanted.items():
            # Rows of nothing are not printed.
            self.assertEqual(self_costs.get(name, (0, 0))[1], self_ns, name)
            self.assertEqual(inclusive.get(name, (0, 0))[1], total_ns, name)
            self.assertLessEqual(inclusive.get(name, (0, 0))[0], total[0])
        self.assertLessEqual(set(inclusive), set(wanted))
        return total, wanted

    @support.needs_python
    def test_a_real_program(self):
        callgrind, pstats, collapsed, jsonl = self.profile("callgrind", "pstats", "collapsed", "jsonl")
        total, wanted = self.compare(callgrind, pstats)
        self.assertEqual(total[0], cli.samples_in(collapsed))
        self.assertEqual(total[2], cpu_time(jsonl, lambda function: True))
        self.assertEqual(sum(costs[2] for name, costs in annotate(callgrind, "no")[1].items() if name.endswith(":leaf")),
                         cpu_time(jsonl, "leaf".__eq__))
        self.assertTrue(any(name.endswith(":descend") for name in wanted))

    @support.needs_python
    def test_lines_of_a_real_program(self):
        callgrind, collapsed = self.profile("callgrind", "collapsed")
        with open(collapsed) as file:
            source = re.search(r"work \(([^)]+/busy\.py):", file.read()).group(1)
        # The program is gone, and was in a root of its own.
        copy = self.path("root") + source
        os.makedirs(os.path.dirname(copy))
        shutil.copy(os.path.join(support.TARGETS, "busy.py"), copy)
        with open(copy) as file:
            text = dict(enumerate(file.read().splitlines(), 1))
        lines, calls = by_line(collapsed, source)
        shown, shown_calls = beside_source(callgrind, source, self.path("root"))
        self.assertEqual({line: count for line, count in shown.items() if count}, {text[line]: count for line, count in lines.items()})
        self.assertEqual(set(shown_calls), {text[line] for line in calls})
        for line, callers in calls.items():
            # Of two functions that call on one line, callgrind_annotate shows one.
            self.assertIn(shown_calls[text[line]], callers.values(), text[line])
        self.assertGreater(shown["    return n * n % 7"], 0)
        self.assertGreater(shown_calls["            descend(depth, me)"]["descend"], 0)
        self.assertEqual(shown_calls["    return descend(n - 1, me) + leaf(n)"]["descend"], 0)

    def test_shapes(self):
        for kind, samples, ns in (("deep2000", 500, 500000000), ("one", 1, 1000000), ("huge", 599660, 599660000000)):
            with self.subTest(kind=kind):
                paths = [callgraphs.write_shape(kind, name, self.path(kind + "." + name)) for name in ("callgrind", "pstats")]
                self.assertEqual(self.compare(*paths)[0], (samples, ns))

    def test_hostile(self):
        path = callgraphs.write_shape("hostile", "callgrind", self.path("a.callgrind"))
        total, self_costs = annotate(path, "no")
        self.assertEqual(total, (10699, 7759000000))
        self.assertEqual(tuple(map(sum, zip(*self_costs.values()))), total)
        self.assertEqual(self_costs["/srv/app/server.py:Handler.handle"], (140, 140000000))
        self.assertEqual(annotate(path, "yes")[1]["/srv/app/work.py:fib"], (1379, 1379000000))

    def test_empty(self):
        path = callgraphs.write_shape("empty", "callgrind", self.path("a.callgrind"))
        self.assertEqual(annotate(path, "yes")[0], (0, 0))

    def test_source_lines_and_accounting(self):
        path = callgraphs.write_shape("hostile", "callgrind", self.path("a.callgrind"))
        done = callgraphs.run("callgrind_annotate", "--auto=yes", "--tree=both", path)
        self.assertEqual(done.stderr, "")
        self.assertIn("lost: torn: 7", open(path).read())


PROGRAM = """
#include "inlined.h"
static int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
static int odd(int n);
static int even(int n) { return n == 0 ? 1 : odd(n - 1); }
static int odd(int n) { return n == 0 ? 0 : even(n - 1); }
int main(void) {
	volatile int sum = fib(12);
	for (int i = 0; i < 200; i++)
		sum += work(i) + (i % 3 ? 0 : even(20));
	return 0;
}
"""
INLINED = """
static inline int __attribute__((always_inline)) square(int x) { int r = 0; for (int i = 0; i < x; i++) r += i * x; return r; }
static int __attribute__((noinline)) work(int n) { return square(n) + square(n / 2); }
"""
ROW = re.compile(r"^ *([\d,]+)  (.*)$")


@callgraphs.needs("valgrind")
@callgraphs.needs("gcc")
class Valgrind(cli.Folder):
    """callgrind's own files, of a real program: what we read of them is what callgrind_annotate says."""

    def setUp(self):
        super().setUp()
        for name, text in (("program.c", PROGRAM), ("inlined.h", INLINED)):
            with open(self.path(name), "w") as file:
                file.write(text)
        callgraphs.run("gcc", "-g", "-O1", "-fno-optimize-sibling-calls", "-o", self.path("program"), self.path("program.c"))

    def record(self, *options):
        path = self.path("callgrind.out")
        callgraphs.run("valgrind", "--tool=callgrind", "--callgrind-out-file=" + path, *options, self.path("program"))
        return path

    def annotated(self, path, event, inclusive):
        """{file:function: cost}, and the whole."""
        done = callgraphs.run("callgrind_annotate", "--threshold=100", "--auto=no", "--show-percs=no", "--inclusive=" + inclusive,
                              "--show=" + event, "--sort=" + event, path)
        costs = {}
        for match in filter(None, map(ROW.match, done.stdout.splitlines())):
            cost, name = int(match.group(1).replace(",", "")), re.sub(r" \[[^]]*\]$", "", match.group(2))
            costs[name] = costs.get(name, 0) + cost
        return costs, costs.pop("PROGRAM TOTALS")

    def ours(self, path, *options):
        done = self.sampled("report", path, "--json", *options)
        self.assertEqual(done.returncode, cli.DONE, done.stderr)
        report = json.loads(done.stdout)
        folder = self.path("")
        rows = {}
        for function in report["functions"]:
            file = "???" if function["file"] == "~" else function["file"].replace(folder, "")
            name = "%s:%s" % (file, function["function"])
            rows[name] = function
        return rows, report

    def compare(self, path, event="Ir", *options):
        own, whole = self.annotated(path, event, "no")
        rows, report = self.ours(path, *options)
        self.assertEqual({name: row["tottime"] for name, row in rows.items() if row["tottime"]},
                         {name.replace(self.path(""), ""): cost for name, cost in own.items() if cost})
        self.assertEqual(sum(row["tottime"] for row in rows.values()), sum(own.values()))
        inclusive, _ = self.annotated(path, event, "yes")
        for name, cost in inclusive.items():
            name = name.replace(self.path(""), "")
            # callgrind_annotate adds up what recursion calls again and again.
            if name in rows and "'2" not in name and cost <= whole and rows[name]["ncalls"]:
                self.assertEqual(rows[name]["cumtime"], cost, name)
            if name in rows:
                self.assertLessEqual(rows[name]["cumtime"], whole, name)
        return rows

    def test_plain(self):
        path = self.record()
        rows = self.compare(path)
        # Inlined code is a function of the file it stands in.
        self.assertEqual(rows["program.c:main"]["ncalls"], 1)
        self.assertEqual(rows["inlined.h:work"]["ncalls"], 200)
        self.assertEqual(rows["program.c:fib'2"]["ncalls"], 464)
        self.assertEqual(rows["program.c:fib'2"]["pcalls"], 2)
        self.assertEqual(rows["program.c:fib"]["line"], 3)
        # Written and read again it is what it was.
        done = self.sampled("convert", path, "-o", "again.callgrind")
        self.assertEqual(done.returncode, cli.DONE, done.stderr)
        again, _ = self.ours("again.callgrind")
        figures = lambda rows: {name: (row["tottime"], row["cumtime"]) for name, row in rows.items()}
        self.assertEqual(figures(again), figures(rows))
        self.assertEqual(self.annotated(self.path("again.callgrind"), "Ir", "no")[1], self.annotated(path, "Ir", "no")[1])

    def test_instructions_jumps_and_several_events(self):
        path = self.record("--dump-instr=yes", "--collect-jumps=yes", "--cache-sim=yes", "--branch-sim=yes")
        self.compare(path)
        self.assertIn("other events (--value): Dr Dw", self.sampled("report", path).stdout.decode())

    def test_names_and_positions_in_full(self):
        self.compare(self.record("--compress-strings=no", "--compress-pos=no"))

    def test_several_parts(self):
        path = self.record("--combine-dumps=yes", "--dump-after=work")
        with open(path) as file:
            self.assertIn("\npart: 200\n", file.read())
        rows, report = self.ours(path)
        self.assertEqual(rows["inlined.h:work"]["ncalls"], 200)
        self.assertEqual(report["tottime"], sum(row["tottime"] for row in rows.values()))


if __name__ == "__main__":
    unittest.main()
