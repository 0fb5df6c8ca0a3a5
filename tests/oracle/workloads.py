# SPDX-License-Identifier: Apache-2.0
"""The oracles' programs: starting them, sampling them as fast as it goes, and judging what came."""
import json
import os
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(os.path.dirname(HERE), "integration")]
import judge  # noqa: E402
import support  # noqa: E402
import together  # noqa: E402

# name: (program, arguments, seconds of witness; 0 where the stacks hold nothing of the standard library)
WORKLOADS = {
    "tree": ("tree.py", ["short"], 0),
    "context": ("tree.py", ["context"], 0),
    "tree20us": ("tree.py", ["long"], 0),
    "alternate": ("alternate.py", [], 0),
    "middle": ("middle.py", [], 0),
    "dispatch": ("dispatch.py", [], 0),
    "recursion": ("recursion.py", [], 0),
    "rec200": ("recursion.py", ["fixed"], 0),
    "generators": ("generators.py", [], 0),
    "expressions": ("expressions.py", [], 0),
    "callbacks": ("callbacks.py", [], 2),
    "redefine": ("redefine.py", [], 0),
    "unwind": ("unwind.py", [], 0),
    "threads": ("threads.py", [], 4),
    "tasks": ("tasks.py", [], 4),
    "sequence": ("sequence.py", [], 0),
    "passing": ("passing.py", [], 0),
}
PIECE_S = 20  # a long run is made of runs of this length, each judged by itself
READY_S = 60


class Program:
    """A running oracle. Use as a context manager; it is ready when entered."""

    def __init__(self, python, workload):
        self.python = python
        self.name, self.arguments, self.witness_s = WORKLOADS[workload]
        self.folder = tempfile.mkdtemp(prefix="sampled-oracle-", dir=(python.root or "") + "/tmp")
        os.chmod(self.folder, 0o755)
        inside = self.folder[len(python.root):]
        for name in (self.name, "witness.py"):
            shutil.copy(os.path.join(HERE, name), self.folder)
        self.path = os.path.join(inside, self.name)
        self.witness_path = os.path.join(inside, "witness.py")
        self.process = None

    def rules(self):
        command = self.python.argv + ["-B", self.witness_path, str(self.witness_s), self.path] + self.arguments
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd="/", timeout=60 + 5 * self.witness_s)
        try:
            facts = json.loads(done.stdout)
        except ValueError:
            raise RuntimeError("no witness: %s" % done.stderr.decode("utf-8", "replace")[-2000:])
        return judge.load(os.path.join(HERE, self.name), self.path, facts)

    def __enter__(self):
        self.process = subprocess.Popen(self.python.argv + ["-B", self.path] + self.arguments, stdout=subprocess.PIPE,
                                        stdin=subprocess.DEVNULL, cwd="/", start_new_session=True)
        if not select.select([self.process.stdout], [], [], READY_S)[0] or self.process.stdout.readline() != b"READY\n":
            self.__exit__()
            raise RuntimeError("%s did not get ready" % self.name)
        return self

    def __exit__(self, *_error):
        if self.process and self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        if self.process:
            self.process.wait()
            self.process.stdout.close()

    def remove(self):
        shutil.rmtree(self.folder, ignore_errors=True)


class Result:
    def __init__(self):
        self.verdict = judge.Verdict()
        self.tried = self.lost = 0
        self.causes = {}
        self.seconds = 0.0
        self.cpu_s = 0.0
        self.bias = None
        self.error = None

    @property
    def lost_percent(self):
        return 100.0 * self.lost / self.tried if self.tried else 100.0

    def million(self, count):
        return 1e6 * count / self.verdict.samples if self.verdict.samples else 0.0


def number(text):
    return int(text.replace(",", ""))


def sample(program, rules, seconds, result, parallel, keep=None, blocking=False, rate="max"):
    """One run of sampled, added to the result."""
    output = os.path.join(program.folder, "stacks")
    command = [support.SAMPLED, "attach", str(program.process.pid), "-v", "-r", rate, "-d", "%g" % seconds, "-f", "collapsed", "-o", output] + blocking * ["--blocking"]
    before = os.times()
    with tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=errors, stdin=subprocess.DEVNULL)
        try:
            if parallel:
                together.watch(program.process.pid, process)
            status = process.wait(60 + 3 * seconds)
        finally:
            process.kill()
            process.wait()
        errors.seek(0)
        summary = errors.read().decode("utf-8", "replace")
    after = os.times()
    if status != 0:
        raise RuntimeError("sampled: exit status %d: %s" % (status, summary[-500:]))
    with open(output, "rb") as file:
        data = file.read()
    os.remove(output)
    match = re.search(r"tried +([\d,]+).*?: taken ([\d,]+).*?; lost: (.*)", summary)
    if not match:
        raise RuntimeError("no summary: %s" % summary[-500:])
    result.tried += number(match.group(1))
    result.lost += number(match.group(1)) - number(match.group(2))
    for cause, count in re.findall(r"(\w+) ([\d,]+)", match.group(3)):
        result.causes[cause] = result.causes.get(cause, 0) + number(count)
    verdict = judge.judge(data, rules, program.process.pid)
    if verdict.samples == 0:
        raise RuntimeError("no samples: %s" % summary[-500:])
    result.verdict.add(verdict)
    result.seconds += seconds
    result.cpu_s += after.children_user + after.children_system - before.children_user - before.children_system
    if keep:
        with open(keep, "wb") as file:
            file.write(data)
