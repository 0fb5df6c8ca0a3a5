# SPDX-License-Identifier: Apache-2.0
"""OTLP profiles: read by protoc and a strict reader on the published descriptors, and by an OpenTelemetry Collector's decoder."""
import os
import re
import shutil
import subprocess
import unittest

import cli
import profiles
import support

DESCRIPTORS = os.path.join(profiles.CONSUMERS, "otlp.desc")
OTLPREAD = os.path.join(profiles.CONSUMERS, "otlpread", "otlpread")
REQUEST = "opentelemetry.proto.collector.profiles.v1development.ExportProfilesServiceRequest"
needs_strict = profiles.needs(DESCRIPTORS, "opentelemetry-proto for Python")


class Shapes(cli.Folder):
    @needs_strict
    def test_strict_reader(self):
        for kind in profiles.SHAPES:
            with self.subTest(kind):
                path = profiles.make(kind, "otlp", self.path(kind + ".otlp"))
                samples, wall_ns = profiles.truth(kind, self.folder)
                found = profiles.strict("otlp", path)
                if kind == "empty":
                    self.assertEqual((found["sums"], found["resources"]), ({}, []))
                    continue
                self.assertEqual((found["sums"]["samples/count"], found["sums"]["wall/nanoseconds"]), (samples, wall_ns))
                self.assertEqual(found["shown"], ["wall"])
                self.assertLessEqual(max(found["sums"]["runnable/nanoseconds"], found["sums"]["gil/nanoseconds"]), wall_ns)
                if kind == "hostile":
                    self.assertEqual(found["resources"][0]["service.name"], "server.py")
                    self.assertEqual(found["facts"]["sampled.lost_torn"], 7)
                    self.assertIsInstance(found["facts"]["sampled.asked_hz"], float)

    @needs_strict
    @unittest.skipUnless(shutil.which("protoc"), "protoc is not installed")
    def test_protoc_decodes(self):
        path = profiles.make("hostile", "otlp", self.path("x.otlp"))
        with open(path, "rb") as file:
            done = subprocess.run(["protoc", "--descriptor_set_in=" + DESCRIPTORS, "--decode=" + REQUEST], stdin=file,
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=True)
        self.assertEqual(done.stderr, b"")
        self.assertNotRegex(done.stdout, rb"(?m)^\s*\d+:")  # a field that the message has not
        self.assertIn(rb"window.hacked=1</script>", done.stdout)

    @profiles.needs(OTLPREAD, "a Collector's decoder")
    def test_collector_prints_it(self):
        for kind in profiles.SHAPES:
            if kind == "huge":  # the exporter's text of it has 100 MB
                continue
            with self.subTest(kind):
                path = profiles.make(kind, "otlp", self.path(kind + ".otlp"))
                samples, wall_ns = profiles.truth(kind, self.folder)
                text = profiles.run(OTLPREAD, path).decode()
                values = [int(value) for value in re.findall(r"(?m)^        Values: \[(\d+)\]$", text)]
                self.assertEqual(len(values), int(re.match(r"samples (\d+)\n", text).group(1)))
                parts = re.split(r"(?m)^Profile #\d+$", text)[1:]
                sums = [sum(map(int, re.findall(r"(?m)^        Values: \[(\d+)\]$", part))) for part in parts]
                self.assertEqual(sums[:2], [] if kind == "empty" else [wall_ns, samples])
                if kind == "one":
                    self.assertIn("-> thread.name: Str(MainThread)", text)
                    self.assertIn("-> service.name: Str(one.py)", text)


@support.needs_python
class RealProgram(cli.Folder):
    @needs_strict
    def test_a_running_program(self):
        with support.Target(support.newest(), "demo.py") as target:
            done = self.sampled("attach", target.pid, "-d", "1", "-o", "x.otlp", "-o", "x.collapsed")
            self.assertEqual(done.returncode, 0, done.stderr.decode())
            pid = target.pid
        samples = cli.samples_in(self.path("x.collapsed"))
        found = profiles.strict("otlp", self.path("x.otlp"))
        self.assertEqual(found["sums"]["samples/count"], samples)
        self.assertEqual(found["resources"][0]["service.name"], "demo.py")
        self.assertEqual(found["resources"][0]["process.pid"], pid)
        self.assertEqual(found["resources"][0]["process.runtime.name"], "cpython")

    @needs_strict
    def test_from_another_format(self):
        """An import has its own values, and what is not known of it is not made up."""
        profiles.make("hostile", "pprof", self.path("x.pb.gz"))
        done = self.sampled("convert", "x.pb.gz", "-o", "x.otlp")
        self.assertEqual((done.returncode, done.stderr), (0, b""))
        samples, wall_ns = profiles.truth("hostile", self.folder)
        found = profiles.strict("otlp", self.path("x.otlp"))
        self.assertEqual((found["sums"]["samples/count"], found["sums"]["wall/nanoseconds"]), (samples, wall_ns))
        self.assertEqual(found["facts"]["sampled.lost_torn"], 7)
