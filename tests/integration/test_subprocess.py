# SPDX-License-Identifier: Apache-2.0
"""--subprocesses: workers that are there, children that come and go, children that are no Python; and several PIDs."""
import json
import os
import re
import signal
import subprocess
import tempfile
import unittest

import support

FUNCTIONS = ("spin", "worker_loop")
ROUNDS = 30  # of two seconds, until each worker was seen in all of them: on a busy machine there are few samples


def by_pid(lines):
    found = {}
    for line in lines:
        found.setdefault(line.pid, []).append(line)
    return found


@support.each_python
class Subprocesses(unittest.TestCase):
    @support.on(support.each_version)
    def check_workers(self, python):
        """A multiprocessing master shows its workers, each with its own functions."""
        seen = {}
        with support.Target(python, "forks.py", 3) as target:
            workers = set(target.facts["workers"])
            for _ in range(ROUNDS):
                done = support.sampled("attach", target.pid, "--subprocesses", "-d", "2", "-r", "300", "-f", "collapsed", "-o", "-")
                self.assertEqual(done.returncode, 0, done.stderr)
                for pid, lines in by_pid(support.parse_collapsed(done.stdout)).items():
                    seen.setdefault(pid, set()).update(frame[0] for line in lines for frame in line.frames)
                if all(seen.get(pid, set()) >= set(FUNCTIONS) for pid in workers):
                    break
        self.assertEqual(set(seen), {target.pid} | workers)
        for pid in workers:
            self.assertLessEqual(set(FUNCTIONS), seen[pid])

    @support.on(support.few)
    def check_without(self, python):
        """Children are left alone unless asked for."""
        with support.Target(python, "forks.py", 2) as target:
            done = support.sampled("attach", target.pid, "-d", "0.5", "-r", "200", "-f", "collapsed", "-o", "-")
            self.assertEqual(done.returncode, 0, done.stderr)
            lines = support.parse_collapsed(done.stdout)
        self.assertEqual({line.pid for line in lines}, {None})

    @support.on(support.few)
    def check_come_and_go(self, python):
        """Children that live for 100 ms, one in ten no Python: none of them ends the profile, and they are seen."""
        with support.Target(python, "forks.py", 1, 100) as target:
            done = support.sampled(
                "attach", target.pid, "--subprocesses", "-d", "6", "-r", "500", "-f", "collapsed", "-o", "-"
            )
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn(target.state(), "RSD")
            lines = support.parse_collapsed(done.stdout)
        short = {line.pid for line in lines for frame in line.frames if frame[0] == "short_lived"}
        self.assertTrue(short, "short-lived children that were seen")
        self.assertIn(target.facts["workers"][0], {line.pid for line in lines})


# 200 threads that wait; one of them starts a Python that is busy, when it is told: well after the first look at all threads' children.
MANY_THREADS = """
import subprocess, sys, threading, time
def parent():
    sys.stdin.readline()
    subprocess.Popen(sys.argv[1:] + ["-c", "def late():\\n  while True: pass\\nlate()"]).wait()
for i in range(199):
    threading.Thread(target=threading.Event().wait, daemon=True).start()
threading.Thread(target=parent, daemon=True).start()
print("ready", flush=True)
time.sleep(600)
"""


@support.needs_python
class ManyThreads(unittest.TestCase):
    def test_child_of_another_thread_is_found(self):
        python = support.newest()
        inside = python.argv[2:] if python.root else python.argv
        process = subprocess.Popen(
            python.argv + ["-c", MANY_THREADS] + inside, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
        )
        sampled = None
        try:
            self.assertEqual(process.stdout.readline(), b"ready\n")
            with tempfile.TemporaryDirectory() as folder:
                sampled = support.start_sampled("attach", process.pid, "--subprocesses", "-r", "50", "-f", "collapsed", "-o", "out.txt", cwd=folder)
                support.wait_sampling(sampled)
                process.stdin.write(b"\n")
                process.stdin.flush()
                support.wait_until(lambda: self.is_seen("late", sampled, folder), "the child is sampled")
                sampled.send_signal(signal.SIGINT)
                _out, error = sampled.communicate(timeout=support.PATIENCE_S)
                self.assertEqual(sampled.returncode, 0, error)
        finally:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            if sampled:
                sampled.kill()
                sampled.communicate()

    def is_seen(self, function, sampled, folder):
        """By one snapshot more."""
        support.wait_sampling(sampled, 10)
        path = os.path.join(folder, "out.%04d.txt" % (len(os.listdir(folder)) + 1))
        sampled.send_signal(signal.SIGUSR1)
        support.wait_until(lambda: os.path.exists(path), path)
        return any(name == function for line in support.read_collapsed(path) for name, _, _ in line.frames)


# A daemon as daemons are made: forked twice, by a parent that ends before it; and more that end at once, which nobody but sampled waits for.
DAEMON = """
import os, select, sys, time
def work(seconds):
    end = time.process_time() + seconds
    while time.process_time() < end:
        sum(range(1000))
begins, ends = os.pipe()
def daemon_main():
    # until the command has ended, and then for some time
    os.close(ends)
    while not select.select([begins], [], [], 0)[0]:
        work(0.1)
    work(float(sys.argv[1]) / 4)
def leave(what):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            what()
        os._exit(0)
    os.wait()
work(float(sys.argv[1]) / 4)
leave(daemon_main)
for _ in range(20):
    leave(lambda: None)
print(os.getppid(), flush=True)
work(float(sys.argv[1]) / 2)
sys.exit(7)
"""


def children_of(pid):
    with open("/proc/%d/task/%d/children" % (pid, pid)) as file:
        return [int(word) for word in file.read().split()]


def is_zombie(pid):
    try:
        with open("/proc/%d/stat" % pid, "rb") as file:
            return file.read().rpartition(b") ")[2][:1] == b"Z"
    except OSError:
        return False


@support.needs_python
class Daemons(unittest.TestCase):
    LIFE_S = 2 * support.LIFE_S

    def run_daemon(self, *options):
        """What sampled wrote, and its exit status; while the command runs all that ended is waited for."""
        with tempfile.TemporaryDirectory() as folder:
            output = os.path.join(folder, "out")
            process = support.start_sampled("run", "--subprocesses", *options, "-f", "collapsed", "-o", output, "--",
                                            *support.newest().argv, "-c", DAEMON, self.LIFE_S)
            try:
                self.assertEqual(int(process.stdout.readline()), process.pid)
                support.wait_until(lambda: not any(is_zombie(pid) for pid in children_of(process.pid)), "those that ended are waited for")
                _, error = process.communicate(timeout=support.PATIENCE_S)
                return support.read_collapsed(output), process.returncode, error.decode()
            finally:
                process.kill()
                process.communicate()

    def test_is_followed(self):
        """To its end, which comes after the command's; the exit status is the command's."""
        for options in ((), ("--blocking",)):
            with self.subTest(options=options):
                lines, status, error = self.run_daemon(*options)
                self.assertEqual(status, 7, error)
                self.assertIn("the command has ended", error)
                counts = {pid: sum(line.count for line in of) for pid, of in by_pid(lines).items()}
                daemon = sum(line.count for line in lines if [name for name, _, _ in line.frames][-2:] == ["daemon_main", "work"])
                command = sum(line.count for line in lines if [name for name, _, _ in line.frames][-2:] == ["<module>", "work"])
                self.assertTrue(daemon and command, counts)


POOL = """
import subprocess, sys, time
workers = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(3)]
others = subprocess.Popen(["sleep", "60"])
print("ready", flush=True)
time.sleep(float(sys.argv[1]))
for worker in workers + [others]:
    worker.kill()
    worker.wait()
"""


class Pool(unittest.TestCase):
    """A master that waits, with three Python children that work."""

    def setUp(self):
        found = [python for python in support.pythons() if not python.root]
        if not found:
            self.skipTest("no Python outside of another root")
        self.argv = found[-1].argv

    def start(self):
        process = subprocess.Popen(self.argv + ["-c", POOL, "60"], stdout=subprocess.PIPE, start_new_session=True)
        self.addCleanup(self.end, process)
        self.assertEqual(process.stdout.readline(), b"ready\n")
        return process

    def end(self, process):
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        process.stdout.close()


@support.needs_python
class Unasked(Pool):
    """Without --subprocesses: that there are Python children is said, for the work may be theirs."""

    def test_attach(self):
        said = b"process %d has children that are Pythons, too, and are not shown: 3 (--subprocesses"
        process = self.start()
        support.wait_until(lambda: len(children_of(process.pid)) == 4, "all children are there")
        done = support.sampled("attach", process.pid, "-d", "0.5", "-f", "collapsed", "-o", "-")
        self.assertIn(said % process.pid, done.stderr)
        done = support.sampled("attach", process.pid, "--subprocesses", "-d", "2", "-f", "collapsed", "-o", "-")
        self.assertNotIn(b"children that are Pythons", done.stderr)
        self.assertEqual(len(re.findall(rb"(?m)^  process +\d+, Python", done.stderr)), 4, "all four are named: %r" % done.stderr)

    def test_run(self):
        done = support.sampled("run", "-f", "collapsed", "-o", "-", "--", *self.argv, "-c", POOL, "3")
        self.assertRegex(done.stderr, rb"process \d+ has children that are Pythons, too, and are not shown: 3 ")


@support.needs_python
class Dump(Pool):
    def dump(self, *args):
        done = support.sampled("dump", *args)
        return done.returncode, done.stdout.decode(), done.stderr.decode()

    def test_children(self):
        process = self.start()
        support.wait_until(lambda: len(children_of(process.pid)) == 4, "all children are there")
        status, out, error = self.dump(process.pid)
        self.assertEqual((status, re.findall(r"(?m)^Process (\d+)", out)), (0, [str(process.pid)]), error)
        self.assertIn("process %d has children that are Pythons, too, and are not shown: 3" % process.pid, error)
        pids = [process.pid] + children_of(process.pid)[:3]
        status, out, error = self.dump(process.pid, "--subprocesses")
        self.assertEqual((status, [int(pid) for pid in re.findall(r"(?m)^Process (\d+)", out)], error), (0, pids, ""))
        status, out, error = self.dump(process.pid, "--subprocesses", "--json")
        self.assertEqual((status, [one["pid"] for one in json.loads(out)], error), (0, pids, ""))

    def test_several(self):
        """Each that can be, and an error of each that cannot; one is an object, several are an array."""
        first, second = self.start(), self.start()
        status, out, error = self.dump(second.pid, os.getpid(), first.pid, 1 << 22, "--json")
        self.assertEqual([one["pid"] for one in json.loads(out)][::2], [second.pid, first.pid], error)
        self.assertEqual(status, 3)
        self.assertIn("cannot read process %d: no such process" % (1 << 22), error)
        self.assertEqual(json.loads(self.dump(first.pid, "--json")[1])["pid"], first.pid)
        self.assertEqual(self.dump(1 << 22, "--json", "--subprocesses")[:2], (3, ""))


@support.needs_python
class SeveralPids(unittest.TestCase):
    def test_goes_on_while_one_lives(self):
        python = support.newest()
        with support.Target(python, "busy.py", 1) as first, support.Target(python, "busy.py", 2) as second:
            process = support.start_sampled("attach", first.pid, second.pid, "-r", "200", "-f", "collapsed", "-o", "-")
            support.wait_sampling(process)
            first.process.kill()
            support.wait_sampling(process, 200)  # one target still lives
            second.process.kill()
            out, err = process.communicate(timeout=support.PATIENCE_S)
        self.assertEqual(process.returncode, 0, err)
        counts = {pid: sum(line.count for line in lines) for pid, lines in by_pid(support.parse_collapsed(out)).items()}
        self.assertEqual(set(counts), {first.pid, second.pid})
        self.assertGreater(counts[second.pid], counts[first.pid])


if __name__ == "__main__":
    unittest.main()
