# SPDX-License-Identifier: Apache-2.0
"""callgrind files, read by callgrind_annotate: its totals, self and inclusive, are those of the same profile's pstats file."""
import collections
import marshal
import re
import unittest

import callgraphs
import cli
import support

ROW = re.compile(r"^ *([\d,]+|\.) +([\d,]+|\.)  (\S.*)$")


def number(text):
    return 0 if text == "." else int(text.replace(",", ""))


def annotate(path, inclusive):
    """(total samples, total ns), {file:function: (samples, ns)}."""
    done = callgraphs.run("callgrind_annotate", "--threshold=100", "--auto=no", "--show-percs=no", "--inclusive=" + inclusive, path)
    if done.stderr or "WARNING" in done.stdout:
        raise AssertionError("callgrind_annotate warns: %s" % (done.stderr + done.stdout)[-2000:])
    rows = [(number(m.group(1)), number(m.group(2)), m.group(3)) for m in map(ROW.match, done.stdout.splitlines()) if m]
    total = [row for row in rows if row[2].startswith("PROGRAM TOTALS")]
    return total[0][:2], {row[2]: row[:2] for row in rows if row not in total}


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
        callgrind, pstats, collapsed = self.profile("callgrind", "pstats", "collapsed")
        total, wanted = self.compare(callgrind, pstats)
        self.assertEqual(total[0], cli.samples_in(collapsed))
        self.assertTrue(any(name.endswith(":descend") for name in wanted))

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


if __name__ == "__main__":
    unittest.main()
