# SPDX-License-Identifier: Apache-2.0
"""Chrome trace events: nested, callers first, and speedscope's page sums them up to what was sampled."""
import collections
import json
import os
import unittest

import shapes
import support
from test_format_speedscope import imported


class Chrome(shapes.Shapes):
    FORMAT, SUFFIX = "chrome", ".trace.json"

    def spans(self, path):
        with open(path, "rb") as file:
            return shapes.chrome_spans(self, json.load(file))

    def test_spans_last_as_long_as_was_sampled(self):
        for kind, path in self.files.items():
            with self.subTest(kind=kind):
                own, deepest = self.spans(path)
                for tid, lines in self.threads(kind).items():
                    if tid not in own and any(line.frames for line in lines):  # the main thread of "hostile": its id is its writer's
                        tid = next(iter(set(own) - {4712, 4713}))
                    expected = collections.Counter()
                    for line in lines:
                        if line.frames:
                            expected[line.frames[-1][0]] += shapes.wall_ms(line)
                    found = collections.Counter()
                    for name, ms in own[tid].items():
                        found[name.rpartition(" (")[0] if name.endswith(")") and " (" in name else name] += ms
                    self.assertAlmostEqual(sum(found.values()), sum(expected.values()), delta=0.001 * sum(map(len, [lines])) + 1)
                    if kind in ("one", "deep2000", "huge"):
                        self.assertEqual(deepest[tid], max(len(line.frames) for line in lines))
                        for name, ms in expected.items():
                            self.assertAlmostEqual(found[name], ms, delta=1.0, msg=name)

    def test_page(self):
        kinds = ("one", "hostile", "deep2000")
        groups = imported(*(self.files[kind] for kind in kinds))
        for kind in kinds:
            group = groups[self.files[kind]]
            self.assertEqual(group["problems"], [])
            expected = [sum(shapes.wall_ms(line) for line in lines) for lines in self.threads(kind).values()]
            if kind == "hostile":  # one thread's first samples have no frame: its time begins behind them
                expected = [sum(shapes.wall_ms(line) for line in lines if line.frames) for lines in self.threads(kind).values()]
            for found, ms in zip(sorted(p["total"] for p in group["profiles"]), sorted(expected)[-len(group["profiles"]):]):
                self.assertAlmostEqual(found / 1000, ms, delta=3001 if kind == "hostile" else 0.01)

    @support.needs_python
    def test_real_program(self):
        recording = shapes.record(self, self.folder)
        path, other = self.path("real.trace.json"), self.path("real.collapsed")
        for out in ((path,), (other, "--value", "wall")):
            done = self.sampled("convert", recording, "-o", *out)
            self.assertEqual(done.returncode, 0, done.stderr)
        own, deepest = self.spans(path)
        wall_ms = sum(line.count for line in support.read_collapsed(other) if line.frames) / 1e6
        self.assertAlmostEqual(sum(sum(times.values()) for times in own.values()) / wall_ms, 1, delta=0.3)
        group = imported(path)[path]
        self.assertEqual(group["problems"], [])
        self.assertTrue(group["profiles"])


if __name__ == "__main__":
    unittest.main()
