# SPDX-License-Identifier: Apache-2.0
"""Generators that work when they are closed, which a caller does without calling anything: closing.py. Runs on 3.6 to 3.15."""
import truth


def work():
    total = 0
    for i in range(3000):
        total += i
    return total


def cleans():
    try:
        yield 1
    finally:
        work()


def counts():
    while True:
        yield 1


def deletes():
    generator = cleans()
    next(generator)
    del generator


def run():
    for _ in counts():  # which lies on the value stack meanwhile
        deletes()
        generator = cleans()
        next(generator)
        generator = None


truth.ready()
run()
