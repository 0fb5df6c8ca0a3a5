# SPDX-License-Identifier: Apache-2.0
"""The bench's figures as Markdown tables and as JSON. Figures are {(python, workload, rate, tool): [dict of numbers]}.

Ratios and shares of the limit stand there twice: by the clock on the wall, which on a machine with other work to do says as
much about that work, and by CPU seconds spent, which stays nearly the same."""
import os
import platform
import statistics

import tools

# The floor that the program has to keep, at 1 kHz or unthrottled on one busy thread of depth 10.
FLOOR = [
    (1000, "cores", 0.06, "1 kHz: cores"),
    (1000, "rss_bytes", 16 * 2**20, "1 kHz: peak RSS"),
    (1000, "slower_cpu", 0.01, "1 kHz: slowdown, a CPU second"),
    (tools.UNTHROTTLED, "per_s", 150_000, "unthrottled: samples/s"),
]


def machine(load_before, load_after, seconds):
    with open("/proc/cpuinfo") as file:
        models = {line.partition(":")[2].strip() for line in file if line.startswith("model name")}
    return {
        "cpus": os.cpu_count(),
        "model": ", ".join(sorted(models)) or platform.machine(),
        "kernel": platform.release(),
        "load_before": load_before,
        "load_after": load_after,
        "seconds": seconds,
    }


def values(rows, name):
    return [row[name] for row in rows if name in row]


def median(rows, name):
    found = values(rows, name)
    return statistics.median(found) if found else None


def spread(rows, name, show):
    """Median (min–max), or a dash."""
    found = values(rows, name)
    if not found:
        return "–"
    middle, low, high = (show(value) for value in (statistics.median(found), min(found), max(found)))
    return middle if low == high else "%s (%s–%s)" % (middle, low, high)


def count(value):
    return format(round(value), ",")


def percent(value):
    return "%.2f" % (100 * value)


def percent3(value):
    return "%.3f" % (100 * value)


def whole_percent(value):
    return "%.0f %%" % (100 * value)


def a_million(rows, figure):
    """Pooled over the rounds, so that one bad round is not lost in a median; None where nothing was judged."""
    judged = sum(values(rows, "judged"))
    return 1e6 * sum(values(rows, figure)) / judged if judged else None


def rare(value):
    return count(value) if value >= 100 or value == 0 else "%.1f" % value


def three(value):
    return "%.3f" % value


def micro(value):
    return "%.2f" % value


def mebibytes(value):
    return "%.1f" % (value / 2**20)


def times(value):
    return ("%.1f ×" if value >= 1 else "%.2f ×") % value


def ratio(ours, theirs):
    return times(ours / theirs) if ours and theirs else "–"


def rows_of(figures, unthrottled):
    """[(python, workload, rate, {tool: rows})] in the order they were measured."""
    found = {}
    for (python, workload, rate, tool), rows in figures.items():
        if (rate == tools.UNTHROTTLED) == unthrottled:
            found.setdefault((python, workload, rate), {})[tool] = rows
    return [key + (by_tool,) for key, by_tool in found.items()]


def grid(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return lines + ["| " + " | ".join(row) + " |" for row in rows]


def unthrottled_table(figures):
    head = ["Python", "workload", "tool", "snapshots/s", "good %", "CPU µs a snapshot", "peak RSS MiB"]
    head += ["sampled is", "good ones", "a CPU second", "of the limit %", "a CPU second"]
    rows = []
    for python, workload, _, by_tool in rows_of(figures, True):
        ours = median(by_tool.get("sampled", []), "per_s")
        our_good = ours and ours * (median(by_tool["sampled"], "good") or 0)
        our_cpu = median(by_tool.get("sampled", []), "cpu_us")
        limit = median(by_tool.get(tools.LIMIT, []), "per_s")
        limit_cpu = median(by_tool.get(tools.LIMIT, []), "cpu_us")
        for tool, found in by_tool.items():
            if not values(found, "per_s"):
                continue
            theirs = median(found, "per_s")
            good = median(found, "good") or 0
            peer = tool not in ("sampled", tools.LIMIT)
            rows.append([
                python, workload, tool, spread(found, "per_s", count), spread(found, "good", percent3),
                spread(found, "cpu_us", micro), spread(found, "rss_bytes", mebibytes),
                ratio(ours, theirs) if peer else "", ratio(our_good, theirs * good) if peer else "",
                ratio(median(found, "cpu_us"), our_cpu) if peer else "",
                "%.0f" % (100 * theirs / limit) if limit and tool != tools.LIMIT else "",
                "%.0f" % (100 * limit_cpu / median(found, "cpu_us")) if limit_cpu and tool != tools.LIMIT else "",
            ])
    return grid(head, rows) if rows else []


def rate_table(figures):
    head = ["Python", "workload", "Hz", "tool", "ticks reached %", "cores", "cores above the bare loop", "cores in the first second"]
    head += ["CPU µs a snapshot", "good %", "peak RSS MiB"]
    rows = []
    for python, workload, rate, by_tool in rows_of(figures, False):
        bare = median(by_tool.get(tools.LIMIT, []), "cores")
        for tool, found in by_tool.items():
            if not values(found, "cores"):
                continue
            cores = median(found, "cores")
            rows.append([
                python, workload, count(rate), tool, spread(found, "reached", percent),
                spread(found, "cores", three), three(cores - bare) if bare is not None and tool != tools.LIMIT else "",
                spread(found, "cores_first", three), spread(found, "cpu_us", micro), spread(found, "good", percent3), spread(found, "rss_bytes", mebibytes),
            ])
    return grid(head, rows) if rows else []


def slowdown_table(figures):
    head = ["Python", "workload", "rate", "tool", "pairs", "work lost a CPU second %", "work lost a wall second %"]
    rows, pythons = [], [key[0] for key in figures]
    for (python, workload, rate, tool), found in sorted(figures.items(), key=lambda item: (pythons.index(item[0][0]), item[0][2])):
        pairs = len(values(found, "slower_cpu"))
        if pairs:
            shown = "unthrottled" if rate == tools.UNTHROTTLED else count(rate)
            losses = [spread(found, "slower_cpu", percent), spread(found, "slower_wall", percent)]
            rows.append([python, workload, shown, tool, str(pairs)] + losses)
    return grid(head, rows) if rows else []


def oracle_table(figures):
    head = ["Python", "program", "tool", "samples judged", "impossible", "a million", "wrong caller line", "a million", "failed %"]
    rows = []
    for (python, workload, _rate, tool), found in figures.items():
        if values(found, "judged"):
            failed = [{"failed": 1 - value} for value in values(found, "good")]
            row = [python, workload, tool, count(sum(values(found, "judged")))]
            for name in ("impossible", "wrong_lines"):
                share = a_million(found, name)
                row += [count(sum(values(found, name))), "–" if share is None else rare(share)]
            rows.append(row + [spread(failed, "failed", percent3)])
    return grid(head, rows) if rows else []


def bias_table(figures):
    head = ["Python", "program", "Hz", "tool", "self: points off", "depth: points off", "beyond chance"]
    rows = []
    for (python, workload, rate, tool), found in figures.items():
        if values(found, "bias_self"):
            off = [spread(found, name, percent) for name in ("bias_self", "bias_depth", "bias_beyond")]
            rows.append([python, workload, count(rate), tool] + off)
    return grid(head, rows) if rows else []


def floor_lines(figures):
    lines = []
    for (python, workload, rate, tool), found in figures.items():
        for wanted_rate, name, bound, text in FLOOR:
            if (workload, tool, rate) != ("depth10", "sampled", wanted_rate) or not values(found, name):
                continue
            value = median(found, name)
            met = value > bound if name == "per_s" else value < bound
            show = {"per_s": count, "rss_bytes": mebibytes}.get(name, three)
            verdict = "met" if met else "**not met**"
            lines.append("- %s, Python %s: %s, floor %s: %s" % (text, python, show(value), show(bound), verdict))
    return lines


def said(what, where, why):
    return "- %s: %s" % (what + (" on " + where if where and where != what else ""), why)


def markdown(figures, missing, host, args, summary):
    lines = [
        "%d CPUs (%s), Linux %s; %d rounds of %g s, %d s in all. Load average before: %.1f, after: %.1f. Medians (min–max)."
        % (host["cpus"], host["model"], host["kernel"], args.rounds, args.seconds, host["seconds"], host["load_before"], host["load_after"]),
    ]
    parts = [
        ("Summary", summary),
        ("Right or wrong", oracle_table(figures)),
        ("Against the stopped truth", bias_table(figures)),
        ("Unthrottled", unthrottled_table(figures)),
        ("At a rate", rate_table(figures)),
        ("What the target loses", slowdown_table(figures)),
        ("The floor (depth10)", floor_lines(figures)),
        ("Not measured", [said(*item) for item in dict.fromkeys(missing)]),
    ]
    for title, part in parts:
        if part:
            lines += ["", "### " + title, ""] + part
    return "\n".join(lines)


def as_json(figures, missing, host, summary):
    keys = ("python", "workload", "rate_hz", "tool")
    return {
        "machine": host,
        "summary": summary,
        "runs": [dict(zip(keys, key), rounds=rows) for key, rows in figures.items()],
        "missing": [dict(zip(("what", "where", "why"), item)) for item in dict.fromkeys(missing)],
    }
