# SPDX-License-Identifier: Apache-2.0
"""What leaves a core: threads with names, deep recursion, generators, a subinterpreter where there is one, all of them standing
still soon after READY, which says {"subinterpreter": bool}.

corpse.py             waits to be killed; its core is written to its own folder
corpse.py main        the subinterpreter runs in the main thread
corpse.py crash       a thread reads address 0 while it holds the GIL"""
import ctypes
import os
import resource
import sys
import threading
import time

import truth

GATE = threading.Lock()
CODE = """
import time
def inside():
    time.sleep(1000000)
inside()
"""


def wait():
    GATE.acquire()


def recursion(n):
    if n == 0:
        wait()
        return 0
    return 1 + recursion(n - 1)


def nested(n):
    yield n
    if n:
        yield from nested(n - 1)
    else:
        wait()


def generators():
    return sum(nested(5))


def expression():
    return sum(wait() or x for x in range(3))


def sleeping():
    time.sleep(1000000)


def crash():
    time.sleep(1)
    ctypes.string_at(0)


def interpreter():
    for name in ("_interpreters", "_xxsubinterpreters"):
        try:
            module = __import__(name)
        except ImportError:
            continue
        made = module.create()
        run = getattr(module, "run_string", None) or module.exec
        if "main" in sys.argv:
            return lambda: run(made, CODE)
        threading.Thread(target=run, args=(made, CODE), name="sub", daemon=True).start()
        return threading.Event().wait
    return None


def main():
    os.chdir(os.path.dirname(os.path.abspath(__file__)))
    resource.setrlimit(resource.RLIMIT_CORE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    sys.setrecursionlimit(2000)
    threading.stack_size(8 << 20)
    GATE.acquire()
    work = [("deep", recursion, (700,)), ("gen \u00e9", generators, ()), ("expression", expression, ()), ("asleep", sleeping, ())]
    if "crash" in sys.argv:
        work.append(("crasher", crash, ()))
    for name, function, args in work:
        threading.Thread(target=function, args=args, name=name, daemon=True).start()
    rest = None if "crash" in sys.argv else interpreter()
    truth.ready(subinterpreter=rest is not None)
    (rest or threading.Event().wait)()


main()
