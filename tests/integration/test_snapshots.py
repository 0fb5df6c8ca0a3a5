# SPDX-License-Identifier: Apache-2.0
"""SIGUSR1 writes a snapshot while sampling goes on: whole, numbered, rising, and nothing is lost by it."""
import glob
import os
import re
import signal
import time
import unittest

import htmlprofile
import support

SIGNALS, PAUSE_S = 100, 0.1
AT_LEAST = 10  # snapshots of them


def read(path):
    with open(path, "rb") as file:
        return htmlprofile.Profile(file.read())


def nodes_of(profile):
    """{(tid, path): samples at or below}"""
    return {
        (thread.tid, path): count for thread in profile.threads for path, count in thread.paths().items()
    }


@support.needs_python
class Snapshots(unittest.TestCase):
    def setUp(self):
        self.target = self.enterContext(support.Target(support.newest(), "busy.py", 16))
        self.stem = self.target.path("profile")

    def snapshots(self):
        return sorted(glob.glob(self.stem + ".[0-9]*.html"))

    def test_hundred_signals(self):
        process = support.start_sampled(
            "attach", self.target.pid, "-r", "500", "-f", "flamegraph", "-o", self.stem + ".html"
        )
        support.wait_sampling(process)
        sent = 0
        while sent < SIGNALS or len(self.snapshots()) < AT_LEAST:
            process.send_signal(signal.SIGUSR1)
            sent += 1
            time.sleep(PAUSE_S)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=support.PATIENCE_S)
        self.assertEqual(process.returncode, 0, err)
        printed = out.decode().splitlines()
        snapshots = self.snapshots()
        self.assertEqual(printed, snapshots + [self.stem + ".html"], "names are printed, one a line")
        # Signals that arrive while a snapshot is being written make one more.
        self.assertGreaterEqual(len(snapshots), AT_LEAST)
        self.assertLessEqual(len(snapshots), sent)
        before = {}
        sequence = samples = 0
        for path in snapshots:
            self.assertEqual(os.stat(path).st_mode & 0o777, 0o600)
            profile = read(path)
            self.assertGreater(profile.sequence, sequence, path)
            self.assertEqual(int(re.search(r"\.(\d+)\.html$", path).group(1)), profile.sequence)
            self.assertGreaterEqual(profile.facts["in_profile"], samples, path)
            sequence, samples = profile.sequence, profile.facts["in_profile"]
            now = nodes_of(profile)
            self.assertEqual(sum(now[key] for key in now if key[1] == ()), samples, "totals add up in " + path)
            for key, count in before.items():
                self.assertGreaterEqual(now.get(key, 0), count, "a node fell from one snapshot to the next")
            before = now
        final = read(self.stem + ".html")
        now = nodes_of(final)
        for key, count in before.items():
            self.assertGreaterEqual(now.get(key, 0), count)
        self.assertGreaterEqual(final.facts["in_profile"], samples)
        self.assertEqual(final.facts["lost_dropped"], 0, "snapshots cost no sample")
        self.assertEqual(final.facts["in_profile"], final.facts["samples"])
        self.assertFalse(glob.glob(self.target.path("*tmp*")), "no temporary file is left")

    def test_snapshot_with_standard_output(self):
        """With -o - a snapshot goes to a file of the default name, in the current directory."""
        process = support.start_sampled(
            "attach", self.target.pid, "-r", "200", "-f", "collapsed", "-o", "-", cwd=self.target.folder
        )
        support.wait_sampling(process)
        process.send_signal(signal.SIGUSR1)
        support.wait_until(lambda: glob.glob(self.target.path("sampled-%d-*.0001.*" % self.target.pid)), "the snapshot is there")
        support.wait_sampling(process)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=support.PATIENCE_S)
        self.assertEqual(process.returncode, 0, err)
        final = support.parse_collapsed(out)
        files = glob.glob(self.target.path("sampled-%d-*.0001.*" % self.target.pid))
        self.assertEqual(len(files), 1, os.listdir(self.target.folder))
        snapshot = support.read_collapsed(files[0])
        self.assertGreater(sum(line.count for line in snapshot), 0)
        self.assertGreater(sum(line.count for line in final), sum(line.count for line in snapshot))

    def assert_all_written(self, out, err):
        """What the closing summary says was sampled is what stands in the output."""
        said = re.match(r"sampled: ([\d,]+) samples", err.decode())
        self.assertTrue(said, err)
        count = sum(line.count for line in support.parse_collapsed(out))
        self.assertEqual(count, int(said.group(1).replace(",", "")))
        self.assertGreater(count, 0)

    def end_with(self, number):
        process = support.start_sampled("attach", self.target.pid, "-r", "200", "-f", "collapsed", "-o", "-")
        support.wait_sampling(process)
        process.send_signal(number)
        out, err = process.communicate(timeout=support.PATIENCE_S)
        self.assertEqual(process.returncode, 0, err)
        self.assert_all_written(out, err)

    def test_interrupt_writes_all(self):
        self.end_with(signal.SIGINT)

    def test_term_writes_all(self):
        self.end_with(signal.SIGTERM)

    def test_end_of_the_target_writes_all(self):
        process = support.start_sampled("attach", self.target.pid, "-r", "200", "-f", "collapsed", "-o", "-")
        support.wait_sampling(process)
        self.target.process.kill()
        out, err = process.communicate(timeout=support.PATIENCE_S)
        self.assertEqual(process.returncode, 0, err)
        self.assert_all_written(out, err)


if __name__ == "__main__":
    unittest.main()
