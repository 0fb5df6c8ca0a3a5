# SPDX-License-Identifier: Apache-2.0
"""Makes target and sampler run at the same time. On a busy machine the target waits for a CPU much of the time, and while it waits it
stands still: then nothing is torn, and thousands of samples are of one instant. So both go before all others (nice -20), the target bound
to one CPU. Not real-time priority: the sampler keeps away from the CPU of what has that (sampler/near.h), so that it would do other
things than it does for its users. Needs the permission, and two CPUs."""
import contextlib
import fcntl
import os
import tempfile
import time

ON_S = 0.7
OFF_S = 0.3
FIRST, USUAL = -20, 0  # nice


def set_nice(pid, nice):
    for tid in os.listdir("/proc/%d/task" % pid):
        with contextlib.suppress(ProcessLookupError):  # a thread that ended meanwhile
            os.setpriority(os.PRIO_PROCESS, int(tid), nice)


def bind(pid, cpus):
    for tid in os.listdir("/proc/%d/task" % pid):
        with contextlib.suppress(ProcessLookupError):
            os.sched_setaffinity(int(tid), cpus)


def allowed():
    """Whether this process may go before others, and a second CPU is there to run on."""
    if len(os.sched_getaffinity(0)) < 2:
        return False
    try:
        os.setpriority(os.PRIO_PROCESS, 0, FIRST)
        os.setpriority(os.PRIO_PROCESS, 0, USUAL)
        go_first()
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
    except PermissionError:
        return False
    return True


def go_first():
    """For who stops the target: it is let in whenever it wakes."""
    os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))


@contextlib.contextmanager
def window(target, watcher=None):
    """Both run undisturbed while in it. Two windows at a time would disturb each other, so one waits: to be left within ON_S."""
    lock = open(os.path.join(tempfile.gettempdir(), "sampled-oracle.lock"), "w")
    fcntl.flock(lock, fcntl.LOCK_EX)
    before = os.sched_getaffinity(target)
    try:
        bind(target, {min(before)})
        for pid in filter(None, (target, watcher)):
            set_nice(pid, FIRST)
        yield
    finally:
        for pid in filter(None, (target, watcher)):
            with contextlib.suppress(OSError):
                set_nice(pid, USUAL)
        with contextlib.suppress(OSError):
            bind(target, before)
        lock.close()


def watch(target, process):
    """Windows until the process (a Popen) ends."""
    while process.poll() is None:
        with contextlib.suppress(FileNotFoundError), window(target, process.pid):
            time.sleep(ON_S)
        time.sleep(OFF_S)
