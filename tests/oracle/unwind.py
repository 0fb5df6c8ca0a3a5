# SPDX-License-Identifier: Apache-2.0
"""Exceptions that unwind 50 frames: their tracebacks keep the frames alive after they left the stack."""
import sys

DEPTH = 50
GRAMMAR = {
    "": ["main"],
    "main": ("<module>", {"loop": ["loop"]}),
    "loop": ("loop", {"attempt": ["attempt"], "other": ["other"]}),
    "attempt": ("attempt", {"dive": ["dive0"], "handle": ["handle"]}),
    "dive0": ("dive", {"even": ["dive1"], "fail": ["fail"]}, {"most": 51}),
    "dive1": ("dive", {"odd": ["dive0"], "cleanup": ["cleanup"]}),
    "fail": ("fail", {}),
    "cleanup": ("cleanup", {}),
    "handle": ("handle", {}),
    "other": ("other", {"other_in": ["other_in"]}),
    "other_in": ("other_in", {}),
}


class Failure(Exception):
    pass


def fail():
    raise Failure


def cleanup():
    return 1


def handle(error):
    return error.__traceback__


def dive(level):
    if level == DEPTH:
        fail()  #@ fail
    if level % 2:
        try:
            dive(level + 1)  #@ odd
        finally:
            cleanup()  #@ cleanup
    else:
        dive(level + 1)  #@ even


def attempt():
    try:
        dive(0)  #@ dive
    except Failure as error:
        handle(error)  #@ handle


def other_in():
    return 1


def other():
    return other_in()  #@ other_in


def loop():
    while True:
        attempt()  #@ attempt
        other()  #@ other


sys.stdout.write("READY\n")
sys.stdout.flush()
loop()  #@ loop
