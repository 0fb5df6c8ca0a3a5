# SPDX-License-Identifier: Apache-2.0
"""Pushing to real servers: what was pushed is read back through the server's own query API, and adds up to what was taken, exactly."""
import base64
import contextlib
import datetime
import json
import os
import subprocess
import time
import unittest
import urllib.parse
import urllib.request

import profiles
import pushing
import support

PARCA = os.path.join(support.CACHE, "consumers", "parca", "parca-v0.28.0")
DESCRIPTORS = os.path.join(profiles.CONSUMERS, "profile.desc")
EDIT = os.path.join(support.TOP, "tests", "consumers", "pprof_edit.py")
PERIOD_NS = 1000000  # of all profiles here
TYPES = (("samples", "count"), ("wall", "nanoseconds"), ("runnable", "nanoseconds"), ("gil", "nanoseconds"))
# Only what the kernel told is called cpu.
TYPES_WITH_CPU = (*TYPES[:2], ("cpu", "nanoseconds"), *TYPES[2:], ("run_wait", "nanoseconds"))


def get(url):
    with urllib.request.urlopen(url, timeout=30) as answer:
        return json.load(answer)


def edit(what, path, *more):
    return profiles.run(profiles.PYTHON, EDIT, what, DESCRIPTORS, path, *more)


def times():
    """From an hour ago to in an hour."""
    now = datetime.datetime.now(datetime.timezone.utc)
    return [(now + datetime.timedelta(hours=hours)).strftime("%Y-%m-%dT%H:%M:%SZ") for hours in (-1, 1)]


@unittest.skipUnless(os.path.exists(PARCA), "Parca is not installed: tests/consumers/setup-parca")
@profiles.needs(profiles.PYTHON, "protobuf for Python")
class Parca(pushing.Pushing):
    @contextlib.contextmanager
    def server(self):
        with open(self.path("parca.yaml"), "w") as file:
            file.write("object_storage:\n  bucket:\n    type: FILESYSTEM\n    config:\n      directory: %s\n" % self.path("bucket"))
        url = "http://127.0.0.1:%d" % pushing.closed_port()
        with open(self.path("parca.log"), "wb") as log:
            process = subprocess.Popen([PARCA, "--config-path=parca.yaml", "--http-address=" + url[len("http://"):], "--log-level=warn"],
                                       cwd=self.folder, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        try:
            support.wait_until(lambda: self.is_up(url), "Parca answers", 60)
            yield url
        finally:
            process.kill()
            process.wait()

    @staticmethod
    def is_up(url):
        try:
            get(url + "/api/profiles/types")
            return True
        except (OSError, ValueError):
            return False

    def total(self, url, kind, labels=""):
        """What all profiles of a type add up to, merged by the server and handed out as pprof. It takes a count for so many periods of a
        millisecond."""
        query = "sampled:%s:%s:wall:nanoseconds:delta{%s}" % (*kind, labels)
        start, end = times()
        answer = get(url + "/api/profiles/query?" + urllib.parse.urlencode(
            {"mode": "MODE_MERGE", "merge.query": query, "merge.start": start, "merge.end": end, "report_type": "REPORT_TYPE_PPROF"}))
        with open(self.path("back.pb.gz"), "wb") as file:
            file.write(base64.b64decode(answer["pprof"]))
        total = sum(json.loads(edit("sum", self.path("back.pb.gz"))))
        self.assertTrue(kind[1] != "count" or total % PERIOD_NS == 0, total)
        return total // PERIOD_NS if kind[1] == "count" else total

    def test_totals_of_the_spool(self):
        """Profiles of known shape, of two intervals, by `sampled push`."""
        paths = [profiles.make(kind, "pprof", self.path(kind + ".pb.gz")) for kind in ("one", "deep2000")]
        found = [profiles.strict("pprof", DESCRIPTORS, path) for path in paths]
        self.assertEqual([tuple(map(tuple, each["types"])) for each in found], [TYPES, TYPES])
        sums = [each["sums"] for each in found]
        # Their time is that of a test; the store is asked for the present.
        packed = [edit("at", path, time.time_ns() - i * 60 * 10**9) for i, path in enumerate(paths)]
        with self.server() as url:
            pushing.write_spool(self.spool, packed)
            done = self.once(url, "parca")
            self.assertEqual((done.returncode, done.stderr, self.left()), (0, b"", []))
            for i, kind in enumerate(TYPES):
                with self.subTest(kind[0]):
                    self.assertEqual(self.total(url, kind), sums[0][i] + sums[1][i])
                    self.assertEqual(self.total(url, kind, 'host="h1",unit="a,b.service",service_name="web shop"'), sums[0][i] + sums[1][i])
                    self.assertEqual(self.total(url, kind, 'host="h2"'), 0)

    @support.needs_python
    def test_totals_of_run(self):
        program = "import time\nwhile time.process_time() < 1.5: sum(range(100))"
        with self.server() as url:
            done = self.sampled("run", "-r", "1000", "-f", "pprof", "-o", self.path("own.pb.gz"), "--push", url, "--push-type", "parca", "-q", "--",
                                *support.newest().argv, "-c", program)
            self.assertEqual((done.returncode, done.stderr), (0, b""))
            found = profiles.strict("pprof", DESCRIPTORS, self.path("own.pb.gz"))
            own = found["sums"]
            self.assertEqual(tuple(map(tuple, found["types"])), TYPES_WITH_CPU)
            self.assertGreater(own[0], 0)
            for i, kind in enumerate(TYPES_WITH_CPU):
                self.assertEqual(self.total(url, kind), own[i], kind)


if __name__ == "__main__":
    unittest.main()
