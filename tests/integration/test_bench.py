# SPDX-License-Identifier: Apache-2.0
"""The bench's own reading: other profilers' stacks in one form, and goals that are met, missed or not measured; and the tool that makes its input."""
import json
import os
import statistics
import subprocess
import sys
import tempfile
import unittest

import cli
import support

sys.path[:0] = [os.path.join(support.TOP, "tests", "bench"), os.path.join(support.TOP, "tests", "oracle")]
import goals  # noqa: E402
import measure  # noqa: E402
import service_credit  # noqa: E402
import stacks  # noqa: E402
import summary  # noqa: E402
import tools  # noqa: E402

PATH = "/tmp/work/tree.py"


class Stacks(unittest.TestCase):
    def read(self, form, text):
        with tempfile.NamedTemporaryFile("w", suffix=".collapsed") as file:
            file.write(text)
            file.flush()
            return form.as_sampled(file.name, PATH).decode(), form.deeper_than(file.name, 2)

    def test_tachyon(self):
        text = "tid:17;tree.py:<module>:108;tree.py:forest:102;~:<GC>:0 5\ntid:17;tree.py:<module>:108 3\n"
        wanted = "thread 17;<module> (%s:108);forest (%s:102);<GC> 5\nthread 17;<module> (%s:108) 3\n" % (PATH, PATH, PATH)
        self.assertEqual(self.read(stacks.TACHYON, text), (wanted, 5))

    def test_austin(self):
        """A line is a sample, whatever its time; a stack that Austin calls invalid is not judged."""
        good = "P9;T0:17;%s:<module>:108;%s:C.forest:101 %d\n"
        text = "# mode: wall\n\n" + good % (PATH, PATH, 54) + good % (PATH, PATH, 29) + "P9;T0:17;:INVALID:;%s:deep4:82 39\n" % PATH
        wanted = "thread 17;<module> (%s:108);C.forest (%s:101) 2\n" % (PATH, PATH)
        self.assertEqual(self.read(stacks.AUSTIN, text), (wanted, 2))

    def test_py_spy(self):
        text = "thread (17);<module> (%s:108);forest (%s:103) 4\n" % (PATH, PATH)
        self.assertEqual(self.read(stacks.PY_SPY, text), (text.replace("(17)", "17"), 4))


class Goals(unittest.TestCase):
    RATE = tools.UNTHROTTLED

    def row(self, ours, theirs):
        """The summary's row on depth8 from snapshots a second in some rounds."""
        rounds = {tools.LIMIT: [100.0], "sampled": ours, "Tachyon": theirs}
        figures = {
            ("3.15.0", "depth8", self.RATE, tool): [{"per_s": value, "good": 1.0, "cpu_us": 1e6 / value} for value in values]
            for tool, values in rounds.items() if values
        }
        return summary.rows(figures, [("Tachyon", "", "no Python 3.15")] if not theirs else [])[0]

    def verdicts(self, row):
        return [goal["met"] for goal in row["goals"]]

    def test_met_and_missed(self):
        self.assertEqual(self.verdicts(self.row([50.0, 70.0, 60.0], [12.0])), [True, True])
        missed = self.row([50.0, 55.0, 60.0], [12.0])
        self.assertEqual(self.verdicts(missed), [False, False])
        self.assertIn("4.6 ×, **not met**", "\n".join(summary.markdown([missed])))

    def test_a_peer_that_cannot_be_had(self):
        row = self.row([60.0], [])
        self.assertEqual(self.verdicts(row), [None, True])
        self.assertEqual(row["cells"]["Tachyon"], "cannot be had")
        self.assertIn("1 of 2 goals met, 0 not met, 1 not measured", "\n".join(summary.markdown([row])))

    def test_one_impossible_stack_is_not_lost_in_a_median(self):
        rounds = [{"judged": 1000, "impossible": bad, "wrong_lines": 0} for bad in (0, 0, 1)]
        side = goals.Side({("3.15.0", "oracle tree", self.RATE, "sampled"): rounds}, "3.15.0", "oracle tree", self.RATE)
        self.assertFalse(goals.none_seen("impossible")(side)["met"])
        self.assertTrue(goals.none_seen("wrong_lines")(side)["met"])

    def test_the_limit_of_slowdown_reads_the_same_lines(self):
        figures = {("3.15.0", "depth10", self.RATE, tool): [{"slower_cpu": share, "slower_wall": share}]
                   for tool, share in (("sampled", 0.04), (tools.LIMIT, 0.01), (tools.SAME_LINES, 0.03))}
        cells = [row["cells"][tools.LIMIT] for row in summary.rows(figures, []) if "slowdown" in row["row"]]
        self.assertEqual(cells, ["3.00 %; a wall second 3.00 %"])

    def test_a_control_that_reads_nothing_is_none(self):
        control, text = tools.SameLines("limit"), "ticks=1000 short=%d wall_ns=1000000000 cpu_ns=30567876\n"
        self.assertEqual(control.parse(text % 0, 1)["snapshots"], 1000)
        with self.assertRaises(tools.Unreadable):
            control.parse(text % 1, 1)

    def test_memory_is_that_of_the_worst_round(self):
        rounds = [{"rss_bytes": size << 20} for size in (3, 4, 12)]
        side = goals.Side({("3.15.0", "depth10", 1000, "sampled"): rounds}, "3.15.0", "depth10", 1000)
        self.assertFalse(goals.never_above("rss_bytes", 8 << 20, str)(side)["met"])


class Credit(unittest.TestCase):
    """What of a profile's time is not where another has it."""

    def profile(self, *threads):
        """A thread is (tid, main, {function: (ns on a CPU, ns idle)})."""
        frames, lines = {}, [{"type": "profile"}, {"type": "process", "id": 0, "pid": 7}]
        for number, (tid, main, functions) in enumerate(threads):
            lines.append({"type": "thread", "id": number, "process": 0, "tid": tid, "main": main})
            lines.append({"type": "node", "thread": number, "id": 0, "frame": None, "self": {}})
            for function, (runnable, idle) in functions.items():
                if function not in frames:
                    frames[function] = len(frames)
                    lines.append({"type": "frame", "id": frames[function], "function": function})
                values = {"samples": 1000, "wall": runnable + idle, "runnable": runnable, "idle": idle}
                lines.append({"type": "node", "thread": number, "id": 1, "frame": frames[function], "self": values})
        return service_credit.read(json.dumps(line) for line in lines)[1]

    def wrong(self, ours, truth, key=service_credit.thread_by_thread):
        return service_credit.compare(self.profile(*ours), self.profile(*truth), key)

    def test_the_same_whatever_its_length(self):
        found = self.wrong([(7, True, {"wait": (0, 50), "work": (50, 0)})], [(7, True, {"wait": (0, 10), "work": (10, 0)})])
        self.assertEqual(found["wrong"], 0)
        self.assertGreater(found["chance"], 0)

    def test_function_and_state(self):
        truth = [(7, True, {"wait": (0, 90), "work": (10, 0)})]
        self.assertAlmostEqual(self.wrong([(7, True, {"wait": (0, 100)})], truth)["wrong"], 0.1)
        self.assertAlmostEqual(self.wrong([(7, True, {"wait": (5, 85), "work": (10, 0)})], truth)["wrong"], 0.05)

    def test_of_all_time(self):
        """A thread that is right besides: half of it is wrong half the time. Together chance evens out, what leans one way does not."""
        right = (8, False, {"wait": (0, 100)})
        ours, truth = (7, False, {"wait": (0, 100)}), (7, False, {"wait": (0, 50), "work": (50, 0)})
        self.assertAlmostEqual(self.wrong([ours, right], [truth, right])["wrong"], 0.25)
        both = [(7, True, {"a": (60, 40)}), (8, True, {"a": (40, 60)})], [(7, True, {"a": (50, 50)}), (8, True, {"a": (50, 50)})]
        self.assertAlmostEqual(self.wrong(*both)["wrong"], 0.1)
        self.assertAlmostEqual(self.wrong(*both, service_credit.by_kind({9}))["wrong"], 0)

    def test_nothing_in_common(self):
        self.assertEqual(self.wrong([(7, True, {"a": (1, 0)})], [(8, True, {"a": (1, 0)})]), {})


class Neighbour(tools.Tool):
    """Nothing but work on the target's CPU."""

    name = "neighbour"
    interrupt = True

    def command(self, target, _rate_hz, _seconds, _output):
        return [sys.executable, "-c", "import os\nos.sched_setaffinity(0, %r)\nwhile True: pass" % os.sched_getaffinity(target.pid)]

    def parse(self, _text, _threads):
        return {"seconds": None}


class Gone(Neighbour):
    name = "gone"

    def command(self, *_args):
        return ["true"]


class Slowdown(unittest.TestCase):
    def test_a_neighbour(self):
        """Half the wall time is lost to who works on the same CPU, and with it half the work, but next to none of what a CPU second does."""
        python = max((python for python in support.pythons() if not python.root), key=lambda python: python.version, default=None)
        if not python or python.version < (3, 7):
            self.skipTest("no Python of this host from 3.7 was found")
        place = measure.Workplace([python])
        self.addCleanup(place.close)
        failed = []
        with measure.Target(place, python, "depth8") as target:
            found = measure.slowdowns([Neighbour(), Gone()], target, 1000, 1, 5, lambda tool, why: failed.append((tool.name, why)))
            copied = target.copied()
        self.assertEqual((list(found), [name for name, _why in failed]), (["neighbour"], ["gone"]), failed)
        losses = found["neighbour"]
        self.assertEqual(len(losses), 5)
        self.assertIn("ended early", failed[0][1])
        self.assertEqual([64 <= size <= measure.CHUNK_BYTES for _address, size in copied], [True] * (2 if python.version >= (3, 11) else 0), copied)
        wall, cpu = (statistics.median(loss["slower_" + kind] for loss in losses) for kind in ("wall", "cpu"))
        self.assertGreater(wall, 0.3, losses)
        self.assertLess(cpu, 0.5 * wall, losses)


class MakeRecording(cli.Folder):
    def test_an_option_is_no_file(self):
        program = os.path.join("build", "tests", "tools", "make_recording")
        subprocess.run(["make", "-s", program], cwd=support.TOP, check=True, stdout=subprocess.DEVNULL, env={**os.environ, "MAKEFLAGS": ""})
        for option in ("--help", "-h", "-"):
            done = subprocess.run([os.path.join(support.TOP, program), option], cwd=self.folder, stderr=subprocess.PIPE)
            self.assertEqual(done.returncode, 2)
            self.assertTrue(done.stderr.startswith(b"usage: make_recording OUT "), done.stderr)
        self.assertEqual(os.listdir(self.folder), [])


if __name__ == "__main__":
    unittest.main()
