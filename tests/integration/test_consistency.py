# SPDX-License-Identifier: Apache-2.0
"""Whatever format a profile is written in, it says the same: every writable format of `sampled convert --help`, those of later days too.

Of one input the same bytes come out each time; what can be read back has the same stacks and the same sum; and in what is written self
values add up to the whole, and no callee has more than its caller. Formats that need time order are written from a recording of the same
profile."""
import collections
import json
import marshal
import os
import re
import subprocess
import unittest
import xml.etree.ElementTree

import cli
import htmlprofile
import shapes
import support

MAKE_PROFILE = os.path.join(support.TOP, os.environ.get("BUILD", "build"), "tests/browser/make_profile")
BIG = "huge" if support.LONG else "large"  # 200,000 nodes, or half as many
SHAPES = ("hostile", BIG, "deep2000", "one")
SVG = "{http://www.w3.org/2000/svg}"


JOB = """
import sys, time

def f(n):
    return n if n < 2 else f(n - 1) + f(n - 2)

def g():
    return sum(i * i for i in range(20000))

end = time.time() + float(sys.argv[1])
while time.time() < end:
    f(16)
    g()
"""


def formats(which):
    text = subprocess.run([support.SAMPLED, "convert", "--help"], capture_output=True, text=True, check=True).stdout
    return re.search(which + r": ([^.]*)\.", text).group(1).split()


def stacks(data):
    """{(function, …) root first: count}, all threads together; lines of one function are one."""
    sums = collections.Counter()
    for line in data.decode().splitlines():
        if line.startswith("# value: "):
            continue
        stack, _, count = line.rpartition(" ")
        frames = [support.frame_of(part)[0] for part in stack.split(";")]
        while frames and re.match(r'(process|interpreter|thread) ', frames[0]):
            frames.pop(0)
        sums[tuple(frames)] += int(count)
    return sums


def cut(before):
    """As Dask's profiles have deep stacks: the outermost 398 frames, that something was cut, and the innermost one."""
    after = collections.Counter()
    for stack, count in before.items():
        after[stack if len(stack) <= 400 else (*stack[:398], "<truncated>", stack[-1])] += count
    return after


def whole(data):
    return sum(int(line.rpartition(b" ")[2]) for line in data.splitlines() if not line.startswith(b"#"))


class Consistency(cli.Folder):
    @classmethod
    def setUpClass(cls):
        subprocess.run(["make", "-s", "browser"], cwd=support.TOP, check=True, stdout=subprocess.DEVNULL, env={**os.environ, "MAKEFLAGS": ""})

    def make(self, shape):
        """The profile as collapsed stacks and as a recording, which must have the same stacks. The first one's name."""
        name, recording = shape + ".collapsed", shape + ".sampled"
        if shape == "real":
            with open(self.path("job.py"), "w") as file:
                file.write(JOB)
            python = cli.python_for_all().argv
            done = self.sampled("run", "-q", "-o", name, "--record", recording, "--", *python, self.path("job.py"), support.LIFE_S)
            self.assertEqual(done.returncode, 0, done.stderr)
        else:
            for path, form in ((name, "collapsed"), (recording, "recording")):
                subprocess.run([MAKE_PROFILE, shape, self.path(path)], check=True, env={**os.environ, "FORMAT": form})
        self.assertEqual(self.convert(recording, "collapsed", "recorded.collapsed").returncode, cli.DONE)
        self.assertEqual(stacks(self.read("recorded.collapsed")), stacks(self.read(name)), shape)
        return name

    def read(self, name):
        with open(self.path(name), "rb") as file:
            return file.read()

    def convert(self, source, name, to):
        return self.sampled("convert", source, "-f", name, "-o", to, timeout=120)

    def written(self, source, name):
        """The bytes in this format, which must be the same twice."""
        done = self.convert(source, name, "first.out")
        if done.returncode == cli.USAGE and b"no time order" in done.stderr:
            source = source.replace(".collapsed", ".sampled")
            done = self.convert(source, name, "first.out")
        self.assertEqual((done.returncode, done.stderr), (cli.DONE, b""), name)
        self.assertEqual(self.convert(source, name, "second.out").returncode, cli.DONE)
        data = self.read("first.out")
        self.assertEqual(data, self.read("second.out"), "%s: the same input gives the same bytes" % name)
        return data

    def functions(self, path):
        """What a report says of each."""
        done = self.sampled("report", path, "--json", timeout=120)
        self.assertEqual(done.returncode, cli.DONE, done.stderr)
        return sorted(json.loads(done.stdout)["functions"], key=json.dumps)

    def check_back(self, shape, before, name):
        """What is read back from first.out."""
        done = self.convert("first.out", "collapsed", "back.collapsed")
        if done.returncode == cli.USAGE and b"no stacks" in done.stderr:  # function totals only: they stay what they are
            self.assertEqual(self.convert("first.out", name, "again.out").returncode, cli.DONE)
            # A dict's order says nothing, nor does that of callgrind's functions, which the reader knows the lines of.
            content = {"pstats": lambda path: marshal.loads(self.read(path)), "callgrind": self.functions}.get(name, self.read)
            self.assertEqual(content("again.out"), content("first.out"))
            return
        self.assertEqual((done.returncode, done.stderr), (cli.DONE, b""))
        after = self.read("back.collapsed")
        if name == "chrome":  # spans, which are no samples: they have the time
            self.assertEqual(self.sampled("convert", shape + ".sampled", "-o", "time.collapsed", "--value", "wall").returncode, cli.DONE)
            time, spans = whole(self.read("time.collapsed")), whole(after)
            self.assertLessEqual(spans, time * (1.05 if shape == "real" else 1), shape)  # over a tick that was missed a span goes on
            if shape not in ("hostile", "real"):  # of those some time has no frame, and a sample may weigh nothing
                self.assertAlmostEqual(spans / time, 1, places=3, msg=shape)
                self.assertLessEqual(set(before), set(stacks(after)), shape)
            return
        if name == "dask":
            before = cut(before)
        self.assertEqual(before.total(), whole(after), "%s, %s" % (name, shape))
        if shape != "hostile":  # names there have characters that not all formats have
            self.assertEqual(before, stacks(after), "%s, %s" % (name, shape))

    def check_flamegraph(self, data, total):
        profile = htmlprofile.Profile(data)
        self.assertEqual(sum(thread.total("samples") for thread in profile.threads), total)
        self.assertEqual(profile.facts["in_profile"], total)

    def check_svg(self, data, total):
        """Rectangles lie within one of the row above; each row's samples are at most the whole; the first has it all."""
        root = xml.etree.ElementTree.fromstring(data)
        rows = collections.defaultdict(list)
        for group in root.iter(SVG + "g"):
            box, title = group.find(SVG + "rect"), group.find(SVG + "title").text
            count = re.search(r", ([\d,]+) samples?, [^,]*$", title) or re.search(r", ([\d,]+) samples?,", title)
            rows[float(box.get("y"))].append((float(box.get("x")), float(box.get("width")), int(count.group(1).replace(",", ""))))
        if total == 0:
            self.assertEqual(rows, {})
            return
        tops = sorted(rows)
        self.assertEqual([box[2] for box in rows[tops[0]]], [total])
        for above, below in zip(tops, tops[1:]):
            self.assertEqual(below - above, 18)
            self.assertLessEqual(sum(box[2] for box in rows[below]), sum(box[2] for box in rows[above]))
            for x, width, count in rows[below]:
                within = [box for box in rows[above] if box[0] <= x + 0.01 and x + width <= box[0] + box[1] + 0.6]
                self.assertTrue(within, (x, width))
                self.assertLessEqual(count, max(box[2] for box in within))

    def check_text(self, data, total):
        text = data.decode()
        self.assertRegex(text, r"samples in this profile +%s\b" % format(total, ","))
        table = text.split("\nFUNCTIONS")[1].split("\nHEAVIEST")[0]
        shares = 0
        for match in re.finditer(r"^ *([\d,.]+) +([\d.]+) +([\d,.]+) +([\d.]+) ", table, re.M):
            own, own_share, below, below_share = (float(group.replace(",", "")) for group in match.groups())
            self.assertLessEqual(own, below)
            self.assertLessEqual(own_share, below_share)
            self.assertLessEqual(below_share, 100)
            shares += own_share
        self.assertLess(shares, 103)  # of 40 roundings and more

    def check_chrome(self, data, total):
        told = json.loads(data)
        shapes.chrome_spans(self, told)
        self.assertEqual(told["otherData"]["facts"]["in_profile"], total)

    def check_firefox(self, data, total):
        """A stack has what ends in it and what its callees have; together they have every sample but those without a frame."""
        taken = 0
        for thread in json.loads(data)["threads"]:
            samples, prefixes = thread["samples"], thread["stackTable"]["prefix"]
            weights = samples["weight"] or [1] * samples["length"]
            taken += sum(weights)
            own, below, roots = collections.Counter(), collections.Counter(), 0
            for stack, weight in zip(samples["stack"], weights):
                own[stack] += weight
            for stack in reversed(range(len(prefixes))):  # callers come before their callees
                count = own[stack] + below[stack]
                if prefixes[stack] is None:
                    roots += count
                else:
                    self.assertLess(prefixes[stack], stack)
                    below[prefixes[stack]] += count
            self.assertEqual(roots + own[None], sum(weights))
        self.assertEqual(taken, total)

    def check_collapsed(self, data, total):
        self.assertEqual(whole(data), total)

    def check_shape(self, shape):
        if shape == BIG and support.QUICK:
            self.skipTest("100,000 nodes take a minute: in the full run")
        source = self.make(shape)
        before = stacks(self.read(source))
        total = before.total()
        readable = formats("Readable")
        for name in formats("Writable"):
            with self.subTest(format=name, shape=shape):
                data = self.written(source, name)
                getattr(self, "check_" + name, lambda *_: None)(data, total)
                if name in readable:
                    self.check_back(shape, before, name)

    @support.needs_python
    def test_real_program(self):
        self.check_shape("real")

    def test_empty(self):
        """An empty collapsed file is no format's, so this one is not converted but written."""
        for name in formats("Writable"):
            with self.subTest(format=name):
                for to in ("first.out", "second.out"):
                    subprocess.run([MAKE_PROFILE, "empty", self.path(to)], check=True, env={**os.environ, "FORMAT": name})
                self.assertEqual(self.read("first.out"), self.read("second.out"))
                getattr(self, "check_" + name, lambda *_: None)(self.read("first.out"), 0)

    def test_merging_adds_up(self):
        self.make("one")
        self.make("deep2000")
        for name in formats("Writable"):
            with self.subTest(format=name):
                for suffix in (".collapsed", ".sampled"):
                    parts = [part + suffix for part in ("one", "deep2000", "deep2000")]
                    done = self.sampled("convert", *parts, "-f", name, "-o", "sum.out")
                    if done.returncode != cli.USAGE or b"no time order" not in done.stderr:
                        break
                self.assertEqual(done.returncode, cli.DONE, done.stderr)
                getattr(self, "check_" + name, lambda *_: None)(
                    self.read("sum.out"), whole(self.read("one.collapsed")) + 2 * whole(self.read("deep2000.collapsed")))


for each in SHAPES:
    setattr(Consistency, "test_" + each, lambda self, shape=each: self.check_shape(shape))


if __name__ == "__main__":
    unittest.main()
