# SPDX-License-Identifier: Apache-2.0
"""How much of the time in one profile is not where another has it, that was made of the same processes at the same time: for the time that
the service credits instead of reading. Profiles are JSON Lines (docs/JSONL.md)."""
import json
import math


class Thread:
    """Nanoseconds and samples of one thread, by (innermost function, what the kernel says of it)."""

    def __init__(self, pid, tid, main):
        self.pid, self.tid, self.main = pid, tid, main
        self.ns, self.samples = {}, 0

    def add(self, function, values):
        wall, runnable, idle = (values.get(key, 0) for key in ("wall", "runnable", "idle"))
        for state, ns in (("runnable", runnable), ("idle", idle), ("neither", wall - runnable - idle)):
            if ns > 0:
                self.ns[function, state] = self.ns.get((function, state), 0) + ns
        self.samples += values.get("samples", 0)


def read(lines):
    """(what the profile says of itself, [Thread])."""
    about, processes, threads, frames = {}, {}, {}, {None: "(no frame)"}
    for line in lines:
        item = json.loads(line)
        if item["type"] == "profile":
            about = item
        elif item["type"] == "process":
            processes[item["id"]] = item["pid"]
        elif item["type"] == "thread":
            threads[item["id"]] = Thread(processes[item["process"]], item["tid"], item["main"])
        elif item["type"] == "frame":
            frames[item["id"]] = item["function"]
        elif item["type"] == "node" and item["self"]:
            threads[item["thread"]].add(frames[item["frame"]], item["self"])
    return about, list(threads.values())


def pooled(threads, key):
    """Threads of one kind as one."""
    pools = {}
    for thread in threads:
        pool = pools.setdefault(key(thread), Thread(0, 0, thread.main))
        for state, ns in thread.ns.items():
            pool.ns[state] = pool.ns.get(state, 0) + ns
        pool.samples += thread.samples
    return pools


def shares(thread):
    total = sum(thread.ns.values())
    return {state: ns / total for state, ns in thread.ns.items()} if total else {}


def distance(ours, truth):
    """The share of a thread's time that is elsewhere in the other, and what chance alone is expected to make of it."""
    mine, theirs = shares(ours), shares(truth)
    states = set(mine) | set(theirs)
    apart = sum(abs(mine.get(state, 0) - theirs.get(state, 0)) for state in states) / 2
    chance = 0
    for state in states:
        share = theirs.get(state, 0)
        deviation = math.sqrt(share * (1 - share) * (1 / max(ours.samples, 1) + 1 / max(truth.samples, 1)))
        chance += deviation * math.sqrt(2 / math.pi) / 2
    return apart, chance


def compare(ours, truth, key):
    """Of all time of the threads in both: the share that is wrong, and by chance, when threads of one kind are taken together."""
    ours, truth = pooled(ours, key), pooled(truth, key)
    time_ns = wrong_ns = chance_ns = 0
    for kind in ours.keys() & truth.keys():
        apart, chance = distance(ours[kind], truth[kind])
        ns = sum(ours[kind].ns.values())
        time_ns += ns
        wrong_ns += apart * ns
        chance_ns += chance * ns
    return {"wrong": wrong_ns / time_ns, "chance": chance_ns / time_ns, "thread_s": time_ns / 1e9} if time_ns else {}


def thread_by_thread(thread):
    return thread.pid, thread.tid


def by_kind(busy):
    """Main threads and others, of the processes that are always busy and of the others."""
    return lambda thread: (thread.main, thread.pid in busy)
