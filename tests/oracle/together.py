# SPDX-License-Identifier: Apache-2.0
"""Makes target and sampler run at the same time. On a busy machine the target waits for a CPU much of the time, and while it waits it
stands still: then nothing is torn, and thousands of samples are of one instant. So both get real-time priority, in windows short
enough that the kernel does not throttle them and that the machine stays usable. Needs the permission, and two CPUs."""
import contextlib
import fcntl
import os
import tempfile
import time

ON_S = 0.7
OFF_S = 0.3
TARGET, WATCHER, DRIVER = 1, 2, 3  # priorities: the sampler's other threads, which seldom run, find the target's CPU


def set_policy(pid, policy, priority):
    for tid in os.listdir("/proc/%d/task" % pid):
        try:
            os.sched_setscheduler(int(tid), policy, os.sched_param(priority))
        except ProcessLookupError:
            pass  # a thread that ended meanwhile


def allowed():
    """Whether this process may have real-time priority, and a second CPU is there to run on."""
    if len(os.sched_getaffinity(0)) < 2:
        return False
    try:
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(TARGET))
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
    except PermissionError:
        return False
    return True


@contextlib.contextmanager
def window(target, watcher=None):
    """Both run undisturbed while in it; to be left within ON_S. The driver itself goes before both, so that it can end it. Two
    windows at a time would disturb each other, so one waits."""
    lock = open(os.path.join(tempfile.gettempdir(), "sampled-oracle.lock"), "w")
    fcntl.flock(lock, fcntl.LOCK_EX)
    os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(DRIVER))
    try:
        set_policy(target, os.SCHED_RR, TARGET)
        if watcher:
            set_policy(watcher, os.SCHED_RR, WATCHER)
        yield
    finally:
        for pid in filter(None, (target, watcher)):
            with contextlib.suppress(OSError):
                set_policy(pid, os.SCHED_OTHER, 0)
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
        lock.close()


def watch(target, process):
    """Windows until the process (a Popen) ends."""
    while process.poll() is None:
        with contextlib.suppress(FileNotFoundError), window(target, process.pid):
            time.sleep(ON_S)
        time.sleep(OFF_S)
