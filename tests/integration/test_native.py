# SPDX-License-Identifier: Apache-2.0
"""Stacks of Python and native frames, of programs whose calls are known (tests/native): no impossible one, the expected ones found, and as many
of each as perf sees. SAMPLED_LONG=1: every variant on every Python, for longer."""
import collections
import json
import os
import re
import shutil
import time
import unittest

import cores
import native
import native_grammar
import support
from native_grammar import Frame

LONG = support.LONG
SECONDS = 30 if LONG else 2
# A round with perf, and how many innermost functions both are to have seen: on a machine that is busy with other work that takes further rounds.
PERF_SECONDS, PERF_ROUNDS = 30 if LONG else 4, 5
WHOLE = 0.97  # of the samples have all their native frames, at least
MISMATCHED = 0.005  # and so many at most could not be merged

CORES = 50 if LONG else 5

DEEP = ("chain_deep", "deep_outer", "deep_middle", "deep_inner")
PRODUCT = ("chain_product", "product_all", "product_row", "product_dot")
LINES = ("chain_lines", "lines_outer", "lines_middle", "lines_inner", "lines_loop")
CALL = ("chain_call", "call_outer", "call_inner", "back")
# Of the samples that hold the first, those that hold the others above it.
CHAINS = ((DEEP, 0.95), (DEEP + ("libm",), 0.75), (PRODUCT, 0.9), (LINES, 0.95), (CALL, 0.9), (CALL + DEEP[:2], 0.25), (("back", "plain"), 0.3))


def old_enough(python):
    return python.version >= (3, 8)


def few_pythons():
    """One with frames on the heap, one where a run of the interpreter has several frames (Debian's, which is stripped), and the newest."""
    found = [python for python in support.few() if old_enough(python)]
    return found[-1:] if support.QUICK else found


class Native(unittest.TestCase):
    """What all tests of native stacks ask of a profile. How many samples, beside what else the machine does: tests/bench/bounds asks for all of it."""

    points = 12  # of all samples, at most, between a function's share and perf's
    perf_least = 500
    part = 0.1  # of what CHAINS has

    def setUp(self):
        native.modules()

    def assert_possible(self, rules, profile, summary):
        """Every stack is one of the program's, and what is not whole is bounded and said. Returns the Verdict."""
        verdict = native.Verdict(rules, profile.stacks)
        self.assertGreater(verdict.samples, 0)
        self.assertEqual(verdict.impossible, 0, "of %d samples:\n%s" % (verdict.samples, "\n".join(sorted(verdict.examples)[:10])))
        facts = profile.facts
        self.assertLessEqual(verdict.bare, facts["native_mismatched"] + facts["native_failed"], "without native frames, and not said: %r" % facts)
        told = {key: facts[key] for key in ("samples", "native", "native_cut", "native_mismatched", "native_failed", "stops", "stops_given_up")}
        self.assertLessEqual(facts["native_mismatched"], 1 + MISMATCHED * facts["samples"], told)
        self.assertLessEqual(sum(facts[key] for key in told if key.startswith("native")), facts["samples"], told)
        if facts["stops"]:
            self.assertRegex(summary, r"stops +[\d,]+, median [\d.]+ .?s, 99 % within [\d.]+ .?s")
        return verdict

    def assert_whole(self, profile):
        """But for samples whose thread did not come to its stop in time, as happens where others take the CPUs."""
        facts = profile.facts
        self.assertGreaterEqual(facts["native"], WHOLE * (facts["samples"] - facts["stops_given_up"]), facts)

    def assert_chains(self, verdict, chains):
        """Under sanitizers, side by side with other tests, they are found; how often is measured without."""
        for nodes, least in chains:
            self.assertGreaterEqual(verdict.of(*nodes), 0.01 if support.SANITIZED else self.part * least, "%s: %s" % (" → ".join(nodes), verdict.paths.most_common(12)))

    def run_program(self, python, program, *args, seconds=SECONDS, options=("--native",)):
        """(verdict, profile) of a program that computes."""
        with native.target(python, program, *args) as target:
            profile, summary = native.profile(target, seconds, *options)
            self.assertIn(target.state(), "RSD")
            verdict = self.assert_possible(native.grammar(target, program), profile, summary)
        return verdict, profile

    def as_perf(self, python, program, *args):
        """Both at the same time: the shares of the innermost functions, those of the interpreter among them."""
        if not shutil.which("perf"):
            self.skipTest("perf is not installed")
        if support.SANITIZED:
            return self.run_program(python, program, *args)[0]
        ours, theirs, samples = collections.Counter(), collections.Counter(), 0
        with native.target(python, program, *args) as target:
            rules = native.grammar(target, program)
            for _ in range(PERF_ROUNDS):
                perf = native.Perf(target, PERF_SECONDS)
                profile, summary = native.profile(target, PERF_SECONDS, "--native=all")
                theirs += perf.leaves()
                verdict = self.assert_possible(rules, profile, summary)
                self.assert_whole(profile)
                ours += verdict.leaves
                samples += verdict.samples
                points, where = native.furthest(ours, theirs)
                # Of 4,000 samples a share of 15 % is off by a point now and then, on either side: where they differ by more, of more samples.
                if min(samples, sum(theirs.values())) >= self.perf_least and points <= self.points:
                    break
        self.assertLessEqual(points, self.points, "%s, of %d samples\nsampled, ns: %s\nperf: %s" % (where, samples, ours.most_common(12), theirs.most_common(12)))
        return verdict


@support.each_python
class EachPython(Native):
    @support.on(support.each_version)
    def check_chains(self, python):
        """Three functions deep into the C library, loops over matrices, and C that calls Python that calls C."""
        if not old_enough(python):
            self.skipTest("native stacks are for 3.8 and later")
        self.assert_chains(self.as_perf(python, "chains.py", "nofp"), CHAINS)


class FewPythons(Native):
    """Each of these runs on some interpreters, as sub-tests."""

    def on_few(self, check, *args):
        for python in few_pythons():
            with self.subTest(python=repr(python), args=args):
                check(python, *args)

    def variant(self, python, variant):
        verdict, profile = self.run_program(python, "chains.py", variant)
        self.assert_whole(profile)
        self.assert_chains(verdict, CHAINS)
        return profile

    def test_fp(self):
        self.on_few(self.variant, "fp")

    def test_lto(self):
        self.on_few(self.variant, "lto")

    def test_cores(self):
        self.on_few(self.cores)

    def cores(self, python):
        """What a process was at is in its core, wherever it stood."""
        if python.root:
            self.skipTest("the libraries of another root are not on this host")
        if not shutil.which("gcore"):
            self.skipTest("no gcore on this machine (package gdb)")
        stacks = []
        with native.target(python, "chains.py", "nofp") as target:
            for _ in range(CORES):
                done = support.sampled("dump", "--core", cores.gcore(target), "--native", "--json")
                self.assertEqual((done.returncode, done.stderr), (0, b""))
                stacks += [native.dumped(thread) for thread in json.loads(done.stdout)["threads"]]
            verdict = native.Verdict(native.grammar(target, "chains.py"), stacks)
        self.assertEqual((verdict.samples, verdict.impossible, verdict.bare), (CORES, 0, 0), verdict.examples)
        self.assertEqual([stack.text() for stack in stacks if "<cut>" in stack.text()], [])

    def test_no_unwind_tables(self):
        self.on_few(self.no_unwind_tables)

    def no_unwind_tables(self, python):
        """By frame pointers, where they can be proved: not in the innermost function, of which nobody says how far it has come, nor where the caller
        uses the register for something else. There the stack is cut, and says so; it does not go on with a wrong caller."""
        verdict, profile = self.run_program(python, "chains.py", "notables")
        facts = profile.facts
        self.assertGreaterEqual(facts["native"] + facts["native_cut"], WHOLE * (facts["samples"] - facts["stops_given_up"]), facts)
        self.assertGreaterEqual(verdict.of(*DEEP, "libm", hold=-1), 0.9, verdict.paths.most_common(12))

    def test_stripped(self):
        self.on_few(self.stripped)

    def stripped(self, python):
        """What has no name any more is an offset, not the nearest function that has."""
        with native.target(python, "chains.py", "stripped") as target:
            output = target.path("raw.jsonl")
            self.assertEqual(support.sampled("attach", target.pid, "-d", "1", "--native", "-f", "jsonl", "-o", output).returncode, 0)
            with open(output, encoding="utf-8") as file:
                names = set(re.findall(r'"function":"([^"]*)"', file.read().replace('": "', '":"')))
        self.assertIn("deep_middle", names)
        self.assertTrue(any(re.search(r"chain_stripped\S*\+0x[0-9a-f]+$", name) for name in names), names)
        self.variant(python, "stripped")

    def test_lines(self):
        self.on_few(self.lines)

    def lines(self, python):
        """Inlined functions are frames of their own, at the lines of their calls."""
        profile = self.variant(python, "lines")
        ours = [(stack, frame) for stack in profile.stacks for frame in stack.frames if native_grammar.class_of(frame.module) == native_grammar.OURS]
        known = sum(stack.count for stack, frame in ours if frame.file.endswith(("chain.c", "chain_work.c")) and frame.line)
        self.assertGreater(known, 0.97 * sum(stack.count for stack, _ in ours))
        self.assertTrue(any(frame.name == "lines_loop" for _, frame in ours))

    def test_compiled(self):
        self.on_few(self.compiled)

    def compiled(self, python):
        """C++ by its demangled names, also while an exception is on its way; and the lines of the source that C was made from."""
        verdict, profile = self.run_program(python, "compiled.py")
        self.assert_whole(profile)
        self.assert_chains(verdict, (
            (("cxx_templates", "run_double", "reduce_double"), 0.3), (("run_float", "reduce_float"), 0.95),
            (("cxx_throws", "throw_outer", "throw_middle", "throw_inner", "unwinder"), 0.5), (("pw_integrate", "rows", "integrand"), 0.95)))
        seen = {}
        for stack in profile.stacks:
            for at, frame in enumerate(stack.frames):
                if frame.name.startswith("__pyx_"):
                    self.assertTrue(frame.file.endswith("kernels.pyx"), frame)
                    seen.setdefault((frame.name, at + 1 == len(stack.frames)), set()).add(frame.line)
        self.assertEqual(seen["__pyx_f_7kernels_integrate_rows", False], {9})
        self.assertLessEqual(seen["__pyx_pw_7kernels_1integrate", False], {12, 13})
        self.assertLessEqual(seen["__pyx_f_7kernels_integrand", True], {3, 4})

    def test_library(self):
        self.on_few(self.library)

    def library(self, python):
        """What the standard library calls, and as much of it as perf sees."""
        verdict = self.as_perf(python, "library.py")
        self.assert_chains(verdict, ((("order", "key"), 0.1),))
        self.assertGreater(verdict.of("compress", "libz") + verdict.of("compress", "zlib", "libz"), 0.9, verdict.paths)
        self.assertGreater(verdict.of("dump", "json_python"), 0.9, verdict.paths)

    def test_without_the_gil(self):
        self.on_few(self.without_the_gil)

    def without_the_gil(self, python):
        """A thread that computes without the GIL, beside one that has it."""
        verdict, profile = self.run_program(python, "spins.py", "nofp")
        self.assert_whole(profile)
        self.assert_chains(verdict, ((("threading", "spin", "chain_spin", "spin_outer", "spin_middle", "spin_inner"), 0.95), (DEEP, 0.9)))

    def test_blocked(self):
        self.on_few(self.blocked, "nofp")
        self.on_few(self.blocked, "fp")

    def blocked(self, python, variant):
        """Threads that wait are unwound where they are: nothing stops them, which the kernel's count of their switches would show."""
        with native.target(python, "blocked.py", variant) as target:
            target.wait_still()
            before = support.switches(target.pid)
            profile, summary = native.profile(target, 1, "--native")
            self.assertEqual(support.switches(target.pid), before)
            verdict = self.assert_possible(native.grammar(target, "blocked.py"), profile, summary)
        self.assertEqual((profile.facts["stops"], profile.facts["stops_given_up"]), (0, 0))
        self.assertEqual(profile.facts["native_failed"], 0, profile.facts)
        if variant == "nofp":
            self.assert_chains(verdict, (
                (("nap", "chain_nap", "nap_outer", "nap_middle", "nap_inner", "libc"), 1),
                (("read", "chain_read", "read_outer", "read_middle", "read_inner", "libc"), 1)))
        else:
            # What these frames lie in is told by a register that only a stopped thread tells: cut there, and counted so.
            self.assertGreaterEqual(profile.facts["native"] + profile.facts["native_cut"], 0.99 * profile.facts["samples"], profile.facts)

    def test_filters(self):
        self.on_few(self.filters)

    def filters(self, python):
        """leaf: what the innermost Python frame called; extensions: neither the interpreter nor the C library."""
        with native.target(python, "chains.py", "nofp") as target:
            rules = native.grammar(target, "chains.py")
            for kind in ("all", "leaf", "extensions"):
                profile, summary = native.profile(target, 1, "--native=" + kind)
                for stack in profile.stacks:
                    kinds = "".join(frame.kind[0] for frame in stack.frames)
                    classes = {native_grammar.class_of(frame.module) for frame in stack.frames if frame.kind == "native"}
                    if kind == "all":
                        continue
                    if kind == "leaf":
                        self.assertRegex(kinds, r"^[ps]+n*$", stack.text())
                    else:
                        self.assertFalse(classes & {native_grammar.INTERPRETER, native_grammar.C_LIBRARY, native_grammar.LOADER}, stack.text())
                if kind != "leaf":  # which leaves out native frames that the grammar wants below `back`
                    self.assert_chains(self.assert_possible(rules, profile, summary), ((DEEP, 0.9), (CALL, 0.9)))


class Judge(unittest.TestCase):
    """The judge on stacks made up of the names of chains.py."""

    FILE = "/x/chains.py"

    def setUp(self):
        with open(os.path.join(native.SOURCES, "chains.py"), encoding="utf-8") as file:
            source = file.read()
        self.marks = {marker: line for line, markers in native_grammar.marked_lines(source).items() for marker in markers}
        self.first = {name: lines[0] for name, lines in native_grammar.python_functions(source).items()}
        lines = native_grammar.Lines([os.path.join(native.SOURCES, name) for name in ("chain.c", "chain_work.c")])
        self.rules = native_grammar.Grammar(source, self.FILE, lines)

    def frame(self, text):
        """FUNCTION@MARKER or FUNCTION: of Python; NAME(): of the module; NAME(FILE): native, of that file; <NAME>: special."""
        if text.startswith("<") and text != "<module>@loop":
            return Frame("special", text, "", 0, "")
        match = re.fullmatch(r"(.*)\((.*)\)", text)
        if match:
            file, _, line = match.group(2).partition(":")
            source = file.endswith((".c", ".h"))
            module = "/x/chain_nofp.abi3.so" if source or not file else "/lib/" + file
            return Frame("native", match.group(1), file if source else "", int(line or 0), module)
        name, _, mark = text.partition("@")
        return Frame("python", name, self.FILE, self.marks[mark] if mark else self.first[name], "")

    def wrong_at(self, text):
        return self.rules.accept([self.frame(one) for one in text.split()])[1]

    def test_accepts(self):
        for text in (
            "<module>@loop loop@deep deep@c_deep chain_deep() deep_outer() deep_middle() deep_inner() __sin_fma(libm.so.6)",
            "_start(python3.11) main(python3.11) <module>@loop loop@call call@c_call cfunction_call(libpython3.11.so.1.0) chain_call() call_outer() "
            "call_inner() _PyObject_CallFunction(libpython3.11.so.1.0) back@b_deep chain_deep() deep_outer.constprop.0()",
            "<module>@loop loop", "<module>@loop loop@plain plain PyNumber_Add(python3.11) malloc(libc.so.6)",
            "<module>@loop loop@deep deep@c_deep chain_deep() deep_outer() deep_middle() deep_inner() sin@plt()",
            "<module>@loop loop@deep deep@c_deep <cut> deep_inner() exp(libm-2.31.so)",
            "<cut> <module>@loop loop@plain plain _PyLong_Add(python3.11)",
            "<module>@loop loop@call call@c_call back@b_deep <cut> deep_middle() deep_inner()",
            "<module>@loop loop@call call@c_call <cut> call_inner() back@b_deep chain_deep()",
            "<module>@loop loop@lines lines@c_lines chain_lines() lines_outer(chain_work.c:100) lines_middle(chain_work.c:95)",
            "<module>@loop loop@call call@c_call chain_call(chain.c:89) _Py_NewRef(/x/include/python3.11/object.h:618)",
        ):
            self.assertIsNone(self.wrong_at(text), text)

    def test_refuses(self):
        for text, at in (
            ("<module>@loop loop@deep deep@c_deep chain_deep() deep_middle()", 4),  # one is missing
            ("<module>@loop loop@deep deep@c_deep deep_outer()", 3),
            ("<module>@loop loop@product deep@c_deep", 2),  # called there by nobody
            ("<module>@loop loop@deep deep chain_deep()", 3),
            ("<module>@loop loop@product product@c_product chain_deep()", 3),  # of the sample before
            ("<module>@loop loop@call call@c_call back@b_deep chain_deep()", 3),
            ("<module>@loop loop@call call@c_call chain_call() call_outer() call_inner() plain", 6),
            ("<module>@loop loop@deep deep@c_deep chain_deep() deep_outer() malloc(libc.so.6)", 5),
            ("<module>@loop loop@plain plain deep_inner()", 3),
            ("chain_call() <module>@loop", 0),
            ("<module>@loop loop@deep deep@c_deep <cut> product_dot()", 4),
            ("<module>@loop loop@deep deep <cut> deep_inner()", 4),
            ("<module>@loop loop@call call@c_call plain <cut> _PyLong_Add(python3.11)", 3),
            ("<module>@loop loop@call call@c_call <cut> call_inner() plain", 5),
            ("<module>@loop loop@lines lines@c_lines chain_lines() lines_outer(chain_work.c:20) lines_middle()", 4),
            ("<module>@loop loop@lines lines@c_lines chain_lines() lines_outer(chain_work.c:99) lines_middle()", 4),
            ("<module>@loop loop@deep deep@c_deep chain_deep() deep_outer() deep_middle() deep_inner() __sin_fma(libm.so.6) deep_inner()", 8),
            ("<module>@loop loop@deep deep@c_deep chain_deep() deep_outer() Py_INCREF(/x/include/python3.11/object.h:502)", 5),
            ("<module>@loop loop@call call@c_call chain_call(chain.c:89) inlined(/x/other.h:618)", 4),
        ):
            self.assertEqual(self.wrong_at(text), at, text)

    def test_bare(self):
        """Python's frames alone, of a stack whose native frames could not be had."""
        for text, possible in (("<module>@loop loop@call call@c_call back@b_plain plain", True), ("<module>@loop loop@call call@c_call plain", False),
                               ("<module>@loop loop@deep deep", True), ("<module>@loop deep", False), ("<module>@loop loop@deep back", False)):
            self.assertEqual(self.rules.accept_bare([self.frame(one) for one in text.split()]) is not None, possible, text)

    def test_a_grammar_that_names_nothing(self):
        for nodes in ({"": ["a"], "a": ("python", "gone", {})}, {"": ["a"], "a": ("native", "x", ["gone"])}):
            with self.assertRaises(ValueError):
                native_grammar.Grammar("STACKS = %r\n" % nodes, self.FILE)


if __name__ == "__main__":
    unittest.main()
