# SPDX-License-Identifier: Apache-2.0
"""Special frames, and exceptions in hand, on programs that know the truth about themselves."""
import os
import re
import shutil
import subprocess
import tempfile
import unittest

import htmlprofile
import support

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


def within(found, name):
    """The share of the stacks that hold the function."""
    return sum(wall for names, wall in found.items() if name in names) / sum(found.values())


def at_line(thread, function, text, script):
    """Of the samples whose innermost frame of the program's own, <GC> aside, is function() at its line that holds text: (wall time, of it under <GC>);
    and the same of its other lines."""
    with open(os.path.join(support.TARGETS, script), encoding="utf-8") as file:
        (line,) = [number for number, held in enumerate(file, 1) if text in held]
    paths, sums = [()], {True: [0, 0], False: [0, 0]}
    for node in thread.nodes[1:]:
        paths.append(paths[node.parent] + ((node.name, node.line),))
        own = [frame for frame in paths[-1] if frame[0] == function]
        if own:
            found = sums[own[-1][1] == line]
            found[0] += node.self.get("wall", 0)
            found[1] += node.self.get("wall", 0) if any(name == "<GC>" for name, _line in paths[-1]) else 0
    return sums[True], sums[False]


@support.each_python
class Collecting(unittest.TestCase):
    """Sample by sample: <GC> where the program stands at the line that collects, and nowhere else. (What share of the time that is: tests/bench/bounds.)"""

    def judge(self, python, kind, rate, seconds=SECONDS):
        """{names of a stack, root first: wall time}, of the thread read while it was stopped."""
        with support.Target(python, "collecting.py", "@/table", kind) as target:
            moving = profile(target, "-r", rate, seconds=seconds).threads[0]
            stopped = profile(target, "-r", rate, "--blocking", seconds=seconds).threads[0]
        # Between two reads of what runs the collector may have ended, on a busy machine often.
        self.count(moving, 0.2)
        return self.count(stopped, 0)

    def count(self, thread, tolerated):
        found = stacks(thread)
        (there, collected), (elsewhere, wrong) = at_line(thread, "collect", "gc.collect(2 if", "collecting.py")
        self.assertGreater(there, 0, found)
        self.assertGreater(collected, 0.5 * there, "to call gc.collect() takes little beside it: %r" % found)
        gc = sum(wall for names, wall in found.items() if "<GC>" in names)
        self.assertAlmostEqual(thread.share("gc"), gc / thread.total("wall"), delta=0.001)
        outside = sum(wall for names, wall in found.items() if "<GC>" in names and "collect" not in names)
        self.assertLessEqual(wrong + outside, tolerated * gc, "<GC> where nothing is collected: %r, of %r" % (found, elsewhere))
        return found

    @support.on(support.few)
    def check_long(self, python):
        self.judge(python, "long", 1000)

    @support.on(support.each_version)
    def check_short(self, python):
        """Collections that are shorter than the time between two samples."""
        self.judge(python, "short", 1000)

    @support.on(support.few)
    def check_short_at_a_high_rate(self, python):
        """At which they are longer than that."""
        self.judge(python, "short", 10000, 1)

    @support.on(support.few)
    def check_called(self, python):
        """What the collector calls stands behind <GC> where the version tells what started it (3.15); else <GC> is innermost."""
        for kind in ("callback", "finalizer"):
            found = self.judge(python, kind, 1000)
            for names in found:
                if "<GC>" not in names:
                    continue
                at = names.index("<GC>")
                if python.version >= (3, 15):
                    self.assertEqual(names[at - 1], "collect", names)
                    self.assertTrue(at + 1 == len(names) or names[at + 1].endswith(("called_back", "__del__")), names)
                else:
                    self.assertEqual(at + 1, len(names), names)


@support.each_python
class Ending(unittest.TestCase):
    @support.on(support.each_version)
    def check_shutdown(self, python):
        """What is collected as the program ends, when it has no frame any more, is no <GC> of its own. 3.6 does not say that it ends."""
        folder = tempfile.mkdtemp(prefix="sampled-ending-", dir=python.root + "/tmp")
        self.addCleanup(shutil.rmtree, folder)
        script = shutil.copy(os.path.join(support.TARGETS, "ending.py"), folder)
        done = support.sampled("run", "-q", "-r", "1000", "-f", "collapsed", "-o", "-", "--", *python.argv, script[len(python.root):])
        self.assertEqual(done.returncode, 0, done.stderr)
        at_root = {line.frames[0][0] for line in support.parse_collapsed(done.stdout) if line.frames}
        self.assertLessEqual({"<module>", "<GC>" if python.version < (3, 7) else "<shutdown>"}, at_root)
        if python.version >= (3, 7):
            self.assertNotIn("<GC>", at_root)


@support.each_python
class Handling(unittest.TestCase):
    """Sample by sample: --mode exception counts where the program's own function has one in hand, and only there. (What share: tests/bench/bounds.)"""

    @support.on(support.each_version)
    def check_nested(self, python):
        self.judge(python, "nested")

    @support.on(support.few)
    def check_others(self, python):
        self.judge(python, "finals", "generators", "coroutines")

    def judge(self, python, *kinds):
        for kind in kinds:
            with self.subTest(kind), support.Target(python, "handling.py", "@/table", kind) as target:
                whole = stacks(profile(target, "-r", "1000", seconds=2).threads[0])
                handled = profile(target, "-r", "1000", "--mode", "exception", seconds=2)
            found = stacks(handled.threads[0])
            self.assertGreater(within(found, "in_hand"), 0.95, found)
            self.assertLess(within(found, "none_in_hand"), 0.05, found)
            counted = sum(thread.total("samples") for thread in handled.threads) / handled.facts["samples"]
            self.assertGreater(counted, 0.5 * within(whole, "in_hand"), "most that have one in hand are seen with it: %r" % whole)


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
            done = support.sampled("attach", target.pid, "-d", 2 * support.LIFE_S, "-r", 1000, "--native=marks", "--stats", "-f", "collapsed", "-o", "-")
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
