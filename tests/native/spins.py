# SPDX-License-Identifier: Apache-2.0
"""A thread that computes in C without the GIL, and the main thread, which computes in Python and C with it: spins.py VARIANT."""
import importlib
import os
import sys
import threading

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
chain = importlib.import_module("chain_" + (sys.argv[1] if len(sys.argv) > 1 else "nofp"))

STACKS = {
    "": ["module", "threading"],
    "module": ("python", "<module>", {"loop": ["loop"]}),
    "loop": ("python", "loop", {"c_deep": ["chain_deep"], "plain": ["plain"]}),
    "plain": ("python", "plain", {}),
    "chain_deep": ("glue", "chain_deep", ["deep_outer"]),
    "deep_outer": ("native", "deep_outer", ["deep_middle"]),
    "deep_middle": ("native", "deep_middle", ["deep_inner"]),
    "deep_inner": ("native", "deep_inner", ["libm"]),
    "libm": ("library", r"libm[.-]", []),
    "threading": ("modules", r"/threading\.py$", ["spin"]),
    "spin": ("python", "spin", {"c_spin": ["chain_spin"]}),
    "chain_spin": ("glue", "chain_spin", ["spin_outer"]),
    "spin_outer": ("native", "spin_outer", ["spin_middle", "now"]),
    "now": ("native", "now_s", ["libc"]),
    "libc": ("library", r"libc[.-]|\[vdso\]", ["libc"]),
    "spin_middle": ("native", "spin_middle", ["spin_inner"]),
    "spin_inner": ("native", "spin_inner", []),
}


def plain(times):
    total = 0
    for number in range(times):
        total += number % 7
    return total


def spin():
    while True:
        chain.spin(1.0)  #@ c_spin


def loop():
    while True:
        chain.deep(20000)  #@ c_deep
        plain(20000)  #@ plain


if __name__ == "__main__":
    threading.Thread(target=spin, name="spin", daemon=True).start()
    print("READY {}", flush=True)
    loop()  #@ loop
