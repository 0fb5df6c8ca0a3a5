# SPDX-License-Identifier: Apache-2.0
"""Call graphs for Graphviz, and as SVG by way of it."""
import marshal
import os
import random
import re
import time
import unittest
import xml.etree.ElementTree

import callgraphs
import cli
import support

SVG = "{http://www.w3.org/2000/svg}"
LAYOUT_MAX_S = 120  # a few seconds on a machine that is free


def titles(path):
    """The titles of nodes and edges in an SVG, and its texts."""
    tree = xml.etree.ElementTree.parse(path)
    groups = {"node": [], "edge": []}
    for group in tree.iter(SVG + "g"):
        if group.get("class") in groups:
            groups[group.get("class")].append(group.findtext(SVG + "title"))
    return groups["node"], groups["edge"], [text.text for text in tree.iter(SVG + "text")]


@callgraphs.needs("dot")
class Graphviz(callgraphs.Profiles):
    def draw(self, path):
        done = callgraphs.run("dot", "-Tcanon", path)
        self.assertEqual(done.stderr, "")
        started = time.monotonic()
        done = callgraphs.run("dot", "-Tsvg", "-o", path + ".svg", path)
        self.assertEqual(done.stderr, "")
        self.assertLess(time.monotonic() - started, LAYOUT_MAX_S)
        return titles(path + ".svg")

    def test_shapes(self):
        for kind, nodes, edges in (("hostile", 20, 19), ("huge", None, None), ("deep2000", 1, 1), ("one", 1, 0), ("empty", 0, 0)):
            with self.subTest(kind=kind):
                found = self.draw(callgraphs.write_shape(kind, "dot", self.path(kind + ".dot")))
                if nodes is not None:
                    self.assertEqual((len(found[0]), len(found[1])), (nodes, edges))
                else:
                    self.assertTrue(any(re.match(r"left out: [\d,]+ functions under 0\.5 %", text) for text in found[2]), found[2])

    def test_hostile_names_are_text(self):
        texts = self.draw(callgraphs.write_shape("hostile", "dot", self.path("a.dot")))[2]
        for name in ("</script><script>window.hacked=1</script>", "<!--<script>", "<img src=x onerror=window.hacked=1>", "a b c",
                     "'\"`${window.hacked=1}\\", "\u51fd\u6570\U0001f525", "__proto__", "<no frames>"):
            self.assertIn(name, texts)
        self.assertIn("left out: 3,000 functions under 0.5 %, with their calls; self time of these: 0.77 %", texts)
        self.assertIn("lost: torn: 7 (0.07 %)", texts)

    @support.needs_python
    def test_a_real_program(self):
        dot, pstats = self.profile("dot", "pstats")
        texts = self.draw(dot)[2]
        with open(pstats, "rb") as file:
            stats = marshal.load(file)
        total = sum(value[2] for value in stats.values())
        shown = {func for func, value in stats.items() if value[3] >= 0.005 * total}
        for func in shown:
            self.assertIn(func[2], texts)
        self.assertEqual(sum(1 for text in texts if text.startswith("self ")), len(shown))

    def test_a_dense_graph_is_laid_out_in_time(self):
        """2,000 functions that all hold nearly the whole, 20,000 calls at random."""
        rand = random.Random(1)
        keys = [("/srv/m%d.py" % (n % 50), n, "f%d" % n) for n in range(2000)]
        stats = {key: (10, 10, 1.0, 1000 + rand.random(), {}) for key in keys}
        for _ in range(20000):
            stats[rand.choice(keys)][4][rand.choice(keys)] = (5, 5, 0.5, 500 + rand.random())
        with open(self.path("dense.prof"), "wb") as file:
            marshal.dump(stats, file)
        done = self.sampled("convert", "dense.prof", "-f", "dot", "-o", "dense.dot")
        self.assertEqual(done.returncode, cli.DONE, done.stderr)
        nodes, edges, texts = self.draw(self.path("dense.dot"))
        self.assertEqual(len(nodes), 300)
        self.assertLessEqual(len(edges), 900)
        self.assertTrue(any("1,700 beyond the 300 largest" in text for text in texts), texts[-5:])

    def test_svg_by_convert_and_attach(self):
        callgraphs.write_shape("hostile", "pstats", self.path("a.pstats"))
        done = self.sampled("convert", "a.pstats", "-f", "dot", "-o", "a.svg")
        self.assertEqual((done.returncode, done.stdout, done.stderr), (cli.DONE, b"a.svg\n", b""))
        self.assertEqual(len(titles(self.path("a.svg"))[0]), 20)
        if not support.pythons():
            self.skipTest("no supported Python was found")
        with support.Target(support.newest(), "busy.py") as target:
            done = self.sampled("attach", target.pid, "-d", "1", "-f", "dot", "-o", "b.svg", "-q")
        self.assertEqual((done.returncode, done.stdout, done.stderr), (cli.DONE, b"b.svg\n", b""))
        self.assertIn("descend", titles(self.path("b.svg"))[2])

    def test_graphviz_that_fails(self):
        callgraphs.write_shape("one", "pstats", self.path("a.pstats"))
        os.mkdir(self.path("bin"))
        with open(self.path("bin/dot"), "w") as file:
            file.write("#!/bin/sh\necho 'no layout today' >&2\nexit 3\n")
        os.chmod(self.path("bin/dot"), 0o755)
        done = self.sampled("convert", "a.pstats", "-f", "dot", "-o", "a.svg", env={"PATH": self.path("bin")})
        self.assert_error(done, cli.FAILED, "cannot write a.svg: Graphviz' dot failed with status 3 (no layout today)")
        self.assertFalse(os.path.exists(self.path("a.svg")))


class WithoutGraphviz(cli.Folder):
    def test_one_clear_line(self):
        callgraphs.write_shape("one", "pstats", self.path("a.pstats"))
        done = self.sampled("convert", "a.pstats", "-f", "dot", "-o", "a.svg", env={"PATH": self.folder})
        self.assert_error(done, cli.FAILED, "cannot write a.svg: Graphviz is not installed")
        self.assertEqual(os.listdir(self.folder), ["a.pstats"])
        done = self.sampled("convert", "a.pstats", "-f", "dot", "-o", "a.dot", env={"PATH": self.folder})
        self.assertEqual((done.returncode, done.stderr), (cli.DONE, b""))


if __name__ == "__main__":
    unittest.main()
