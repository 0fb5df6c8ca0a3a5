# SPDX-License-Identifier: Apache-2.0
"""Whatever stops sampled itself (Ctrl-Z, SIGSTOP), the threads of its target run on, and it goes on when it is continued. SAMPLED_LONG=1: 100 times."""
import json
import os
import pty
import random
import signal
import subprocess
import time
import unittest

import native
import stopping
import support

TIMES = 100 if support.LONG else 25
AWAY_S = 1


def state(pid):
    """The letter in /proc; Z where it has ended and was waited for, too."""
    try:
        with open("/proc/%d/stat" % pid, "rb") as file:
            return chr(file.read().rpartition(b") ")[2][0])
    except (FileNotFoundError, ProcessLookupError):
        return "Z"


class SelfStop(unittest.TestCase):
    def setUp(self):
        if not support.pythons():
            self.skipTest("no supported Python was found")
        native.modules()

    def start(self, *args):
        """In a process group of its own: what stops it stops only it, and somebody is there to continue it."""
        process = support.start_sampled(*args, stdout=subprocess.DEVNULL, preexec_fn=lambda: os.setpgid(0, 0))
        self.addCleanup(self.end, process)
        return process

    def end(self, process):
        process.kill()
        process.communicate()

    def finish(self, process):
        process.send_signal(signal.SIGINT)
        _, error = process.communicate(timeout=support.PATIENCE_S)
        self.assertEqual(process.returncode, 0, error)

    def stop(self, process, target, number):
        """Sends the signal; returns when sampled stands and holds nothing, which must be soon."""
        process.send_signal(number)
        support.wait_until(lambda: state(process.pid) == "T" and not stopping.harm(target.pid), "it stands and holds nothing",
                           said=lambda: "%s, %r" % (state(process.pid), stopping.threads(target.pid)))

    def test_stopped_at_random_moments(self):
        for mode in ("--blocking", "--native"):
            for number in (signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU, signal.SIGSTOP):
                with self.subTest(mode=mode, signal=number):
                    self.stopped_at_random_moments(mode, number)

    def stopped_at_random_moments(self, mode, number):
        moments = random.Random(number)
        with stopping.target("work") as target:
            process = self.start("attach", target.pid, mode, "-r", "max", "-f", "collapsed", "-o", target.path("out"))
            support.wait_sampling(process)
            for _ in range(TIMES):
                time.sleep(moments.uniform(0, 0.03))
                self.stop(process, target, number)
                stopping.goes_on(target, (0, 1))
                # After SIGSTOP it is let go on until nothing is held, and stops itself then.
                support.wait_until(lambda: (state(process.pid), stopping.harm(target.pid)) == ("T", ""), "it stands, and nothing is held")
                process.send_signal(signal.SIGCONT)
            self.finish(process)
            self.assertEqual(stopping.harm(target.pid), "")

    def test_time_away(self):
        """It is not sampled: no tick is made up for."""
        with stopping.target("work") as target:
            output = target.path("out.jsonl")
            process = self.start("attach", target.pid, "--blocking", "-r", "200", "-f", "jsonl", "-o", output)
            support.wait_sampling(process)
            self.stop(process, target, signal.SIGTSTP)
            time.sleep(AWAY_S)
            process.send_signal(signal.SIGCONT)
            support.wait_sampling(process)
            self.finish(process)
            facts = native.Profile(output).facts
        self.assertGreater(facts["unsampled_ns"], 2.5 * AWAY_S * 1e9, facts)  # of three threads; more where it is late besides
        self.assertLess(facts["ticks"], 200 * (facts["duration_ns"] / 1e9 - 0.9 * AWAY_S), facts)

    def test_continued_at_once(self):
        """SIGCONT takes back what has not happened yet."""
        with stopping.target("work") as target:
            process = self.start("attach", target.pid, "--blocking", "-f", "collapsed", "-o", target.path("out"))
            support.wait_sampling(process)
            for _ in range(TIMES):
                process.send_signal(signal.SIGTSTP)
                process.send_signal(signal.SIGCONT)
            time.sleep(0.2)
            process.send_signal(signal.SIGCONT)
            self.finish(process)

    def test_dump(self):
        for number in (signal.SIGTSTP, signal.SIGSTOP):
            with self.subTest(signal=number), stopping.target("work") as target:
                moments = random.Random(number)
                for _ in range(TIMES):
                    process = support.start_sampled("dump", target.pid, "--blocking", "--json", preexec_fn=lambda: os.setpgid(0, 0))
                    self.addCleanup(self.end, process)
                    time.sleep(moments.uniform(0, 0.1))
                    process.send_signal(number)
                    support.wait_until(lambda: state(process.pid) in "TZ" and not stopping.harm(target.pid), "it stands and holds nothing")
                    stopping.goes_on(target, (0, 1))
                    process.send_signal(signal.SIGCONT)
                    out, error = process.communicate(timeout=support.PATIENCE_S)
                    self.assertEqual(process.returncode, 0, error)
                    self.assertEqual(len(json.loads(out)["threads"]), 3)

    def test_in_a_shell(self):
        """Ctrl-Z, fg and Ctrl-C at a terminal."""
        with stopping.target("work") as target:
            output = target.path("out")
            pid, terminal = pty.fork()
            if pid == 0:
                os.execvp("bash", ["bash", "--norc", "--noprofile", "-i"])
            try:
                os.write(terminal, b"%s attach %d --blocking -q -f collapsed -o %s\n" % (support.SAMPLED.encode(), target.pid, output.encode()))
                found = self.child(pid)
                support.wait_until(lambda: support.turns(found) > 50, "it samples")
                for _ in range(5):
                    os.write(terminal, b"\x1a")
                    support.wait_until(lambda: state(found) == "T" and not stopping.harm(target.pid), "it stands and holds nothing")
                    stopping.goes_on(target, (0, 1))
                    os.write(terminal, b"fg\n")
                    support.wait_until(lambda: state(found) != "T", "it goes on")
                    time.sleep(0.1)
                os.write(terminal, b"\x03")
                support.wait_until(lambda: os.path.exists(output), "it writes")
            finally:
                os.kill(pid, signal.SIGKILL)
                os.close(terminal)
                os.waitpid(pid, 0)

    def child(self, pid):
        """The child of the shell, once it is sampled."""
        found = []

        def look():
            with open("/proc/%d/task/%d/children" % (pid, pid)) as file:
                found[:] = [int(word) for word in file.read().split()]
            return found and os.path.basename(os.readlink("/proc/%d/exe" % found[0])) == os.path.basename(support.SAMPLED)

        support.wait_until(look, "the shell starts it")
        return found[0]


if __name__ == "__main__":
    unittest.main()
