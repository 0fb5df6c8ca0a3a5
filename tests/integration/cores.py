# SPDX-License-Identifier: Apache-2.0
"""Cores of test programs, by gcore and by the kernel."""
import glob
import os
import re
import shutil
import subprocess
import unittest

import support


def kernel_writes_here():
    with open("/proc/sys/kernel/core_pattern") as file:
        return re.match(r"[^|/]", file.read()) is not None


needs_gcore = unittest.skipUnless(shutil.which("gcore"), "no gcore on this machine (package gdb)")
needs_kernel_core = unittest.skipUnless(
    kernel_writes_here(), "kernel.core_pattern leads the kernel's cores elsewhere; this test does not change it"
)


def gcore(target, filter_bits=None):
    if filter_bits:
        with open("/proc/%d/coredump_filter" % target.pid, "w") as file:
            file.write(filter_bits)
    done = subprocess.run(
        ["gcore", "-o", target.path("gcore"), str(target.pid)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL
    )
    path = target.path("gcore.%d" % target.pid)
    assert done.returncode == 0 and os.path.exists(path), done.stdout.decode()
    # From 2.42 on glibc guards a thread's stack by madvise(2), in the mapping itself. A gdb that does not know stops there, and leaves
    # the whole stack as zeros.
    target.holes = re.search(rb"Memory read failed for corefile section, \d+ bytes at 0x[0-7]", done.stdout) is not None
    return path


def kernel_core(target):
    """The core in the folder of a process that dies now."""
    target.process.wait(timeout=support.PATIENCE_S)
    found = glob.glob(target.path("core*"))
    found = [path for path in found if not path.endswith(".py")]
    assert len(found) == 1, found
    return found[0]
