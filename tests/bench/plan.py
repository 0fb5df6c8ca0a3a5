# SPDX-License-Identifier: Apache-2.0
"""What the bench runs: which workloads, at which rates, for which of the tools.

A step names a workload of programs.py, or an oracle of correct.py, which is always run unthrottled."""
import collections

import correct
import tools

MAX = tools.UNTHROTTLED
Step = collections.namedtuple("Step", "workload rates slowdown_rates bias")
BUSY = ["depth8", "depth10", "rec200", "threads16", "asyncio20", "awaits", "web", "real"]
# Rows of the summary that other peers than Tachyon have in the quick form, on the Python that they read.
BESIDE = ["depth8", "rec200", "threads16", "awaits", "real"]
AT_RATES = ["depth10", "threads16", "awaits", "web", "real"]
LARGE = ["parked500", "busy500", "deep5000"]
SLOWDOWN = "depth10"
QUICK_LEFT_OUT = [
    "py-spy, and exact mode (Tachyon --blocking)",
    "at fixed rates: all but depth10, threads16, web and the large ones; Austin at fixed rates, its bias, and the large ones",
    "what the target loses to the peers, and at 1 kHz",
]


def oracles():
    return [Step(name, [MAX], [], name in correct.BIAS_PROGRAMS) for name in correct.JUDGED] + [
        Step(name, [], [], True) for name in correct.BIAS_PROGRAMS if name not in correct.JUDGED
    ]


def quick():
    unthrottled = ("depth8", "rec200", "asyncio20", "awaits", "real")
    steps = [Step(name, [MAX], [], False) for name in unthrottled]
    steps += [Step("web", [MAX, 1000], [], False)]
    steps += [Step(SLOWDOWN, [MAX, 1000, 10000], [MAX, 10000], False), Step("threads16", [MAX, 1000], [], False)]
    return steps + [Step(name, [1000], [], False) for name in LARGE] + oracles()


def quick_beside():
    """The second Python of the quick form: what another peer needs to stand in the summary."""
    return [Step(name, [MAX], [], False) for name in BESIDE + correct.JUDGED]


def full(first):
    """first: on the first of two Pythons, which gets the slowdown at all rates."""
    slow = [MAX, 1000, 10000] if first else [MAX, 10000]
    steps = [
        Step(name, [MAX, 1000, 10000] if name in AT_RATES else [MAX], slow if name == SLOWDOWN else [], False) for name in BUSY
    ]
    return steps + [Step(name, [MAX, 1000], [], False) for name in LARGE] + oracles()
