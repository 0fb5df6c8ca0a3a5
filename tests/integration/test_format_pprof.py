# SPDX-License-Identifier: Apache-2.0
"""pprof files, written and read: by `go tool pprof`, protoc, and a strict reader on the published profile.proto."""
import os
import re
import shutil
import subprocess
import unittest

import cli
import profiles
import support

DESCRIPTORS = os.path.join(profiles.CONSUMERS, "profile.desc")
needs_go = unittest.skipUnless(profiles.GO, "Go is not installed, and so no `go tool pprof`")
needs_strict = profiles.needs(DESCRIPTORS, "Python's protobuf with profile.proto")

GO_PROGRAM = """
package main

import (
	"os"
	"runtime"
	"runtime/pprof"
)

var kept [][]byte

func spin(n int) (sum int) {
	for i := 0; i < n; i++ {
		sum += i * i
	}
	return
}

func main() {
	cpu, _ := os.Create("cpu.pb.gz")
	pprof.StartCPUProfile(cpu)
	for i := 0; i < 2100; i++ { // a second or more, on however busy a machine
		spin(2000000)
	}
	pprof.StopCPUProfile()
	cpu.Close()
	runtime.MemProfileRate = 1
	for i := 0; i < 100; i++ {
		kept = append(kept, make([]byte, 5000))
	}
	runtime.GC()
	for _, name := range []string{"heap", "goroutine"} {
		file, _ := os.Create(name + ".pb.gz")
		pprof.Lookup(name).WriteTo(file, 0)
		file.Close()
	}
}
"""


def raw_sums(path):
    """Types and sums of all samples by `go tool pprof -raw`."""
    lines = iter(profiles.run(profiles.GO, "tool", "pprof", "-raw", path).decode().split("\n"))
    for line in lines:
        if line == "Samples:":
            break
    types = [name.replace("[dflt]", "") for name in next(lines).split()]
    sums = [0] * len(types)
    for line in lines:
        if line == "Locations":
            break
        match = re.fullmatch(r"((?: *-?\d+)+): *[\d ]*", line)
        if match:
            sums = [sum_ + int(value) for sum_, value in zip(sums, match.group(1).split())]
    return dict(zip(types, sums))


def without_pid(lines):
    return sorted(re.sub(r'^thread \d+ "MainThread"', "main", line).replace("interpreter 2;", "") for line in lines)


class Shapes(cli.Folder):
    def test_go_tool_pprof_adds_up_the_same(self):
        if not profiles.GO:
            self.skipTest("Go is not installed, and so no `go tool pprof`")
        for kind in profiles.SHAPES:
            with self.subTest(kind):
                path = profiles.make(kind, "pprof", self.path(kind + ".pb.gz"))
                samples, wall_ns = profiles.truth(kind, self.folder)
                sums = raw_sums(path)
                self.assertEqual(list(sums), ["samples/count", "wall/nanoseconds", "runnable/nanoseconds", "gil/nanoseconds"])
                self.assertEqual((sums["samples/count"], sums["wall/nanoseconds"]), (samples, wall_ns))
                self.assertLessEqual(max(sums["runnable/nanoseconds"], sums["gil/nanoseconds"]), wall_ns)
                if kind == "huge":
                    continue
                profiles.run(profiles.GO, "tool", "pprof", "-traces", path)
                # As pprof itself writes the profile, it is read with the same sums.
                again = self.path(kind + ".again.pb.gz")
                profiles.run(profiles.GO, "tool", "pprof", "-proto", "-output", again, path)
                done = self.sampled("convert", again, "-o", kind + ".third.pb.gz")
                self.assertEqual((done.returncode, done.stderr), (0, b""))
                self.assertEqual(raw_sums(self.path(kind + ".third.pb.gz")), sums)

    @needs_go
    def test_top_shows_names_and_shares(self):
        path = profiles.make("hostile", "pprof", self.path("x.pb.gz"))
        top = profiles.run(profiles.GO, "tool", "pprof", "-top", "-nodecount=10", "-unit=ms", path).decode()
        # The heaviest is pause, of 1,500 of the 7,759 ms that the profile has.
        _samples, wall_ns = profiles.truth("hostile", self.folder)
        self.assertIn("Type: wall", top)
        self.assertIn("of %dms total" % (wall_ns // profiles.MS), top)
        self.assertRegex(top, r"(?m)^ +1500ms +\d+\.\d+% .* pause$")
        self.assertIn("lost_torn: 7", top)
        cum = profiles.run(profiles.GO, "tool", "pprof", "-top", "-cum", "-sample_index=samples", "-tagfocus=tid=4712", path).decode()
        self.assertRegex(cum, r"fib\n")

    @needs_strict
    def test_strict_reader(self):
        for kind in profiles.SHAPES:
            with self.subTest(kind):
                path = profiles.make(kind, "pprof", self.path(kind + ".pb.gz"))
                samples, wall_ns = profiles.truth(kind, self.folder)
                found = profiles.strict("pprof", DESCRIPTORS, path)
                self.assertEqual(found["sums"][:2], [samples, wall_ns])
                if kind == "hostile":
                    self.assertIn("</script><script>window.hacked=1</script>", found["names"])
                    self.assertIn("lost_torn: 7 (0.07 %)", found["comments"])
                if kind == "huge":
                    continue
                # What was read from such a file is as good.
                self.sampled("convert", path, "-o", "again.pb.gz")
                again = profiles.strict("pprof", DESCRIPTORS, self.path("again.pb.gz"))
                if kind == "native":  # places without names have become functions, called by their addresses
                    self.assertEqual([name for name in again["names"] if not name.startswith("<0x")], found["names"])
                    again["names"] = found["names"]
                for key in ("types", "sums", "samples", "threads", "names"):
                    self.assertEqual(again[key], found[key])

    @unittest.skipUnless(shutil.which("protoc"), "protoc is not installed")
    @needs_strict
    def test_protoc_decodes(self):
        path = profiles.make("hostile", "pprof", self.path("x.pb.gz"))
        content = profiles.run("gzip", "-dc", path)
        done = subprocess.run(["protoc", "--descriptor_set_in=" + DESCRIPTORS, "--decode=perftools.profiles.Profile"], input=content,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=True)
        self.assertEqual(done.stderr, b"")
        self.assertNotRegex(done.stdout, rb"(?m)^\s*\d+:")  # a field that the message has not

    def test_sums_survive_reading(self):
        for kind in profiles.SHAPES:
            with self.subTest(kind):
                path = profiles.make(kind, "pprof", self.path(kind + ".pb.gz"))
                profiles.make(kind, "collapsed", self.path(kind + ".collapsed"))
                done = self.sampled("convert", path, "-f", "collapsed", "-o", "-")
                with open(self.path(kind + ".collapsed"), "rb") as file:
                    want = sorted(file.read().decode().splitlines())
                have = sorted(done.stdout.decode().splitlines())
                if kind == "hostile":  # its main thread is numbered by the process; the interpreter is a label that is not kept
                    want, have = without_pid(want), without_pid(have)
                if kind == "native":  # a reader of pprof takes functions as it finds them, and addresses in its own way
                    want = [re.sub(r"([^; ]+)\+(0x[0-9a-f]+)", r"<\2> (\1:0)", re.sub(r" \([\w.]+\.so[\w.]*\)", "", line)) for line in want]
                    want, have = sorted(want), sorted(have)
                self.assertTrue(have == want)  # no words: they would be as long as the files

    def test_packed_unpacked_and_through_a_pipe(self):
        path = profiles.make("hostile", "pprof", self.path("x.pb.gz"))
        with open(self.path("x.pb"), "wb") as file:
            file.write(profiles.run("gzip", "-dc", path))
        want = self.sampled("convert", path, "-f", "collapsed", "-o", "-").stdout
        self.assertTrue(want)
        for name in ("x.pb.gz", "x.pb"):
            self.assertEqual(self.sampled("convert", name, "-f", "collapsed", "-o", "-").stdout, want)
            with open(self.path(name), "rb") as file:
                cat = subprocess.Popen(["cat"], stdin=file, stdout=subprocess.PIPE)
                done = self.sampled("convert", "-", "-f", "collapsed", "-o", "-", stdin=cat.stdout)
                cat.stdout.close()
                cat.wait()
                self.assertEqual((done.stdout, done.stderr), (want, b""), name)
        with open(path, "rb") as file:
            cut = file.read()[:-100]
        with open(self.path("cut.pb.gz"), "wb") as file:
            file.write(cut)
        self.assert_error(self.sampled("convert", "cut.pb.gz", "-f", "collapsed", "-o", "-"), cli.FAILED, "cut.pb.gz", "compressed data")


@needs_go
class GoProgram(cli.Folder):
    """Profiles that Go's own runtime writes."""

    def setUp(self):
        super().setUp()
        with open(self.path("main.go"), "w") as file:
            file.write(GO_PROGRAM)
        env = dict(os.environ, GOFLAGS="", GO111MODULE="off")
        profiles.run(profiles.GO, "build", "-o", "program", "main.go", cwd=self.folder, env=env)
        profiles.run(self.path("program"), cwd=self.folder)

    def test_cpu(self):
        sums = raw_sums(self.path("cpu.pb.gz"))
        self.assertGreater(sums["samples/count"], 20)
        self.assertEqual(self.convert("cpu"), sums)
        done = self.sampled("convert", "cpu.pb.gz", "-f", "collapsed", "-o", "-")
        lines = support.parse_collapsed(done.stdout)
        self.assertEqual(sum(line.count for line in lines), sums["samples/count"])
        # spin is inlined into main: two functions of one location.
        named = [[frame[0] for frame in line.frames] for line in lines]
        self.assertTrue(any(names[-2:] == ["main.main", "main.spin"] for names in named))
        in_main = sum(line.count for line, names in zip(lines, named) if "main.main" in names)
        self.assertGreater(in_main, 0.8 * sums["samples/count"])

    def test_heap_and_goroutines(self):
        sums = raw_sums(self.path("heap.pb.gz"))
        have = self.convert("heap")
        # The bytes in use are what weighs: the objects stand where samples are counted, by their own name.
        self.assertEqual(have, sums)
        self.assertGreater(sums["inuse_space/bytes"], 100 * 5000)
        self.assertEqual(self.convert("goroutine"), raw_sums(self.path("goroutine.pb.gz")))

    def convert(self, name):
        done = self.sampled("convert", name + ".pb.gz", "-o", name + ".ours.pb.gz")
        self.assertEqual((done.returncode, done.stderr), (0, b""))
        return raw_sums(self.path(name + ".ours.pb.gz"))


@support.needs_python
class RealProgram(cli.Folder):
    @needs_go
    def test_a_running_program(self):
        with support.Target(support.newest(), "demo.py") as target:
            done = self.sampled("attach", target.pid, "-d", "1", "-o", "x.pb.gz", "-o", "x.collapsed")
            self.assertEqual(done.returncode, 0, done.stderr.decode())
        samples = cli.samples_in(self.path("x.collapsed"))
        self.assertGreater(samples, 0)
        sums = raw_sums(self.path("x.pb.gz"))
        self.assertEqual(sums["samples/count"], samples)
        self.assertGreater(sums["wall/nanoseconds"], 0)
        self.assertIn(b"tid:", profiles.run(profiles.GO, "tool", "pprof", "-tags", self.path("x.pb.gz")))
        if os.path.exists(DESCRIPTORS):
            self.assertEqual(profiles.strict("pprof", DESCRIPTORS, self.path("x.pb.gz"))["sums"][0], samples)
