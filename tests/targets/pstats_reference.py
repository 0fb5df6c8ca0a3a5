# SPDX-License-Identifier: Apache-2.0
"""Profiles real work with cProfile and profile, and prints with pstats what `sampled report` is to print of the same files.

pstats_reference.py profile FOLDER: writes FOLDER/{work,more,plain}.prof.
pstats_reference.py print FOLDER: writes FOLDER/expected.json, a list of [arguments of sampled report, what pstats prints]."""
import ast
import copy
import io
import json
import os
import profile
import pstats
import sys

import cProfile

KEYS = "calls cumulative cumtime file filename module ncalls pcalls line name nfl stdname time tottime".split()
KEYS += "cal cumu cumt fi l mod na nf p s ti to".split()  # abbreviations
METHODS = {None: "print_stats", "--callers": "print_callers", "--callees": "print_callees"}

# The same functions at the same lines in two folders: strip_dirs() makes them one.
TWIN = """
def helper(n):
    return sorted(str(i) for i in range(n))

def work(n):
    return helper(n) if n < 3 else work(n - 1) + helper(n)
"""


def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)


def even(n):
    return n == 0 or odd(n - 1)


def odd(n):
    return n != 0 and even(n - 1)


def twins(folder):
    functions = []
    for name in ("one", "two"):
        path = os.path.join(folder, name, "twin.py")
        if not os.path.exists(path):
            os.mkdir(os.path.dirname(path))
            with open(path, "w") as file:
                file.write(TWIN)
        namespace = {}
        exec(compile(TWIN, path, "exec"), namespace)
        functions.append(namespace["work"])
    return functions


def work(folder, size):
    with open(ast.__file__.replace(".pyc", ".py")) as file:
        tree = ast.parse(file.read()[: 20000 * size].rpartition("\nclass ")[0])
    copy.deepcopy([ast.dump(node) for node in ast.walk(tree)][:200])
    json.loads(json.dumps({str(i): [i] * 3 for i in range(300 * size)}, indent=1))
    for function in twins(folder):
        function(12 * size)
        list(map(function, range(5)))
    return fib(10 + size), even(30)


def make(folder):
    for name, profiler, size in (("work", cProfile.Profile(), 3), ("more", cProfile.Profile(), 1), ("plain", profile.Profile(), 1)):
        profiler.runcall(work, folder, size)
        profiler.dump_stats(os.path.join(folder, name + ".prof"))


def cases():
    """(files, sort keys, reverse, strip, limits, option)."""
    for key in KEYS:
        yield ["work"], [key], False, False, [], None
        yield ["work"], [key], True, True, [], None
    for number in (-1, 0, 1, 2):
        yield ["more"], [number], False, False, [], None
    for keys in (["calls", "name"], ["pcalls", "cumulative", "line"], ["line", "file", "name"], ["nfl", "time"]):
        for reverse in (False, True):
            yield ["work"], keys, reverse, False, [], None
            yield ["work"], keys, reverse, True, [], "--callers"
    for limits in ([5], [0], [100000], [-3], [.1], [0.25, 3], [1.0], [0.0], [.00001], ["deepcopy"], ["twin", 2], ["{built"], [r":\d+\(w", .5],
                   ["(?:fib|even)"], ["no such function"], ["'", 1], ["[a-c]o+p"], [7, "y:", "a"]):
        for option in METHODS:
            yield ["work"], ["cumulative"], False, False, limits, option
    for name in ("work", "more", "plain"):
        for strip in (False, True):
            for option in METHODS:
                yield [name], ["stdname"], False, strip, [], option
    for option in METHODS:
        yield ["more", "work"], ["time", "calls"], True, False, [], option


def expected(folder, files, keys, reverse, strip, limits, option):
    paths = [os.path.join(folder, name + ".prof") for name in files]
    out = io.StringIO()
    stats = pstats.Stats(*paths, stream=out)
    if strip:
        stats.strip_dirs()
    stats.sort_stats(*keys)
    if reverse:
        stats.reverse_order()
    getattr(stats, METHODS[option])(*limits)
    arguments = [name + ".prof" for name in files] + ["--sort", ",".join(map(str, keys))]
    arguments += ["--reverse"] * reverse + ["--strip-dirs"] * strip + ([option] if option else [])
    for limit in limits:
        arguments += ["--limit", str(limit)]
    return arguments, out.getvalue()


if __name__ == "__main__":
    sys.setrecursionlimit(10000)
    if sys.argv[1] == "profile":
        make(sys.argv[2])
    else:
        with open(os.path.join(sys.argv[2], "expected.json"), "w") as file:
            json.dump([expected(sys.argv[2], *case) for case in cases()], file)
