# SPDX-License-Identifier: Apache-2.0
"""A table of numbers that a target keeps up to date and a test reads while it runs: a memory-mapped file.

Row i holds COLUMNS unsigned 64-bit numbers; what they mean is the target's affair."""
import json
import mmap
import os
import platform
import sys
import threading

COLUMNS = 4


def native_id():
    if hasattr(threading, "get_native_id"):
        return threading.get_native_id()
    import ctypes

    number = {"x86_64": 186, "aarch64": 178}[platform.machine()]
    return ctypes.CDLL(None).syscall(number)


def table(path, rows):
    """Makes the file and returns its words as a memoryview."""
    with open(path, "wb") as file:
        file.truncate(rows * COLUMNS * 8)
    with open(path, "r+b") as file:
        return memoryview(mmap.mmap(file.fileno(), 0)).cast("Q")


def ready(**facts):
    """Tells the test that the target does from now on what it is there for."""
    sys.stdout.write("READY " + json.dumps(dict(facts, pid=os.getpid())) + "\n")
    sys.stdout.flush()
