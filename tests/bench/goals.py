# SPDX-License-Identifier: Apache-2.0
"""Goals of the summary: each is a function Side -> {"goal": its text, "reached": a number, "text": it in words, "met"}; the last
three are None where it was not measured."""
import statistics

import table
from tools import LIMIT

OURS, TACHYON = "sampled", "Tachyon"


class Side:
    """The figures of one workload at one rate on one Python."""

    def __init__(self, figures, python, workload, rate):
        self.figures, self.python, self.workload, self.rate = figures, python, workload, rate

    def rows(self, tool, workload=None, rate=None):
        key = (self.python, workload or self.workload, self.rate if rate is None else rate, tool)
        return self.figures.get(key, [])

    def median(self, tool, figure, workload=None):
        return table.median(self.rows(tool, workload), figure)

    def times(self, peer, figure, more):
        """How many times better ours is; None without both."""
        ours, theirs = self.median(OURS, figure), self.median(peer, figure)
        if not ours or not theirs:
            return None
        return ours / theirs if more else theirs / ours

    def good_per_s(self, tool):
        found = [row["per_s"] * row["good"] for row in self.rows(tool) if "good" in row]
        return statistics.median(found) if found else None


def goal(text, value, show, met):
    if value is None:
        return {"goal": text, "reached": None, "text": None, "met": None}
    return {"goal": text, "reached": value, "text": show(value), "met": met(value)}


def percent_shown(value):
    return "%.1f %%" % (100 * value)


def times_tachyon(least):
    return lambda side: goal("≥ %g × Tachyon" % least, side.times(TACHYON, "per_s", True), table.times, lambda value: value >= least)


def good_times_tachyon(least):
    def judge(side):
        ours, theirs = side.good_per_s(OURS), side.good_per_s(TACHYON)
        value = ours / theirs if ours and theirs else None
        return goal("good samples ≥ %g ×" % least, value, table.times, lambda value: value >= least)

    return judge


def of_the_limit(least):
    def judge(side):
        ours, limit = side.median(OURS, "per_s"), side.median(LIMIT, "per_s")
        value = ours / limit if ours is not None and limit else None
        return goal("≥ %s of the limit" % table.whole_percent(least), value, percent_shown, lambda value: value >= least)

    return judge


def at_most(figure, most, show):
    return lambda side: goal("≤ " + show(most), side.median(OURS, figure), show, lambda value: value <= most)


def never_above(figure, most, show):
    """Of the worst round."""

    def judge(side):
        found = table.values(side.rows(OURS), figure)
        return goal("≤ " + show(most), max(found, default=None), show, lambda value: value <= most)

    return judge


def at_least(figure, least, show):
    return lambda side: goal("≥ " + show(least), side.median(OURS, figure), show, lambda value: value >= least)


def above_the_limit(figure, most, show):
    def judge(side):
        ours, limit = side.median(OURS, figure), side.median(LIMIT, figure)
        value = ours - limit if ours is not None and limit is not None else None
        return goal("≤ %s above the bare loop" % show(most), value, show, lambda value: value <= most)

    return judge


def ticks_below_the_limit(most):
    def judge(side):
        ours, limit = side.median(OURS, "reached"), side.median(LIMIT, "reached")
        value = limit - ours if ours is not None and limit is not None else None
        text = "ticks ≤ %.1f points fewer than the bare loop's" % (100 * most)
        return goal(text, value, lambda value: "%.2f" % (100 * value), lambda value: value <= most)

    return judge


def none_seen(figure):
    return lambda side: goal("none", table.a_million(side.rows(OURS), figure), table.rare, lambda value: value == 0)


def small_fraction_of(workload, most):
    def judge(side):
        ours, whole = side.median(OURS, "cpu_us"), side.median(OURS, "cpu_us", workload)
        value = ours / whole if ours and whole else None
        return goal("≤ %s of %s" % (table.whole_percent(most), workload), value, percent_shown, lambda value: value <= most)

    return judge
