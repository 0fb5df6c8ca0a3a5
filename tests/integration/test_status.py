# SPDX-License-Identifier: Apache-2.0
"""What threads were seen doing, on programs that account for it themselves. Shares are of a thread's sampled time."""
import os
import re
import resource
import struct
import subprocess
import unittest

import htmlprofile
import support

TOLERANCE = 0.03
SECONDS = 6 if support.LONG else 4
COLUMNS = 4  # of tests/targets/truth.py


class Table:
    """The target's own account; read before and after, the difference is the window's."""

    def __init__(self, path):
        self.path = path

    def read(self):
        with open(self.path, "rb") as file:
            data = file.read()
        words = struct.unpack("=%dQ" % (len(data) // 8), data)
        return [words[row : row + COLUMNS] for row in range(0, len(words), COLUMNS)]


def difference(before, after):
    return [[b - a for a, b in zip(x, y)] for x, y in zip(before, after)]


class Shares(unittest.TestCase):
    def profile(self, target, rate=1000):
        page = target.path("out.html")
        done = support.sampled("attach", target.pid, "-d", SECONDS, "-r", rate, "-f", "flamegraph", "-o", page)
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(page, "rb") as file:
            return htmlprofile.Profile(file.read())

    def assert_share(self, thread, value, least, most, why):
        share = thread.share(value)
        text = "%s of %s is %.3f, should be %.3f to %.3f: %s" % (value, thread.name, share, least, most, why)
        self.assertGreaterEqual(share, least - TOLERANCE, text)
        self.assertLessEqual(share, most + TOLERANCE, text)

    def assert_whole(self, thread, profile):
        """Wall is every sample, and what was not sampled is accounted for; idle and unknown exclude what they must."""
        self.assertGreater(thread.total("wall") + profile.facts["unsampled_ns"], 0.95e9 * SECONDS)
        self.assertLessEqual(thread.total("wall"), 1.05e9 * SECONDS)
        self.assertLessEqual(thread.total("gil") + thread.total("gil_wait") + thread.total("idle"), thread.total("wall"))
        self.assertLessEqual(thread.total("runnable") + thread.total("idle") + thread.total("unknown"), thread.total("wall"))


@support.each_python
class Status(Shares):
    @support.on(support.each_version)
    def check_gil_fight(self, python):
        """Four threads that always want the GIL: holding and waiting are shares of their own account."""
        with support.Target(python, "gilfight.py", "@/table") as target:
            table = Table(target.path("table"))
            before = table.read()
            profile = self.profile(target)
            rows = difference(before, table.read())
        whole = sum(held + handed for held, handed, _, _ in rows)
        gil = 0
        for tid, row in target.facts["threads"].items():
            thread = profile.thread(int(tid))
            held, handed = (number / whole for number in rows[row][:2])
            why = "held %.3f of the time, hand-overs to it took %.3f" % (held, handed)
            self.assert_whole(thread, profile)
            self.assert_share(thread, "gil", held, held + handed, why)
            self.assert_share(thread, "gil_wait", 1 - held - handed, 1 - held, why)
            self.assert_share(thread, "idle", 0, 0, "it always wants the GIL")
            gil += thread.share("gil")
        self.assertLessEqual(gil, 1 + TOLERANCE, "only one thread holds the GIL")

    @support.on(support.each_version)
    def check_status(self, python):
        """One burns, one sleeps, one waits for a lock, and C code with the GIL released keeps a core busy."""
        natives = max(1, (os.cpu_count() or 1) - 1)
        with support.Target(python, "status.py", "@/table", natives) as target:
            table = Table(target.path("table"))
            before = table.read()
            profile = self.profile(target)
            rows = difference(before, table.read())
        for tid, name in target.facts["threads"].items():
            thread = profile.thread(int(tid))
            self.assertEqual(thread.name, name)
            self.assert_whole(thread, profile)
            if name == "burner":
                self.assert_share(thread, "gil", 1, 1, "nothing else wants the GIL for long")
                self.assert_share(thread, "runnable", 1, 1, "it burns")
                self.assert_share(thread, "idle", 0, 0, "it burns")
            elif name in ("sleeper", "waiter"):
                for value, share in (("gil", 0), ("gil_wait", 0), ("runnable", 0), ("idle", 1)):
                    self.assert_share(thread, value, share, share, "it is parked")
            else:
                inside, outside, off_cpu = rows[int(name.split()[1])][:3]
                share = outside / max(1, inside + outside)
                waited = off_cpu / max(1, inside + outside)
                why = "in C for %.3f of its time, off the CPU for %.3f" % (1 - share, waited)
                self.assert_share(thread, "gil", 0, share, why)
                self.assert_share(thread, "gil_wait", 0, share + waited, why)
                self.assert_share(thread, "idle", 0, 0, "it is runnable or wants the GIL")
                self.assert_share(thread, "runnable", 1 - share - waited, 1, why)
        self.assertEqual(
            sum(thread.total("unknown") for thread in profile.threads), 0, "this machine tells whether a thread runs"
        )

    @support.on(support.few)
    def check_lockstep(self, python):
        """A program that goes in step with the sampler is met at all that it does; at any other place of its period, too."""
        for period_ns in (1000000, 200000):
            self.first(python, period_ns, 0, 1000)

    @support.on(support.few)
    def check_one_cpu(self, python):
        """A program that works a little and sleeps, with the sampler on the same CPU: a tick must not wait until it sleeps."""
        if tuple(int(re.match(r"\d+", part).group()) for part in os.uname().release.split(".")[:2]) < (6, 12):
            self.skipTest("before Linux 6.12 none can ask to be let in at once")
        cpus = os.sched_getaffinity(0)
        os.sched_setaffinity(0, {min(cpus)})
        try:
            self.first(python, 2000000, 1, 500)
        finally:
            os.sched_setaffinity(0, cpus)

    def first(self, python, period_ns, sleeps, rate):
        """lockstep.py's first() has the share of its own account."""
        with support.Target(python, "lockstep.py", "@/table", period_ns, sleeps) as target:
            table = Table(target.path("table"))
            before = table.read()
            thread = self.profile(target, rate).threads[0]
            first, whole = difference(before, table.read())[0][:2]
        share = sum(node.self.get("wall", 0) for node in thread.nodes if node.name == "first") / thread.total("wall")
        self.assertAlmostEqual(share, first / whole, delta=2 * TOLERANCE, msg="first() of periods of %d ns" % period_ns)

    @support.on(support.few)
    def check_modes(self, python):
        """--mode gil and cpu, --no-idle and -t count what they say."""
        with support.Target(python, "status.py", "@/table") as target:
            tids = {name: int(tid) for tid, name in target.facts["threads"].items()}
            shares = {}
            for key, options in {
                "wall": [], "gil": ["--mode", "gil"], "cpu": ["--mode", "cpu"], "busy": ["--no-idle"],
                "one": ["-t", "sleeper"], "tid": ["-t", str(tids["burner"])],
            }.items():
                page = target.path("out.html")
                done = support.sampled("attach", target.pid, "-d", "1", "-r", "500", "-o", page, *options)
                self.assertEqual(done.returncode, 0, done.stderr)
                with open(page, "rb") as file:
                    profile = htmlprofile.Profile(file.read())
                # Of the ticks that there were: a busy machine has fewer than were asked for.
                shares[key] = {
                    thread.name: thread.total("samples") / profile.facts["ticks"]
                    for thread in profile.threads
                    if thread.total("samples")
                }
        for key, name in (
            ("wall", "burner"), ("wall", "sleeper"), ("wall", "native 0"), ("gil", "burner"), ("cpu", "burner"),
            ("cpu", "native 0"), ("busy", "native 0"), ("one", "sleeper"), ("tid", "burner"),
        ):
            self.assertGreater(shares[key].get(name, 0), 0.9, "%s in a profile of %s: %r" % (name, key, shares))
        for key, name in (("gil", "sleeper"), ("gil", "waiter"), ("cpu", "sleeper"), ("cpu", "waiter"), ("busy", "waiter")):
            self.assertNotIn(name, shares[key], "in a profile of " + key)
        self.assertEqual(set(shares["one"]), {"sleeper"})
        self.assertEqual(set(shares["tid"]), {"burner"})


IDLE_THREADS = """
import threading, time
for i in range(150):
    threading.Thread(target=threading.Event().wait, daemon=True).start()
print("ready", flush=True)
time.sleep(60)
"""


@support.needs_python
class ManyThreads(unittest.TestCase):
    def test_a_low_soft_limit_on_open_files_hides_no_state(self):
        """Descriptors are kept for each thread: more than the soft limit, which is raised, lets us have."""
        target = subprocess.Popen(support.newest().argv + ["-c", IDLE_THREADS], stdout=subprocess.PIPE)
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        try:
            self.assertEqual(target.stdout.readline(), b"ready\n")
            process = support.start_sampled(
                "attach", target.pid, "-d", "1", "-r", "50", "-f", "collapsed", "-o", "-",
                preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (64, hard)),
            )
            _out, error = process.communicate(timeout=60)
        finally:
            target.kill()
            target.wait()
            target.stdout.close()
        self.assertEqual(process.returncode, 0, error)
        self.assertIn("unknown 0.0 %", error.decode())


if __name__ == "__main__":
    unittest.main()
