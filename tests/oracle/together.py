# SPDX-License-Identifier: Apache-2.0
"""Makes target and sampler run at the same time. On a busy machine the target waits for a CPU much of the time, and while it waits it
stands still: then nothing is torn, and thousands of samples are of one instant. So both get real-time priority, in windows short
enough that the kernel does not throttle them and that the machine stays usable. Needs the permission, and two CPUs."""
import contextlib
import os
import time

ON_S = 0.7
OFF_S = 0.3
TARGET, WATCHER = 1, 2  # priorities: whoever watches goes first where they meet


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
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(TARGET))
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
    except PermissionError:
        return False
    return True


@contextlib.contextmanager
def window(target, watcher=None):
    """Both run undisturbed while in it; to be left within ON_S. The driver itself goes before both, so that it can end it."""
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(WATCHER + 1))
    try:
        set_policy(target, os.SCHED_FIFO, TARGET)
        if watcher:
            set_policy(watcher, os.SCHED_FIFO, WATCHER)
        yield
    finally:
        for pid in filter(None, (target, watcher)):
            with contextlib.suppress(OSError):
                set_policy(pid, os.SCHED_OTHER, 0)
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))


def watch(target, process):
    """Windows until the process (a Popen) ends."""
    while process.poll() is None:
        with contextlib.suppress(FileNotFoundError), window(target, process.pid):
            time.sleep(ON_S)
        time.sleep(OFF_S)
