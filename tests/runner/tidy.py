# SPDX-License-Identifier: Apache-2.0
"""clang-tidy, one file a test. What it found no fault with is not looked at again until the file, a header of it, or the checks change."""
import hashlib
import multiprocessing.pool
import os

from results import RESULTS, TOP, execute

FLAGS = ["-std=gnu17", "-D_GNU_SOURCE", "-I."]
KEPT = os.path.join(os.environ.get("SAMPLED_CACHE", os.path.expanduser("~/.cache/sampled")), "tidy")


def key(path, options):
    """All that the outcome depends on: the text after the preprocessor, the checks, the program."""
    found = hashlib.sha256()
    for argv in (["clang-tidy", "--version"], ["clang", "-E", *FLAGS, path]):
        status, text, _seconds = execute(argv, 120)
        if status != 0:
            return None
        found.update(text.encode())
    with open(os.path.join(TOP, ".clang-tidy"), "rb") as file:
        found.update(file.read())
    found.update(" ".join([path, *options]).encode())
    return found.hexdigest()


def look_at(path, options):
    name = "clang-tidy%s: %s" % (" without its analyzer" if options else "", path)
    found = key(path, options)
    if found and os.path.exists(os.path.join(KEPT, found)):
        RESULTS.ok(name)
        return
    status, output, seconds = execute(["clang-tidy", "--quiet", *options, path, "--", *FLAGS], 1200)
    if status != 0:
        RESULTS.fail(name, output, seconds)
        return
    RESULTS.ok(name, seconds)
    if found:
        os.makedirs(KEPT, exist_ok=True)
        with open(os.path.join(KEPT, found), "w"):
            pass


def run(paths, analyzed):
    """The analyzer looks at those that analyzed() says. The largest first: they take longest."""
    paths = sorted(paths, key=lambda path: -os.path.getsize(os.path.join(TOP, path)))
    with multiprocessing.pool.ThreadPool(os.cpu_count() or 1) as pool:
        pool.map(lambda path: look_at(path, [] if analyzed(path) else ["--checks=-clang-analyzer-*"]), paths, 1)
