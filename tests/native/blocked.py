# SPDX-License-Identifier: Apache-2.0
"""Threads that wait in system calls, three C functions deep or in Python's own, and never run: blocked.py VARIANT."""
import importlib
import json
import os
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
chain = importlib.import_module("chain_" + (sys.argv[1] if len(sys.argv) > 1 else "nofp"))

STACKS = {
    "": ["module", "threading"],
    "module": ("python", "<module>", {"wait": ["threading"]}),
    "threading": ("modules", r"/threading\.py$", ["nap", "read", "sleep"]),
    "nap": ("python", "nap", {"c_nap": ["chain_nap"]}),
    "chain_nap": ("glue", "chain_nap", ["nap_outer"]),
    "nap_outer": ("native", "nap_outer", ["nap_middle"]),
    "nap_middle": ("native", "nap_middle", ["nap_inner"]),
    "nap_inner": ("native", "nap_inner", ["libc"]),
    "libc": ("library", r"libc[.-]|libpthread[.-]", []),
    "read": ("python", "read", {"c_read": ["chain_read"]}),
    "chain_read": ("glue", "chain_read", ["read_outer"]),
    "read_outer": ("native", "read_outer", ["read_middle"]),
    "read_middle": ("native", "read_middle", ["read_inner"]),
    "read_inner": ("native", "read_inner", ["libc"]),
    "sleep": ("python", "sleep", {"c_sleep": ["time"]}),
    "time": ("library", r"time\.", []),
}


def nap():
    chain.nap(100000.0)  #@ c_nap


def read():
    chain.read(os.pipe()[0])  #@ c_read


def sleep():
    time.sleep(100000)  #@ c_sleep


if __name__ == "__main__":
    threads = {}
    for function in (nap, read, sleep):
        thread = threading.Thread(target=function, name=function.__name__, daemon=True)
        thread.start()
    time.sleep(0.3)
    print("READY " + json.dumps({}), flush=True)
    threading.Event().wait()  #@ wait
