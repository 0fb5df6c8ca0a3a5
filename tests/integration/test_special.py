# SPDX-License-Identifier: Apache-2.0
"""Special frames, and exceptions in hand, on programs that know the truth about themselves."""
import re
import shutil
import subprocess
import unittest

import htmlprofile
import support
from test_status import Table, difference

TOLERANCE = 0.02
SECONDS = 3


def profile(target, *options, seconds=SECONDS):
    page = target.path("out.html")
    done = support.sampled("attach", target.pid, "-d", seconds, "-f", "flamegraph", "-o", page, *options)
    if done.returncode != 0:
        raise AssertionError(done.stderr.decode())
    with open(page, "rb") as file:
        return htmlprofile.Profile(file.read())


def stacks(thread):
    """{names of a stack, root first: wall time that ended there}"""
    found = {}
    names = [()]
    for node in thread.nodes[1:]:
        names.append(names[node.parent] + (node.name,))
        found[names[-1]] = found.get(names[-1], 0) + node.self.get("wall", 0)
    return found


def allowance(found, seconds=SECONDS):
    """How far a share may be off: what was not sampled, on a busy machine, may have been either."""
    return TOLERANCE + found.facts["unsampled_ns"] / (seconds * 1e9)


@support.each_python
class Collecting(unittest.TestCase):
    def share(self, python, kind, rate, seconds=SECONDS):
        with support.Target(python, "collecting.py", "@/table", kind) as target:
            table = Table(target.path("table"))
            before = table.read()
            whole = profile(target, "-r", rate, seconds=seconds)
            collected, passed = difference(before, table.read())[0][:2]
        thread = whole.threads[0]
        found = stacks(thread)
        share = sum(wall for names, wall in found.items() if "<GC>" in names) / thread.total("wall")
        self.assertAlmostEqual(
            share, collected / passed, delta=allowance(whole, seconds), msg="<GC> in %s collections at a rate of %s" % (kind, rate)
        )
        self.assertAlmostEqual(thread.share("gc"), share, delta=0.001)
        outside = sum(wall for names, wall in found.items() if "<GC>" in names and "collect" not in names)
        self.assertLess(outside / thread.total("wall"), 0.005, "<GC> where nothing is collected: %r" % found)
        return found

    @support.on(support.few)
    def check_long(self, python):
        self.share(python, "long", 1000)

    @support.on(support.each_version)
    def check_short(self, python):
        """Collections that are shorter than the time between two samples."""
        self.share(python, "short", 1000, 2 * SECONDS)  # of 3,000 samples, shares have a standard deviation of 0.7 points

    @support.on(support.few)
    def check_short_at_a_high_rate(self, python):
        """At which they are longer than that."""
        self.share(python, "short", 10000)

    @support.on(support.few)
    def check_called(self, python):
        """What the collector calls stands behind <GC> where the version tells what started it (3.15); else <GC> is innermost."""
        for kind in ("callback", "finalizer"):
            found = self.share(python, kind, 1000, 3 * SECONDS)  # a millisecond each: by chance alone 3,000 samples would be 1.8 points off in one run of 20
            for names, wall in found.items():
                # Where a collection begins or ends while the thread is read a sample may be the other's; share() has a bound for all of them.
                if "<GC>" not in names or wall < 0.002 * sum(found.values()):
                    continue
                at = names.index("<GC>")
                if python.version >= (3, 15):
                    self.assertEqual(names[at - 1], "collect", names)
                    self.assertTrue(at + 1 == len(names) or names[at + 1].endswith(("called_back", "__del__")), names)
                else:
                    self.assertEqual(at + 1, len(names), names)


@support.each_python
class Handling(unittest.TestCase):
    @support.on(support.each_version)
    def check_nested(self, python):
        self.shares(python, "nested")

    @support.on(support.few)
    def check_others(self, python):
        self.shares(python, "finals", "generators", "coroutines")

    def shares(self, python, *kinds):
        """--mode exception counts what a program spends with an exception in hand."""
        for kind in kinds:
            with self.subTest(kind), support.Target(python, "handling.py", "@/table", kind) as target:
                table = Table(target.path("table"))
                before = table.read()
                found = profile(target, "-r", "1000", "--mode", "exception")
                handled, free = difference(before, table.read())[0][:2]
                counted = sum(thread.total("samples") for thread in found.threads)
                share = counted / found.facts["samples"]
                self.assertAlmostEqual(share, handled / (handled + free), delta=allowance(found), msg=kind)
                walls = stacks(found.threads[0])
                known = sum(wall for names, wall in walls.items() if "in_hand" in names)
                self.assertGreater(known / sum(walls.values()), 0.98, walls)


@support.each_python
class Instructions(unittest.TestCase):
    @support.on(support.each_version)
    def check_calling(self, python):
        self.opcodes(python, "calling")

    @support.on(support.few)
    def check_others(self, python):
        self.opcodes(python, "adding", "comparing", "containing", "subscripting", "iterating")

    def opcodes(self, python, *kinds):
        """The instruction in which a program stands, as dis calls it, specialised or not."""
        for kind in kinds:
            with self.subTest(kind), support.Target(python, "instructions.py", kind) as target:
                opcode = target.facts["opcode"]
                thread = profile(target, "-r", "500", "--opcodes", seconds=1).threads[0]
                found = stacks(thread)
                # 3.11 has a call's work done by the instruction before, if that is specialised.
                begins = ("<" + opcode, "<PRECALL_") if opcode == "CALL" else "<" + opcode
                inside = sum(
                    wall for names, wall in found.items() if names[-1].startswith(begins) and names[-2:-1] == (kind,)
                )
                self.assertGreater(inside / thread.total("wall"), 0.9, "%s: %r" % (opcode, found))


# Ways of tests/targets/through_c.py in which the interpreter's loop itself runs the callee, since which version; the others never do.
INLINED = {"by_call": (3, 11), "by_for": (3, 12), "by_yield_from": (3, 12), "by_class": (3, 13), "by_with": (3, 14)}


@support.each_python
class ThroughC(unittest.TestCase):
    @support.on(support.each_version)
    def check_marks(self, python):
        """<native> stands exactly where C is between two Python functions."""
        with support.Target(python, "through_c.py") as target:
            done = support.sampled("attach", target.pid, "-d", 2, "-r", 1000, "--native=marks", "--stats", "-f", "collapsed", "-o", "-")
            self.assertEqual(done.returncode, 0, done.stderr)
        found = {}
        for line in support.parse_collapsed(done.stdout):
            names = [name for name, _file, _line in line.frames]
            way = next((name for name in names if name.startswith("by_")), None)
            if way and names[-1] == "reach":
                counts = found.setdefault(way, {})
                marks = names.count("<native>")
                counts[marks] = counts.get(marks, 0) + line.count
        text = done.stderr.decode() + done.stdout.decode()
        self.assertEqual(len(found), 13, "%r\n%s" % (found, "\n".join(line[-300:] for line in text.splitlines()[:50])))
        for way, counts in found.items():
            most = max(counts, key=counts.get)  # the first calls are not specialised yet, and go through C
            if python.version < (3, 11):
                self.assertEqual(set(counts), {0}, way)
            else:
                self.assertEqual(most == 0, python.version[:2] >= INLINED.get(way, (4,)), "%s: %r" % (way, counts))
        if python.version < (3, 11):
            self.assertIn(b"does not tell", done.stderr)

    @support.on(support.each_version)
    @unittest.skipUnless(shutil.which("gdb"), "gdb is not installed")
    def check_native_stack(self, python):
        """As many marks as the native stack has calls of the interpreter's loop, less one."""
        if python.version < (3, 11) or python.root:
            self.skipTest("to 3.10 it is not told, and gdb finds no names in the roots")
        for way in ("by_sorted", "by_for", "by_class", "by_with"):
            with self.subTest(way), support.Target(python, "through_c.py", way) as target:
                done = support.sampled(
                    "attach", target.pid, "-d", 1, "-r", 100, "--native=marks", "-f", "collapsed", "-o", "-"
                )
                stack = max(support.parse_collapsed(done.stdout), key=lambda line: line.count)
                marks = [name for name, _file, _line in stack.frames].count("<native>")
                trace = subprocess.run(
                    ["gdb", "-batch", "-nx", "-ex", "bt", "-p", str(target.pid)],
                    stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False,
                ).stdout.decode("utf-8", "replace")
                loops = len(re.findall(r"^#\d+ .*\b_PyEval_EvalFrameDefault ", trace, re.M))
                self.assertEqual(marks, loops - 1, trace)


if __name__ == "__main__":
    unittest.main()
