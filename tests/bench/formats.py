#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What recordings cost: a recording of ten million samples converted to each format, and the bytes a sample beside those of Tachyon's and
Austin's own binary formats. formats.py [--samples N] [--seconds N] [--only convert|bytes]; run by `make bench-formats`.

Environment: SAMPLED and MAKE_RECORDING, the programs; SAMPLED_CACHE."""
import argparse
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "integration")]
import measure  # noqa: E402
import support  # noqa: E402

MAKE_RECORDING = os.environ.get("MAKE_RECORDING", os.path.join(support.TOP, "build/tests/tools/make_recording"))
AUSTIN = os.path.join(support.CACHE, "peers", "austin", "austin")
GOAL_S, GOAL_BYTES = 5, 300 << 20
RATE_HZ = 1000
PROGRAMS = ("real", "depth8", "threads16")
NAMESPACE = "SAMPLED_BENCH_NAMESPACE"
ANSI = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")


def enter_namespace():
    """A mount namespace of its own, where that is permitted: what is mounted in roots for the targets ends with it."""
    unshare = ["unshare", "-m", "--propagation", "private"]
    if NAMESPACE not in os.environ and shutil.which("unshare"):
        if subprocess.run(unshare + ["true"], stderr=subprocess.DEVNULL).returncode == 0:
            os.environ[NAMESPACE] = "1"
            os.execvp("unshare", unshare + [sys.executable] + sys.argv)


def writable():
    text = support.sampled("convert", "--help").stdout.decode()
    return re.search(r"Writable: (.*)\.$", text, re.M).group(1).split()


def convert(recording, name, folder):
    """(seconds, CPU seconds, peak bytes, bytes written) of one conversion; an error's text."""
    output = os.path.join(folder, "out." + name)
    report = tempfile.TemporaryFile()
    start = time.monotonic()
    child = subprocess.Popen([support.SAMPLED, "convert", recording, "-f", name, "-o", output], stdout=subprocess.DEVNULL, stderr=report)
    _, status, used = os.wait4(child.pid, 0)
    child.returncode = status
    seconds = time.monotonic() - start
    report.seek(0)
    if status:
        return report.read().decode().strip()
    written = 0
    for root, _, files in os.walk(output):
        written += sum(os.path.getsize(os.path.join(root, file)) for file in files)
    written = written or os.path.getsize(output)
    shutil.rmtree(output) if os.path.isdir(output) else os.unlink(output)
    return seconds, used.ru_utime + used.ru_stime, used.ru_maxrss * 1024, written


def show_conversions(samples, folder):
    recording = os.path.join(folder, "synthetic.sampled")
    made = subprocess.run([MAKE_RECORDING, recording, str(samples)], stdout=subprocess.PIPE, check=True).stdout.decode().strip()
    print("Converting a recording of %s (goal: each below %d s and %d MiB):\n" % (made, GOAL_S, GOAL_BYTES >> 20))
    print("| format | seconds | CPU s | peak MiB | output MiB | goal |\n|---|---|---|---|---|---|")
    for name in writable():
        result = convert(recording, name, folder)
        if isinstance(result, str):
            print("| %s | %s |||||" % (name, result))
            continue
        seconds, cpu, peak, written = result
        met = seconds < GOAL_S and peak < GOAL_BYTES
        cells = name, seconds, cpu, peak / 2**20, written / 2**20, "met" if met else "MISSED"
        print("| %s | %.2f | %.2f | %.0f | %.1f | %s |" % cells, flush=True)
    os.unlink(recording)


def with_sampled(_place, python, target, output, seconds):
    done = support.sampled("attach", target.pid, "-r", RATE_HZ, "-d", seconds, "--record", output)
    return int(re.search(r"sampled: ([\d,]+) samples of", done.stderr.decode()).group(1).replace(",", "")) / target.threads


def with_tachyon(compression):
    def run(_place, python, target, output, seconds):
        module = ["-m", "profiling.sampling", "attach", "-a", "-r", str(RATE_HZ), "-d", "%d" % seconds, "--binary"]
        command = python.argv + module + ["--compression", compression, "-o", python.seen_from_inside(output), str(target.pid)]
        text = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=120).stdout.decode()
        taken = int(re.search(r"Captured ([\d,]+) samples? in", text).group(1).replace(",", ""))
        failed = re.search(r"Error rate: ([\d.]+)", ANSI.sub("", text))
        return taken * (1 - float(failed.group(1)) / 100 if failed else 1)

    return run


def with_austin(_place, _python, target, output, seconds):
    command = [AUSTIN, "-b", "-i", "%dus" % (1e6 / RATE_HZ), "-x", "%d" % seconds, "-o", output, "-p", str(target.pid)]
    text = ANSI.sub("", subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=120).stdout.decode())
    failed, samples = re.search(r"Error rate : (\d+)/(\d+)", text).groups()
    return (int(samples) - int(failed)) / target.threads


def show_bytes(seconds):
    newest = next((python for python in support.all_pythons() if python.version[:2] == (3, 15) and NAMESPACE in os.environ), None)
    common = next((python for python in reversed(support.all_pythons()) if python.version < (3, 14) and not python.root), None)
    pairs = [(newest, "sampled", with_sampled), (newest, "Tachyon, zstd", with_tachyon("zstd")), (newest, "Tachyon, none", with_tachyon("none"))]
    pairs += [(common, "sampled", with_sampled)] + ([(common, "Austin MOJO", with_austin)] if os.access(AUSTIN, os.X_OK) else [])
    print("\nBytes a snapshot (all threads at one tick, taken whole) of %d s at %d Hz:\n" % (seconds, RATE_HZ))
    print("| program | Python | tool | snapshots | bytes | bytes a snapshot |\n|---|---|---|---|---|---|")
    if not newest:
        print("| no Python 3.15 (tests/setup-roots forky): Tachyon was not measured ||||||")
    if not os.access(AUSTIN, os.X_OK):
        print("| no Austin (tests/bench/setup-peers austin): it was not measured ||||||")
    place = measure.Workplace([python for python in {newest, common} if python])
    try:
        for program in PROGRAMS:
            for python, name, run in [pair for pair in pairs if pair[0]]:
                show_bytes_of(place, python, program, name, run, seconds)
    finally:
        place.close()


def show_bytes_of(place, python, program, name, run, seconds):
    output = place.path("recording")
    target = measure.Target(place, python, program)
    try:
        snapshots = run(place, python, target, output, seconds)
        size = os.path.getsize(output)
        cells = program, python.text, name, snapshots, size, size / max(snapshots, 1)
        print("| %s | %s | %s | %.0f | %d | %.2f |" % cells, flush=True)
    except (OSError, AttributeError, subprocess.SubprocessError) as error:
        print("| %s | %s | %s | failed: %s |||" % (program, python.text, name, error), flush=True)
    finally:
        target.stop()
        if os.path.exists(output):
            os.unlink(output)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--samples", type=int, default=10_000_000)
    parser.add_argument("--seconds", type=int, default=10)
    parser.add_argument("--only", choices=("convert", "bytes"))
    options = parser.parse_args()
    enter_namespace()
    if options.only != "bytes":
        with tempfile.TemporaryDirectory(prefix="sampled-bench-") as folder:
            show_conversions(options.samples, folder)
    if options.only != "convert":
        show_bytes(options.seconds)


if __name__ == "__main__":
    main()
