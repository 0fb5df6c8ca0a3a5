# SPDX-License-Identifier: Apache-2.0
"""Profiles and dumps the calling process with the `sampled` program, which this package puts beside the interpreter's scripts.

    import sampled

    with sampled.profile("out.html"):
        work()

    print(sampled.dump())

The program runs as a child and reads this process from outside: no hook, no tracing function, no pause. Linux only.
"""
import contextlib
import os
import shutil
import signal
import subprocess
import sysconfig
import tempfile
import time

__all__ = ["Error", "profile", "dump", "program"]

_PR_SET_PTRACER = 0x59616D61  # linux/prctl.h: with Yama, the one process that may read us besides our ancestors


class Error(RuntimeError):
    """sampled could not do it; the text is its own line."""


def program():
    """The path of the program: $SAMPLED, or where this package was installed, or what PATH has."""
    here = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    schemes = [scheme for scheme in ("posix_user", "posix_local") if scheme in sysconfig.get_scheme_names()]
    places = [os.environ.get("SAMPLED"), os.path.join(sysconfig.get_path("scripts"), "sampled")]
    places += [os.path.join(sysconfig.get_path("scripts", scheme), "sampled") for scheme in schemes]
    places += [os.path.join(here, "bin", "sampled"), shutil.which("sampled")]
    for path in places:
        if path and os.access(path, os.X_OK):
            return path
    raise Error("the program `sampled` is not where this package should have put it (set SAMPLED to its path)")


def _permit(pid):
    """Lets that process read this one, where Yama asks for it; 0: none any more. Without ctypes it is left to ptrace_scope."""
    try:
        import ctypes

        ctypes.CDLL(None).prctl(_PR_SET_PTRACER, ctypes.c_ulong(pid), 0, 0, 0)
    except (ImportError, OSError, AttributeError):
        pass


def _start(arguments, **streams):
    """Starts the program. It waits for a line until it has been permitted to read us."""
    argv = ["/bin/sh", "-c", 'read _ && exec "$0" "$@" </dev/null', program(), *arguments]
    # A session of its own: Ctrl-C is for the program that is profiled, which then ends its `with`.
    process = subprocess.Popen(argv, stdin=subprocess.PIPE, universal_newlines=True, start_new_session=True, **streams)
    _permit(process.pid)
    process.stdin.write("\n")
    process.stdin.close()
    process.stdin = None
    return process


def _reason(text):
    lines = [line for line in text.splitlines() if line.startswith("sampled: ")] or text.splitlines() or ["sampled failed"]
    return lines[-1]


class profile(contextlib.ContextDecorator):
    """Profiles this process while the block, or the function that it decorates, runs, and writes `output`.

    output:  the file; its suffix chooses the format (.html, .svg, .pb.gz, .speedscope.json, .pstats, .collapsed, …).
    rate:    samples a second; None: the program's default.
    native:  C frames, too. Each running thread is stopped for microseconds a sample then.
    options: further options of `sampled attach`, as a sequence of strings.

    Raises Error when the program cannot read this process or cannot write the file. `summary` has its closing words afterwards.
    """

    def __init__(self, output, rate=None, native=False, options=()):
        self._arguments = ["attach", str(os.getpid()), "-v", "-o", os.fspath(output), *options]
        if rate is not None:
            self._arguments += ["-r", str(rate)]
        if native:
            self._arguments.append("--native")
        self._process = None
        self._said = None  # what the program says: a file, so that it never waits for us and no thread of ours is in the profile
        self.summary = ""

    def _all_said(self):
        self._said.seek(0)
        return self._said.read()

    def __enter__(self):
        self.summary = ""
        self._arguments[1] = str(os.getpid())  # a process that forked since is another one
        self._said = tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace")
        self._process = _start(self._arguments, stdout=subprocess.DEVNULL, stderr=self._said)
        while "sampled: attached to process " not in self._all_said():
            if self._process.poll() is not None:
                self._finish()
                raise Error(_reason(self.summary))
            time.sleep(0.002)
        return self

    def _finish(self):
        status = self._process.wait()
        _permit(0)
        self.summary = self._all_said()
        self._said.close()
        return status

    def __exit__(self, kind, value, traceback):
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGINT)
        if self._finish() != 0 and kind is None:
            raise Error(_reason(self.summary))
        return False


def dump(native=False, options=()):
    """One stack of every thread of this process, as text. options: further ones of `sampled dump` (`--json`)."""
    arguments = ["dump", str(os.getpid()), *(["--native"] if native else []), *options]
    process = _start(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    text, said = process.communicate()
    _permit(0)
    if process.returncode != 0:
        raise Error(_reason(said))
    return text
