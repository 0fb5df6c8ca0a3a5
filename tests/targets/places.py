# SPDX-License-Identifier: Apache-2.0
"""Calls functions of a list from one place: the first one for long, which calls others that are all met for the first time; then the rest in turns."""
import itertools
import time

import truth


def spin(seconds):
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        pass


SOURCE = "def part_%d():\n    spin(0.01)\n"
for number in range(60):
    exec(SOURCE % number)


def first():
    for name in range(60):
        globals()["part_%d" % name]()


def second():
    spin(0.002)


def third():
    spin(0.002)


def fourth():
    spin(0.002)


truth.ready()
time.sleep(0.5)  # until a profiler is there
for way in itertools.chain([first, first], itertools.cycle([second, third, fourth])):
    way()
