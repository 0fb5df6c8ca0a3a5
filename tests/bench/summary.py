# SPDX-License-Identifier: Apache-2.0
"""The table at the top: sampled beside its peers and the limit of the machine, a row a question, with the goals and whether each is
met. Cells are medians (min–max) of runs that were interleaved; ratios are of medians. A goal whose figures are not there is "not
measured", never met."""
import statistics

import correct
import table
from goals import (
    OURS, TACHYON, Side, above_the_limit, at_least, at_most, good_times_tachyon, never_above, none_seen, of_the_limit,
    percent_shown, small_fraction_of, ticks_below_the_limit, times_tachyon,
)
from tools import LIMIT, SAME_LINES, UNTHROTTLED

EXACT = "Exact mode (a target that is stopped for each sample) has no row: make bench-native measures it; --full shows Tachyon's on the oracles."
PEERS = [TACHYON, "Austin", "py-spy", "Tachyon --blocking"]
ALWAYS = [TACHYON, "Austin"]  # have a column even if they could not be had
JUDGED = "impossible", "wrong_lines"
MIB = 2**20


# Cells: rows of figures -> text, or None.


def plain(figure, show, unit=""):
    return lambda rows: table.spread(rows, figure, show) + unit if table.values(rows, figure) else None


def rate_and_failures(rows):
    failed = [1 - value for value in table.values(rows, "good")]
    text = plain("per_s", table.count)(rows)
    return text and text + ("; fails %.2f %%" % (100 * statistics.median(failed)) if failed else "")


def cores_and_ticks(rows):
    text = plain("cores", table.three)(rows)
    return text and "%s; ticks %s %%" % (text, table.spread(rows, "reached", table.percent))


def failures(rows):
    failed = [{"failed": 1 - value} for value in table.values(rows, "good")]
    if not failed:
        return None
    return "%s %% of %s/s" % (table.spread(failed, "failed", table.percent), table.spread(rows, "per_s", table.count))


def seldom(figure):
    def cell(rows):
        value = table.a_million(rows, figure)
        return None if value is None else "%s (of %s)" % (table.rare(value), table.count(sum(table.values(rows, "judged"))))

    return cell


BIAS = ("bias_self", lambda share: "%.1f self" % (100 * share)), ("bias_depth", lambda share: "%.1f depth" % (100 * share))


def points(rows):
    if not table.values(rows, "bias_self"):
        return None
    return ", ".join(shown(table.median(rows, figure)) for figure, shown in BIAS)


def lost_work(rows):
    if not table.values(rows, "slower_cpu"):
        return None
    wall = table.percent(table.median(rows, "slower_wall"))
    return "%s %%; a wall second %s %%" % (table.spread(rows, "slower_cpu", table.percent), wall)


class Row:
    """figure: what ratios are made of, or None; more: whether more of it is better; value: what goes into the JSON; limit: whose figures are the
    machine's limit."""

    def __init__(self, title, workload, rate, cell, *goals, figure=None, more=False, value=None, limit=LIMIT):
        self.title, self.workload, self.rate, self.cell, self.goals, self.limit = title, workload, rate, cell, goals, limit
        self.figure, self.more, self.value = figure, more, value or figure


def rate_row(title, workload, *goals):
    title += ", unthrottled: snapshots/s"
    return Row(title, workload, UNTHROTTLED, rate_and_failures, *goals, figure="per_s", more=True)


def cpu_row(title, workload, rate, *goals):
    return Row(title, workload, rate, plain("cpu_us", table.micro), *goals, figure="cpu_us")


def sleeping_row(rate, most_above):
    goals = above_the_limit("cores", most_above, table.three), ticks_below_the_limit(0.005)
    return Row("%s Hz: cores" % table.count(rate), "depth10", rate, cores_and_ticks, *goals, figure="cores")


def oracle_row(title, workload, figure):
    return Row(title, workload, UNTHROTTLED, seldom(figure), none_seen(figure), value=figure)


def bias_row(title, workload):
    goals = [at_most(figure, 0.01, shown) for figure, shown in BIAS]
    return Row(title + ": points off the stopped truth", workload, correct.BIAS_HZ, points, *goals, value="bias_self")


def slowdown_row(title, rate, most):
    goals = [at_most("slower_cpu", most, percent_shown)] if most else []
    return Row(title, "depth10", rate, lost_work, *goals, value="slower_cpu", limit=SAME_LINES)


def memory_row(title, workload, rate):
    goal = never_above("rss_bytes", 8 * MIB, lambda value: table.mebibytes(value) + " MiB")
    return Row(title, workload, rate, plain("rss_bytes", table.mebibytes, " MiB"), goal, figure="rss_bytes")


def kept(value):
    return percent_shown(value) + " kept"


ASYNCIO = times_tachyon(3), good_times_tachyon(12)
ROWS = [
    rate_row("one thread, 8 deep", "depth8", times_tachyon(5), of_the_limit(0.6)),
    rate_row("recursion, 200 deep", "rec200", times_tachyon(5), of_the_limit(0.6)),
    rate_row("16 threads", "threads16", times_tachyon(5), of_the_limit(0.6)),
    rate_row("asyncio, tasks of some work", "asyncio20", *ASYNCIO),
    rate_row("asyncio, tasks that mostly await", "awaits", *ASYNCIO),
    rate_row("an aiohttp server and its clients", "web", *ASYNCIO),
    Row("an aiohttp server and its clients, at 1,000 Hz: dropped", "web", 1000, failures, at_least("good", 0.999, kept), value="good"),
    rate_row("busy real program", "real", times_tachyon(3)),
    cpu_row("CPU a sample, unthrottled, 8 deep: µs", "depth8", UNTHROTTLED, at_most("cpu_us", 3, table.micro)),
    sleeping_row(1000, 0.015),
    sleeping_row(10000, 0.05),
    Row("16 threads at 1,000 Hz: cores", "threads16", 1000, cores_and_ticks, at_most("cores", 0.06, table.three), figure="cores"),
    Row("calls of 100 ns: dropped", "oracle tree", UNTHROTTLED, failures, value="good"),
    oracle_row("calls of 100 ns: impossible stacks a million", "oracle tree", "impossible"),
    oracle_row("calls of 100 ns: wrong caller lines a million", "oracle tree", "wrong_lines"),
    oracle_row("recursion up to 200 deep: impossible stacks a million", "oracle recursion", "impossible"),
    oracle_row("recursion up to 200 deep: wrong caller lines a million", "oracle recursion", "wrong_lines"),
    bias_row("calls of 100 ns", "oracle tree"),
    bias_row("asyncio", "oracle tasks"),
    slowdown_row("target's slowdown at 1,000 Hz", 1000, None),
    slowdown_row("target's slowdown at 10,000 Hz", 10000, 0.01),
    slowdown_row("target's slowdown, unthrottled", UNTHROTTLED, 0.05),
    memory_row("peak RSS at 1,000 Hz, with the tree", "depth10", 1000),
    memory_row("peak RSS, unthrottled, with the tree", "depth10", UNTHROTTLED),
    cpu_row("500 threads that wait, at 1,000 Hz: CPU µs a snapshot", "parked500", 1000, small_fraction_of("busy500", 0.1)),
    cpu_row("500 threads that work, at 1,000 Hz: CPU µs a snapshot", "busy500", 1000),
    Row("5,000 deep, at 1,000 Hz: whole stacks, %", "deep5000", 1000, plain("whole", table.percent), at_least("whole", 0.99, percent_shown), value="whole"),
]


def python_of(figures, tool):
    """The first Python on which the tool has figures; without any, the first of all."""
    for python, _workload, _rate, name in figures:
        if name == tool:
            return python
    return next(iter(figures), ("",))[0]


def why_absent(missing, tool, workload):
    """What to say in a cell without figures."""
    for what, where, _why in missing:
        if what == tool and where in ("", workload):
            return "failed" if where else "cannot be had"
    return "–"


def one_row(row, figures, missing):
    """The row's cells and ratios by tool, as text and as numbers."""
    beside = TACHYON if any(key[3] == TACHYON for key in figures) else OURS
    main = Side(figures, python_of(figures, beside), row.workload, row.rate)
    found = {"row": row.title, "workload": row.workload, "rate_hz": row.rate, "figure": row.value}
    found.update(cells={}, tools={}, times={})
    for tool in [OURS] + PEERS + [LIMIT]:
        side = main if tool in (OURS, LIMIT) else Side(figures, python_of(figures, tool), row.workload, row.rate)
        rows = side.rows(row.limit if tool == LIMIT else tool)
        text = row.cell(rows)
        found["cells"][tool] = text or why_absent(missing, tool, row.workload)
        if text:
            found["tools"][tool] = {"python": side.python, **numbers_of(rows, row.value)}
        if tool in PEERS and row.figure:
            found["times"][tool] = times_of(side, tool, row)
    found["goals"] = [judge(main) for judge in row.goals]
    return found


def numbers_of(rows, figure):
    """For the JSON. What was judged counts a million samples, and all rounds together, too."""
    numbers, more = table.values(rows, figure), {}
    if figure in JUDGED:
        numbers = [1e6 * row[figure] / row["judged"] for row in rows if row.get("judged")]
        more = {"pooled": table.a_million(rows, figure)}
    return {"median": statistics.median(numbers), "min": min(numbers), "max": max(numbers), **more}


def times_of(side, peer, row):
    """How many times better than a peer on the same Python: by the figure itself, and of rates by CPU second and good samples."""
    times = {"times": side.times(peer, row.figure, row.more)}
    if row.figure == "per_s":
        times["a_cpu_second"] = side.times(peer, "cpu_us", False)
        ours, theirs = side.good_per_s(OURS), side.good_per_s(peer)
        times["good"] = ours / theirs if ours and theirs else None
    return times


def rows(figures, missing):
    """Those that a run has anything on: one of a part of the bench is not full of rows that say so."""
    wanted = {(workload, rate) for _python, workload, rate, _tool in figures}
    found = [one_row(row, figures, missing) for row in ROWS if (row.workload, row.rate) in wanted]
    return [row for row in found if row["tools"] or row["goals"]]


def times_text(times):
    if not times or times["times"] is None:
        return ""
    text = table.times(times["times"])
    more = [name + table.times(times[key]) for key, name in (("a_cpu_second", "a CPU second "), ("good", "good ")) if times.get(key)]
    return text + (" (%s)" % ", ".join(more) if more else "")


def goals_text(goals):
    """Each goal with its figure and its verdict."""
    texts = []
    for one in goals:
        verdict = "not measured" if one["met"] is None else "%s, %s" % (one["text"], "met" if one["met"] else "**not met**")
        texts.append("%s: %s" % (one["goal"], verdict))
    return "; ".join(texts)


def markdown(found):
    if not found:
        return []
    peers = [tool for tool in PEERS if tool in ALWAYS or any(tool in row["tools"] for row in found)]
    pythons = {tool: row["tools"][tool]["python"] for row in found for tool in row["tools"]}

    def titled(tool):
        return "%s (%s)" % (tool, pythons[tool]) if tool in pythons and tool != LIMIT else tool

    head = ["", titled(OURS)] + [titled(peer) for peer in peers] + ["the machine's limit"]
    head += ["better than " + peer for peer in peers] + ["goals"]
    lines = []
    for row in found:
        cells = [row["row"]] + [row["cells"][tool] for tool in [OURS] + peers + [LIMIT]]
        lines.append(cells + [times_text(row["times"].get(peer)) for peer in peers] + [goals_text(row["goals"])])
    goals = [one for row in found for one in row["goals"]]
    met = sum(one["met"] is True for one in goals)
    unknown = sum(one["met"] is None for one in goals)
    told = "%d of %d goals met, %d not met, %d not measured." % (met, len(goals), len(goals) - met - unknown, unknown)
    return table.grid(head, lines) + ["", told + " " + EXACT]


def as_json(found):
    return [{key: value for key, value in row.items() if key != "cells"} for row in found]
