# SPDX-License-Identifier: Apache-2.0
"""Subinterpreters, each with a thread parked in a function of its own. 3.8+, where a module for them exists; READY says
{"interpreters": [id, …]} or {"unavailable": why}."""
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


def module():
    for name in ("_interpreters", "_xxsubinterpreters"):
        try:
            return __import__(name)
        except ImportError:
            pass
    return None


def run(interpreters, interpreter, number):
    run_string = getattr(interpreters, "run_string", None) or interpreters.exec
    run_string(interpreter, CODE.format(number))


def main():
    interpreters = module()
    if interpreters is None:
        truth.ready(unavailable="no module for subinterpreters in %s" % sys.version.split()[0])
        return
    made = [interpreters.create() for _ in range(2)]
    for number, interpreter in enumerate(made):
        threading.Thread(target=run, args=(interpreters, interpreter, number), name="sub %d" % number, daemon=True).start()
    time.sleep(1)
    truth.ready(interpreters=[int(interpreter) for interpreter in made])
    threading.Event().wait()


main()
