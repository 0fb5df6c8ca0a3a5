# SPDX-License-Identifier: Apache-2.0
"""The suites, one function each: what they run, and what they need to be there."""
import glob
import multiprocessing.pool
import os
import re
import shutil
import subprocess

import debian
import tidy
from integration import integration, named
from results import JOBS, RESULTS, TOP, command, execute, make, missing, tap

SANITIZE = "address,undefined"
SAN_BUILD = "build/san-address-undefined"
SAN_ENV = {
    "ASAN_OPTIONS": "exitcode=99:abort_on_error=0:detect_leaks=1:allocator_may_return_null=1",
    "UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1",
}
LAYERS = ("base", "sampler", "sampler/pyabi", "aggregator", "exporters", "daemon")
# What one unit test asks whether metrics are well-formed; tests/setup-consumers puts it there.
PROMTOOL = os.path.join(os.environ.get("SAMPLED_CACHE", os.path.expanduser("~/.cache/sampled")), "consumers", "prometheus", "promtool")

# Of `make check`: an old and a new Python, and of each kind of file one that shows soon whether all is well.
FIRST = named(r"accounting|cli|config|consistency|coroutines|near|oracle|outputs|report|shelf|snapshots|special|stacks|status|subprocess|tables")
# Tests of what reads and writes files: they take minutes, and what they find the unit tests and fuzzers find under sanitizers, too.
OF_FORMATS = named(r"format_\w+|consistency|diff|report")
# Those that run the installed program under another systemd, and those of the kernel's clocks: nothing that a sanitized build could show.
OF_HOST = named(r"systemd|package|units|soak|parked|stops|cputime|bench|accounting|status|near|coroutines")


def sources(*suffixes):
    found = sum((glob.glob(os.path.join(TOP, folder, "*" + suffix)) for folder in LAYERS for suffix in suffixes), [])
    return sorted(os.path.relpath(path, TOP) for path in found)


def criterion(suite, build, env=None):
    if os.path.exists(PROMTOOL):
        env = dict(env or {}, PROMTOOL=PROMTOOL)
    # With several workers Criterion itself loses 48 bytes now and then, which LeakSanitizer reports.
    jobs = "-j1" if build == SAN_BUILD else JOBS
    report = os.path.join(TOP, build, "unit.tap")
    if os.path.exists(report):
        os.remove(report)
    tap(suite, [build + "/tests/unit", "--tap=" + report, "--quiet", "--timeout", "120", jobs], 900, env, report)


def build():
    make("build", "all")


def unit():
    if not glob.glob(os.path.join(TOP, "tests/unit/*.c")):
        RESULTS.fail("unit", "tests/unit is empty")
    elif not os.path.exists("/usr/include/criterion/criterion.h"):
        RESULTS.skip("unit", "Criterion is not installed")
    elif make("unit build", "unit"):
        criterion("unit", "build")


def ring():
    """A short run without sanitizer; tsan runs the long one."""
    if make("stress build", "stress"):
        for path in sorted(glob.glob(os.path.join(TOP, "build/tests/stress/*"))):
            command("stress: " + os.path.basename(path), [path, "1000000"], 120)


def checks():
    headers = subprocess.run(["make", "-k", JOBS, "check-headers"], cwd=TOP, capture_output=True, text=True)
    bad = set(re.findall(r"\[Makefile:\d+: build/header/(\S+)\.ok\]", headers.stderr))
    for path in sources(".h"):
        if path in bad:
            RESULTS.fail("header alone: " + path, headers.stderr)
        else:
            RESULTS.ok("header alone: " + path)
    if headers.returncode != 0 and not bad:
        RESULTS.fail("headers alone", headers.stdout + headers.stderr)
    command("layers", ["sh", "tests/checks/layers.sh"])
    command("licence lines", ["sh", "tests/checks/licence.sh"])
    command("documents", ["sh", "tests/checks/docs.sh"])
    command("what bootstrap installs", ["sh", "tests/checks/bootstrap.sh"])
    if not missing("systemd's units", "systemd-analyze"):
        command("systemd's units", ["sh", "tests/checks/units.sh"])
    if not missing("manual page", "mandoc"):
        command("manual pages", ["mandoc", "-Tlint", "-Wwarning", *glob.glob(os.path.join(TOP, "docs/*.[1-8]"))])


def first_integration():
    integration("integration", {"SAMPLED_TEST_PYTHONS": "quick"}, FIRST)


def all_integration():
    integration("integration")


def bounds():
    """Shares, losses and latenesses, which a busy machine changes: one file at a time, where nothing else is at work."""
    integration("bounds", folder="tests/bench/bounds", at_once=1)


def asan():
    if not os.path.exists("/usr/include/criterion/criterion.h"):
        RESULTS.skip("sanitized unit tests", "Criterion is not installed")
    elif make("sanitized build", "SANITIZE=" + SANITIZE, "all", "unit"):
        criterion("sanitized unit", SAN_BUILD, SAN_ENV)
    env = dict(SAN_ENV, SAMPLED=os.path.join(TOP, SAN_BUILD, "sampled"), SAMPLED_TEST_PYTHONS="quick", SAMPLED_SANITIZED="1")
    integration("sanitized integration", env, lambda path: not OF_FORMATS(path) and not OF_HOST(path))


def tsan():
    if make("TSan build", "SANITIZE=thread", "stress"):
        for path in sorted(glob.glob(os.path.join(TOP, "build/san-thread/tests/stress/*"))):
            command("TSan: " + os.path.basename(path), [path], 600, {"TSAN_OPTIONS": "halt_on_error=1:exitcode=66"})


def compilers():
    for compiler in ("gcc", "clang"):
        name = "%s without warnings" % compiler
        if not missing(name, compiler):
            make(name, "CC=" + compiler, "BUILD=build/werror-" + compiler, "CFLAGS=-O2 -g -Werror", "all", "stress")


def analysis():
    if missing("cppcheck", "cppcheck"):
        return
    argv = ["cppcheck", JOBS, "--std=c11", "--enable=warning,portability,performance", "--inline-suppr", "--error-exitcode=1",
            "--quiet", "--suppress=missingIncludeSystem", "--suppress=normalCheckLevelMaxBranches", "-D_GNU_SOURCE", "-D__x86_64__", "-I."]
    command("cppcheck", argv + sources(".c"), 1200)


def clang_tidy():
    """Its static analyzer takes a hundred times as long as all else: here it looks at what reads other processes, in the long run at everything."""
    if not missing("clang-tidy", "clang-tidy"):
        tidy.run(sources(".c"), lambda path: os.environ.get("TIDY") == "all" or path.startswith(("base/", "sampler/")))


def other_debians():
    debian.stable()
    debian.newest_compiler()


def aarch64():
    name, compiler = "aarch64", "aarch64-linux-gnu-gcc"
    if missing(name, compiler):
        return
    # Headers are the same on all machines: where only this machine's are installed, objects can still be compiled.
    libraries = glob.glob("/usr/lib/aarch64-linux-gnu/libedit.so")
    goal = "all" if libraries else "objects"
    # libcurl's are in a folder of this machine's, but are the same, too.
    flags = "CPPFLAGS=" + " ".join("-idirafter " + path for path in ["/usr/include", *sorted(glob.glob("/usr/include/*-linux-gnu"))])
    if make("aarch64 objects" if not libraries else "aarch64 program", "CC=" + compiler, "BUILD=build/aarch64", flags,
            "CFLAGS=-O2 -g -Werror", goal) and not libraries:
        RESULTS.skip("aarch64 link", "the libraries for arm64 are not installed")


def browser():
    tests = sorted(glob.glob(os.path.join(TOP, "tests/browser/*.test.*js")))
    if not tests:
        RESULTS.skip("browser", "tests/browser holds no tests")
        return
    if missing("browser", "node", "npm"):
        return
    if not any(map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))):
        RESULTS.skip("browser", "Chromium is not installed")
        return
    status, output, _seconds = execute(["npm", "ci", "--no-audit", "--no-fund", "--prefix", "tests/browser"], 300)
    if status != 0:
        RESULTS.fail("browser: npm ci", output)
        return
    tap("browser", ["node", "--test", "--test-reporter=tap", *tests], 600)


def fuzz():
    found = sorted(glob.glob(os.path.join(TOP, "tests/fuzz/fuzz_*.c")))
    if not found:
        RESULTS.fail("fuzz", "tests/fuzz holds no fuzzer")
        return
    if missing("fuzz", "clang") or not make("fuzzers build", "CC=clang", "BUILD=build/clang-fuzz", "fuzz"):
        return
    with multiprocessing.pool.ThreadPool(os.cpu_count() or 1) as pool:
        pool.map(fuzz_one, [os.path.basename(source)[:-2] for source in found])


def fuzz_one(name):
    """A short run, from the same seed each time, so that a failure says something of the change; FUZZ_SECONDS by hand, and from any seed."""
    program = "build/clang-fuzz/tests/fuzz/" + name
    if not os.path.exists(os.path.join(TOP, program)):
        return
    seconds = int(os.environ.get("FUZZ_SECONDS", "4"))
    corpus = os.path.join(TOP, "build/clang-fuzz/corpus", name)
    os.makedirs(corpus, exist_ok=True)
    seeds = os.path.join(TOP, "tests/fuzz/corpus", name)
    argv = [program, "-seed=1" if seconds < 60 else "-seed=0", "-max_total_time=%d" % seconds, "-timeout=30", "-rss_limit_mb=1024",
            "-artifact_prefix=build/clang-fuzz/", corpus]
    command("fuzz: " + name, argv + ([seeds] if os.path.isdir(seeds) else []), 120 + 2 * seconds)


def install():
    """make install under DESTDIR, then uninstall, leaves nothing behind."""
    root = os.path.join(TOP, "build/install-test")
    shutil.rmtree(root, ignore_errors=True)
    if make("install", "install", "DESTDIR=" + root, "PREFIX=/usr"):
        command("installed program runs", [root + "/usr/bin/sampled", "--version"])
        make("uninstall", "uninstall", "DESTDIR=" + root, "PREFIX=/usr")
        left = [name for _, _, names in os.walk(root) for name in names]
        if left:
            RESULTS.fail("uninstall leaves nothing", "left: " + ", ".join(left))
        else:
            RESULTS.ok("uninstall leaves nothing")


def package():
    """The Debian package is built, and lintian finds no fault with it; test_systemd.py installs it."""
    if missing("Debian package", "dh", "lintian"):
        return
    if make("Debian package", "deb"):
        for path in glob.glob(os.path.join(TOP, "build/sampled_*.deb")):
            command("lintian", ["lintian", "--allow-root", "--fail-on", "error,warning", path])


def oracles():
    make("oracles", "oracle", "ORACLE_ARGS=" + os.environ.get("ORACLE_ARGS", "--seconds 60 --together"), timeout=86400)


def soak():
    seconds, kills = os.environ.get("SOAK_SECONDS", "14400"), os.environ.get("SOAK_KILLS", "200")
    make("soak", "soak", "SOAK_SECONDS=" + seconds, "SOAK_KILLS=" + kills, timeout=int(seconds) * 3 + 7200)
