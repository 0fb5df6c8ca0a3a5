# SPDX-License-Identifier: Apache-2.0
"""One oracle on each interpreter, another on each version, four more on some, and that their judge can tell right from wrong; tests/oracle/run has all oracles."""
import os
import sys
import unittest

import support

sys.path.insert(0, os.path.join(support.TOP, "tests", "oracle"))
import grammar  # noqa: E402
import judge  # noqa: E402
import workloads  # noqa: E402

SECONDS = 2
FILE = "/x/middle.py"


@support.each_python
class Oracle(unittest.TestCase):
    def check_middle(self, python):
        """Functions whose callee depends on their caller: no stack that the program cannot have, no line that it cannot stand at."""
        self.judge(python, "middle", SECONDS)
        self.judge(python, "middle", SECONDS, "1000")

    @support.on(support.each_version)
    def check_dispatch(self, python):
        """One line that calls many functions in turn, and another such line beside it. Their calls are learnt soon: before that was so, half of all samples were lost."""
        result = self.judge(python, "dispatch", SECONDS, "1000")
        self.assertLess(result.lost_percent, 5, result.causes)

    @support.on(support.few)
    def check_passing(self, python):
        """Short coroutines that are awaited again and again, where calls are learnt from single looks."""
        self.judge(python, "passing", 3 * SECONDS)

    @support.on(support.each_version)
    def check_passing_at_a_fixed_rate(self, python):
        """The same where two copies of one read are one round of the loop apart: they are torn alike more often than they are whole."""
        self.judge(python, "passing", 2 * SECONDS, "10000")

    @support.on(support.each_version)
    def check_generators(self, python):
        """A loop of a microsecond, in which C resumes one generator where it resumed another an instant ago."""
        self.judge(python, "generators", SECONDS)

    @support.on(support.few)
    def check_expressions(self, python):
        """Generator expressions of one function, each where the one before it lay."""
        self.judge(python, "expressions", SECONDS)

    @support.on(support.few)
    def check_callbacks(self, python):
        """Short functions that C calls from neighbouring lines, again and again within a microsecond or two."""
        self.judge(python, "callbacks", 3 * SECONDS)

    @support.on(support.few)
    def check_sequence_at_a_fixed_rate(self, python):
        """Coroutines that are awaited one behind the other, where calls are learnt in bursts."""
        self.judge(python, "sequence", 3 * SECONDS, "1000")

    @support.on(support.each_version)
    def check_threads(self, python):
        """Threads that are born and die: none is shown as another, nor without frames while it has some; and few samples are lost."""
        result = self.judge(python, "threads", SECONDS)
        self.assertLess(result.lost_percent, 0.5, result.causes)

    def judge(self, python, workload, seconds, rate="max"):
        if python.version < (3, 8):
            self.skipTest("the oracles' programs are for 3.8 and later")
        program = workloads.Program(python, workload)
        try:
            rules = program.rules()
            result = workloads.Result()
            with program:
                workloads.sample(program, rules, seconds, result, False, rate=rate)
        finally:
            program.remove()
        verdict = result.verdict
        self.assertGreater(verdict.samples, 0)
        # Of a million samples without a pause one was false in one of 500 runs: only a call that was learnt by mistake makes more of them.
        tolerated = verdict.samples // 1000 if rate == "max" else 0
        self.assertLessEqual(verdict.impossible + verdict.wrong_lines, tolerated, "of %d samples: %s" % (verdict.samples, verdict.examples))
        return result


class Judge(unittest.TestCase):
    """The judge on stacks made up from lines of the program's source."""

    def setUp(self):
        with open(os.path.join(support.TOP, "tests/oracle/middle.py"), encoding="utf-8") as file:
            source = file.read()
        self.marks = {marker: line for line, markers in grammar.marked_lines(source).items() for marker in markers}
        code = compile(source, FILE, "exec")
        import witness

        codes = [[witness.shown(one), one.co_name, one.co_firstlineno, witness.lines_of(one)] for one in witness.codes_in(code)]
        self.first = {name: first for _, name, first, _ in codes}
        self.rules = grammar.Grammar(source, FILE, {"codes": codes, "through": [], "inside": [], "library": []})

    def verdict(self, *frames):
        """frames: "function@marker", or "function" at its first line."""
        parts = ["thread 7"]
        for frame in frames:
            name, _, mark = frame.partition("@")
            parts.append("%s (%s:%d)" % (name, FILE, self.marks[mark] if mark else self.first[name]))
        verdict = judge.judge((";".join(parts) + " 3\n").encode(), self.rules, 7)
        self.assertEqual(verdict.samples, 3)
        return verdict.impossible, verdict.wrong_lines

    def test_accepts(self):
        self.assertEqual(self.verdict("<module>@loop", "loop@a", "a@a_x", "x@x_call", "y"), (0, 0))
        self.assertEqual(self.verdict("<module>@loop", "loop@d", "d@d_p", "p@p_q", "q@q_r", "r@r_call", "z"), (0, 0))
        self.assertEqual(self.verdict("<module>@loop", "loop"), (0, 0))

    def test_path_whose_edges_exist(self):
        self.assertEqual(self.verdict("<module>@loop", "loop@a", "a@a_x", "x@x_call", "z"), (3, 0))
        self.assertEqual(self.verdict("<module>@loop", "loop@c", "c@c_p", "p@p_q", "q@q_r", "r@r_call", "z"), (3, 0))

    def test_missing_frames(self):
        self.assertEqual(self.verdict("loop@a", "a@a_x", "x"), (3, 0))
        self.assertEqual(self.verdict("<module>@loop", "loop@a", "x"), (3, 0))
        self.assertEqual(self.verdict(), (3, 0))

    def test_wrong_caller_line(self):
        self.assertEqual(self.verdict("<module>@loop", "loop@b", "a@a_x", "x"), (0, 3))
        self.assertEqual(self.verdict("<module>@loop", "loop", "a"), (0, 3))

    def test_wrong_leaf_line(self):
        self.assertEqual(self.verdict("<module>@loop", "loop@a", "a@b_x"), (0, 3))

    def test_other_files(self):
        stack = "thread 7;<module> (/elsewhere/middle.py:%d) 2\n" % self.marks["loop"]
        self.assertEqual(judge.judge(stack.encode(), self.rules, 7).impossible, 2)

    def test_grammar_that_names_nothing(self):
        with self.assertRaises(ValueError):
            grammar.Grammar('GRAMMAR = {"": ["a"], "a": ("f", {"gone": []})}\n', FILE, {
                "codes": [["f", "f", 1, [1]]], "through": [], "inside": [], "library": []})


if __name__ == "__main__":
    unittest.main()
