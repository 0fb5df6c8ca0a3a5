# SPDX-License-Identifier: Apache-2.0
"""Threads that are born and die, while two others go on."""
import sys
import threading

GRAMMAR = {
    "": ["main", "steady", "short_a", "short_b"],
    "main": ("<module>", {"spawn": ["spawn"]}),
    "spawn": ("spawn", {}),
    "steady": ("steady", {"steady_call": ["steady_work"]}, {"via": "library"}),
    "steady_work": ("steady_work", {}),
    "short_a": ("short_a", {"a_call": ["a_work"]}, {"via": "library"}),
    "a_work": ("a_work", {}),
    "short_b": ("short_b", {"b_call": ["b_work"]}, {"via": "library"}),
    "b_work": ("b_work", {"b_deep": ["b_leaf"]}),
    "b_leaf": ("b_leaf", {}),
}


def steady_work():
    return 1


def steady():
    while True:
        steady_work()  #@ steady_call


def a_work():
    return 1


def short_a():
    for _ in range(2000):
        a_work()  #@ a_call


def b_leaf():
    return 1


def b_work():
    return b_leaf()  #@ b_deep


def short_b():
    for _ in range(1000):
        b_work()  #@ b_call


def spawn():
    while True:
        pair = [threading.Thread(target=short_a), threading.Thread(target=short_b)]
        for thread in pair:
            thread.start()
        for thread in pair:
            thread.join()


sys.setswitchinterval(0.0005)
for _ in range(2):
    threading.Thread(target=steady, daemon=True).start()
sys.stdout.write("READY\n")
sys.stdout.flush()
spawn()  #@ spawn
