# SPDX-License-Identifier: Apache-2.0
"""Programs' own accounts of what they did, which tests read while they run: the tables of tests/targets/truth.py."""
import bisect
import struct

COLUMNS = 4  # of tests/targets/truth.py
ROWS = 20000  # of tests/targets/cputime.py, a thread


class Table:
    """The target's own account; read before and after, the difference is the window's."""

    def __init__(self, path):
        self.path = path

    def read(self):
        with open(self.path, "rb") as file:
            data = file.read()
        words = struct.unpack("=%dQ" % (len(data) // 8), data)
        return [words[row : row + COLUMNS] for row in range(0, len(words), COLUMNS)]


def difference(before, after):
    return [[b - a for a, b in zip(x, y)] for x, y in zip(before, after)]


class Log:
    """A thread's own account, between any two moments."""

    def __init__(self, path, thread):
        with open(path, "rb") as file:
            file.seek(thread * ROWS * COLUMNS * 8)
            count = struct.unpack("=4Q", file.read(COLUMNS * 8))[0]
            words = struct.unpack("=%dQ" % (count * COLUMNS), file.read(count * COLUMNS * 8))
        self.rows = [words[at : at + COLUMNS] for at in range(0, len(words), COLUMNS)]
        self.times = [row[0] for row in self.rows]

    def at(self, now):
        """[CPU time, of the first function, of the second] then, between the rows before and behind."""
        behind = min(max(bisect.bisect(self.times, now), 1), len(self.rows) - 1)
        before = behind - 1
        part = (now - self.times[before]) / max(1, self.times[behind] - self.times[before])
        return [a + (b - a) * min(max(part, 0), 1) for a, b in zip(self.rows[before][1:], self.rows[behind][1:])]

    def between(self, start, end):
        return [b - a for a, b in zip(self.at(start), self.at(end))]
