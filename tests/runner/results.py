# SPDX-License-Identifier: Apache-2.0
"""What became of each test, whatever ran it: a command, a program that reports in TAP, or unittest; how long it took; and the summary."""
import json
import os
import re
import shutil
import subprocess
import threading
import time

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
JOBS = "-j%d" % (os.cpu_count() or 1)
SLOWEST = 10
# Why a test is skipped that an installed program would not let be skipped.
WANTS = re.compile(r"not installed|not on this machine|no gcore|not there|setup-\w+|not been built|not built yet|was found$")


class Results:
    def __init__(self):
        self.outcomes = []  # (name, "ok" | "fail" | "skip", seconds, why)
        self.lock = threading.Lock()  # some suites have several threads

    def add(self, outcome, name, seconds=0.0, why=""):
        with self.lock:
            self.outcomes.append((name, outcome, seconds, why))
            if outcome == "fail":
                print("  FAILED %s" % name, flush=True)
                for line in why.rstrip().splitlines()[-60:]:
                    print("    | " + line, flush=True)

    def ok(self, name, seconds=0.0):
        self.add("ok", name, seconds)

    def fail(self, name, text, seconds=0.0):
        self.add("fail", name, seconds, text)

    def skip(self, name, why):
        self.add("skip", name, 0.0, why)

    def of(self, outcome):
        return [found for found in self.outcomes if found[1] == outcome]

    def count(self, since=0):
        """passed, failed, skipped of all but the first `since` outcomes"""
        kinds = [found[1] for found in self.outcomes[since:]]
        return tuple(kinds.count(kind) for kind in ("ok", "fail", "skip"))

    def save(self, path):
        with open(path, "w", encoding="utf-8") as file:
            json.dump([[name, outcome, round(seconds, 2), gist(why) if outcome == "fail" else why] for name, outcome, seconds, why in self.outcomes], file)

    def summary(self):
        """Slowest tests, what was skipped and why, what failed; the last line has the sums."""
        lines = ["", "the %d slowest tests:" % SLOWEST]
        for name, _outcome, seconds, _why in sorted(self.outcomes, key=lambda found: -found[2])[:SLOWEST]:
            lines.append("  %6.1f s  %s" % (seconds, name))
        skipped = self.of("skip")
        lines += ["skipped: %s: %s" % (name, why) for name, _outcome, _seconds, why in skipped]
        if skipped:
            lines.append("skipped for want of something that can be installed: %d" % sum(1 for found in skipped if WANTS.search(found[3])))
        lines += ["failed: %s: %s" % (name, gist(why)) for name, _outcome, _seconds, why in self.of("fail")]
        lines.append("%d passed, %d failed, %d skipped" % self.count())
        return "\n".join(lines)


RESULTS = Results()


def gist(text):
    """The line of a failure's text that says most: the exception, or else the last. Of a long log often the summary alone is kept."""
    lines = text.strip().splitlines() or [""]
    return next((line for line in reversed(lines) if re.match(r"[\w.]*(Error|Exception|Timeout)\w*: ", line)), lines[-1])[:300]


def execute(command, timeout=600, env=None):
    """Runs a command to its end: (exit status or words for how it ended, its output, seconds)."""
    began = time.monotonic()
    process = subprocess.Popen(
        command,
        cwd=TOP,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=dict(os.environ, **(env or {})),
        start_new_session=True,
    )
    try:
        output = process.communicate(timeout=timeout)[0]
        status = process.returncode
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, 9)  # the session made above: only what this command started
        output = process.communicate()[0]
        status = "timeout after %d s" % timeout
    return status, output.decode("utf-8", "replace"), time.monotonic() - began


def command(name, argv, timeout=600, env=None):
    """One test: a command that must end with 0."""
    status, output, seconds = execute(argv, timeout, env)
    if status == 0:
        RESULTS.ok(name, seconds)
        return True
    RESULTS.fail(name, "%s\n%s\nexit status: %s" % (" ".join(argv), output, status), seconds)
    return False


def make(name, *args, timeout=900):
    return command(name, ["make", "--no-print-directory", JOBS, *args], timeout)


def missing(name, *programs):
    """Skips `name` where a program is not there."""
    for program in programs:
        if not shutil.which(program):
            RESULTS.skip(name, "%s is not installed" % program)
            return True
    return False


def seconds_of(line):
    """What Criterion says of a test's time, at the end of its line of TAP."""
    match = re.search(r"\((\d+\.\d+)s\)\s*$", line)
    return float(match.group(1)) if match else 0.0


def tap(suite, argv, timeout=600, env=None, file=None):
    """A program that reports in TAP, on standard output or into `file`. One that reports nothing, or that stops before
    all its tests were reported, is a failure."""
    status, output, _seconds = execute(argv, timeout, env)
    report = output
    if file and os.path.exists(file):
        with open(file, encoding="utf-8", errors="replace") as stream:
            report = stream.read()
    lines = report.splitlines()
    plan = [int(m.group(1)) for m in (re.match(r"1\.\.(\d+)", line) for line in lines) if m]
    seen = failed = 0
    for index, line in enumerate(lines):
        match = re.match(r"(ok|not ok)\b(?: (\d+))?(?: -)? (.*)", line)
        if not match:
            continue
        seen += 1
        text, _, directive = match.group(3).partition(" # ")
        name = "%s: %s" % (suite, re.sub(r"\s*\(\d+\.\d+s\)$", "", text.strip()))
        if directive.strip().upper().startswith(("SKIP", "TODO")):
            RESULTS.skip(name, directive.strip()[5:].strip() or "no reason given")
        elif match.group(1) == "ok":
            RESULTS.ok(name, seconds_of(text))
        else:
            failed += 1
            detail = []
            for more in lines[index + 1 :]:
                if re.match(r"(ok|not ok|1\.\.|#)", more):
                    break
                detail.append(more)
            RESULTS.fail(name, "\n".join(detail[:60]) or line, seconds_of(text))
    if seen == 0 or (plan and seen < plan[-1]) or (status != 0 and not failed):
        RESULTS.fail(suite, "%s\n%s\nexit status: %s, %d tests reported" % (" ".join(argv), output[-6000:], status, seen))
