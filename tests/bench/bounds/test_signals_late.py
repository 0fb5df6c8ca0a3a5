# SPDX-License-Identifier: Apache-2.0
"""How much later signals come to a target that is stopped for its samples."""
import signal
import statistics
import unittest

import stopping
import support
import test_stops

LONG = support.LONG
LATE_NS = 1000000


class Signals(test_stops.Signals):
    """Judged on pairs of stretches without and with sampling, one after the other. Other work on the machine, and its host, make signals late by tens of
    milliseconds at times; what stops do is in every stretch. So a pair is quiet when signals come in time without sampling and the host took next to
    nothing in either, by the kernel's account; there are more pairs until enough are quiet, and of the 99th percentiles the least difference counts.
    Target, sender and sampled go before other work where that is permitted; where it is not, and the machine is busy, nothing can be said of lateness."""

    QUIET = 6 if LONG else 3  # pairs
    ROUNDS = 4 * QUIET
    STRETCH_S = 3 if LONG else 1
    QUIET_TICKS = 3 * STRETCH_S  # of the CPUs' time; with 40 the 99th percentile is late by 5 ms
    QUIET_NS = 5000000  # with a 99th percentile above this without sampling, others are what makes signals late

    def test_signals(self):
        self.each_mode(self.signals)

    def signals(self, mode):
        """1,000 queued signals a second, SIGUSR1 and a timer: none of those that queue is lost, and none comes later by a millisecond."""
        with stopping.target("signals", "@/taken") as target, stopping.preferred(target.pid) as options:
            numbers = (target.facts["realtime"], int(signal.SIGUSR1), int(signal.SIGALRM))
            rounds, quiet = [], []
            while len(rounds) < self.ROUNDS and len(quiet) < self.QUIET:
                rounds.append([self.stretch(target, mode if sampling else None, numbers, options) for sampling in (False, True)])
                stolen, late_ns = max(of["stolen"] for of in rounds[-1]), stopping.at(rounds[-1][0]["taken"][numbers[0]][1], 0.99)
                if stolen <= self.QUIET_TICKS and late_ns < self.QUIET_NS:
                    quiet.append(rounds[-1])
            self.assertEqual(stopping.harm(target.pid), "")
        queued = numbers[0]
        for of in sum(rounds, []):
            self.assertEqual(of["taken"][queued][0], of["sent"][queued], "queued signals")
        for number in numbers[1:]:
            counts = [sum(pair[sampling]["taken"][number][0] for pair in rounds) for sampling in (0, 1)]
            self.assertGreater(counts[1], 0.8 * counts[0], "signal %d, of which the kernel keeps one" % number)
        late = {share: [[stopping.at(of["taken"][queued][1], share) for of in pair] for pair in quiet] for share in (0.5, 0.9, 0.99)}
        if not quiet:
            self.skipTest("the machine is too busy to tell how late signals are: of %d pairs none is quiet" % len(rounds))
        for share in (0.5, 0.9):
            self.assertLess(statistics.median(sampled - before for before, sampled in late[share]), LATE_NS, late)
        self.assertLess(min(sampled - before for before, sampled in late[0.99]), LATE_NS, late)


if __name__ == "__main__":
    unittest.main()
