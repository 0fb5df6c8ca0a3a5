# SPDX-License-Identifier: Apache-2.0
"""Subinterpreters, each with a thread of the main one in it, parked in a function of its own, or, with the argument "busy", mostly at work there. 3.8+, where
a module for them exists; READY says {"interpreters": [id, …], "threads": [tid, …]} or {"unavailable": why}."""
import sys
import threading
import time

import truth

CODE = """
import time
def inside_{0}():
    time.sleep(1000000)
def enter_{0}():
    inside_{0}()
enter_{0}()
"""


BUSY = """
import time
def inside_{0}():
    return sum(i * i for i in range(200000))
def enter_{0}():
    while True:
        inside_{0}()
        time.sleep(0.001)
enter_{0}()
"""


def module():
    for name in ("_interpreters", "_xxsubinterpreters"):
        try:
            return __import__(name)
        except ImportError:
            pass
    return None


def run(interpreters, interpreter, number, threads):
    threads[number] = threading.get_native_id()
    run_string = getattr(interpreters, "run_string", None) or interpreters.exec
    run_string(interpreter, (BUSY if "busy" in sys.argv else CODE).format(number))


def main():
    interpreters = module()
    if interpreters is None:
        truth.ready(unavailable="no module for subinterpreters in %s" % sys.version.split()[0])
        return
    made = [interpreters.create() for _ in range(2)]
    threads = [0, 0]
    for number, interpreter in enumerate(made):
        threading.Thread(target=run, args=(interpreters, interpreter, number, threads), name="sub %d" % number, daemon=True).start()
    time.sleep(1)
    truth.ready(interpreters=[int(interpreter) for interpreter in made], threads=threads)
    threading.Event().wait()


main()
