# SPDX-License-Identifier: Apache-2.0
"""Whether the stacks are right: every profiler on the programs of tests/oracle, judged by the same grammar, and its shares compared
with the same stopped process."""
import contextlib
import os
import subprocess
import time

import bias
import judge
import measure
import together
import tools
import workloads

# Name in the bench: the oracle's. What they do is told in their sources: tests/oracle/tree.py, recursion.py, tasks.py.
PROGRAMS = {"oracle tree": "tree", "oracle recursion": "recursion", "oracle tasks": "tasks"}
# Those whose frames all lie in the program itself: Tachyon names files by the last part of their path only.
JUDGED = ["oracle tree", "oracle recursion"]
BIAS_PROGRAMS = ["oracle tree", "oracle tasks"]
BIAS_HZ = 10000
BIAS_STOPS = 32000  # of 8,000, the largest difference of some dozens may be more than a point by chance
BIAS_PEER_S = 1  # a run of a peer; sampled's windows are the oracle's


class Target:
    """A running oracle, with what measure.py wants of a target. Use as a context manager."""

    def __init__(self, place, python, name):
        self.place, self.name = place, name
        self.program = workloads.Program(python, PROGRAMS[name])

    def __enter__(self):
        try:
            self.rules = self.program.rules()
            self.program.__enter__()
        except (OSError, RuntimeError, ValueError, subprocess.SubprocessError) as error:
            self.program.remove()
            raise measure.Failed("%s: %s" % (self.name, error))
        self.pid = self.program.process.pid
        time.sleep(0.3)  # code gets specialised
        self.threads = measure.thread_count(self.pid)
        cpus = sorted(os.sched_getaffinity(0))
        if len(cpus) > 1:
            os.sched_setaffinity(self.pid, {cpus[0]})
        return self

    def __exit__(self, *_error):
        self.program.__exit__()
        self.program.remove()

    def heap(self):
        return measure.heap_of(self.pid)

    def judged(self, tool, output, _report):
        """The verdict on what a profiler wrote, as figures."""
        data = tool.stacks.as_sampled(output, self.program.path)
        verdict = judge.judge(data, self.rules, self.pid)
        return {"judged": verdict.samples, "impossible": verdict.impossible, "wrong_lines": verdict.wrong_lines}


def peer_windows(tool, target, failed):
    """For bias.compare(): one run of a profiler, with target and profiler running at the same time as far as they may; a run that
    fails is told to failed(why) and yields nothing."""
    run = measure.Run(tool, target, BIAS_HZ, BIAS_PEER_S)
    try:
        if together.allowed():
            with contextlib.suppress(OSError):
                watch_until(target.pid, run, time.monotonic() + tool.lead_s + BIAS_PEER_S)
        else:
            run.sleep_until(BIAS_PEER_S)
        run.finish()
        yield tool.stacks.as_sampled(run.output, target.program.path)
    except measure.Failed as error:
        failed(str(error))
    finally:
        run.close()


def watch_until(pid, run, deadline):
    """Windows as together.watch() has them, until then or the run's end."""
    while time.monotonic() < deadline and run.process.poll() is None:
        with together.window(pid, run.process.pid):
            time.sleep(together.ON_S)
        time.sleep(together.OFF_S)


def biases(target, chosen, failed):
    """{tool name: figures} of those that can be compared; failed(tool name, why) is told of the others."""
    sources = {}
    for tool in chosen:
        if tool.name == "sampled":
            sources[tool.name] = lambda: bias.sampled_windows(target.program, str(BIAS_HZ), together.allowed())
        elif tool.name != tools.LIMIT:
            sources[tool.name] = lambda tool=tool: peer_windows(tool, target, lambda why: failed(tool.name, why))
    try:
        found = bias.compare(target.program, target.rules, BIAS_STOPS, together.allowed(), sources)
    except (OSError, RuntimeError, ValueError, subprocess.SubprocessError) as error:
        raise measure.Failed("bias: %s" % error)
    return {
        name: {
            "bias_self": bias.worst(one.self_points) / 100,
            "bias_depth": bias.worst(one.depth_points) / 100,
            "bias_beyond": one.beyond_chance() / 100,
        }
        for name, one in found.items()
    }
