# SPDX-License-Identifier: Apache-2.0
"""A real systemd to test services under: systemd-nspawn boots a copy of this machine's root.

The copy is an overlay, whose writes are kept in memory. Its mounts stand in a mount namespace of their own, so that they are gone when its
last process is; that process ends when the test does, however the test ends. Cgroups are below one of our own, and are removed."""
import ctypes
import glob
import os
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

PREFIX = "sampled-machine-"
BOOT_TIMEOUT_S = 60
STOP_TIMEOUT_S = 15
PR_SET_PDEATHSIG = 1
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
# In a mount namespace of its own: $1 what lies over the root, $2 an empty directory, $3 the machine's name.
BOOT = """set -eu
mount -t tmpfs -o mode=0755,size=50% tmpfs "$2"
mkdir "$2/upper" "$2/work" "$2/root"
cp -a "$1/." "$2/upper/"
mount -t overlay -o "lowerdir=/,upperdir=$2/upper,workdir=$2/work" overlay "$2/root"
exec systemd-nspawn --quiet --boot --directory="$2/root" --machine="$3" --register=no --keep-unit --private-network \
    --link-journal=no --console=pipe systemd.unit=machine.target systemd.log_level=info
"""


def why_not():
    """Why no machine can be booted here; None: it can."""
    if os.geteuid() != 0:
        return "only root can boot a machine"
    if not shutil.which("systemd-nspawn"):
        return "systemd-nspawn is not installed"
    if not hierarchies():
        return "no cgroup hierarchy of systemd's is mounted"
    return None


def needs_machine(test):
    """Skips a test, in plain sight, where none can be booted."""
    reason = why_not()
    return unittest.skipIf(reason, reason)(test)


def hierarchies():
    """The directories of our own cgroup in the hierarchies that a systemd uses to keep processes apart."""
    found = []
    with open("/proc/self/cgroup", encoding="utf-8") as file:
        for line in file:
            number, controllers, path = line.rstrip("\n").split(":", 2)
            if controllers == "name=systemd":
                found.append("/sys/fs/cgroup/systemd" + path)
            elif number == "0":
                unified = "/sys/fs/cgroup/unified"
                found.append((unified if os.path.isdir(unified) else "/sys/fs/cgroup") + path)
    return [path.rstrip("/") for path in found if os.access(path, os.W_OK)]


class Machine:
    """A booted copy of this machine. Files for it are put below `stage` before start(). Use as a context manager once they are there."""

    def __init__(self):
        remove_stale()
        self.name = "%s%d" % (PREFIX, os.getpid())
        self.folder = folder_of(self.name)
        os.mkdir(self.folder, 0o755)
        self.stage = os.path.join(self.folder, "stage")
        self.process = self.leader = None
        self.log = open(os.path.join(self.folder, "log"), "w+b")
        for name in ("stage", "machine"):
            os.mkdir(os.path.join(self.folder, name))
        # Of this machine's own services none is to start.
        for path in glob.glob("/etc/systemd/system/*.wants") + glob.glob("/etc/systemd/system/*.requires"):
            self.hide(path)
        self.write("/etc/fstab", "")
        self.write("/etc/systemd/system/machine.target", "[Unit]\nRequires=basic.target\nAfter=basic.target\n")

    def hide(self, path):
        staged = self.stage + path
        os.makedirs(os.path.dirname(staged), exist_ok=True)
        os.mknod(staged, 0o600, os.makedev(0, 0))  # what an overlay takes for "not there"

    def write(self, path, text, mode=0o644):
        """A file of the machine that is to be."""
        staged = self.stage + path
        os.makedirs(os.path.dirname(staged), exist_ok=True)
        with open(staged, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(staged, mode)

    def start(self):
        self.process = subprocess.Popen(
            ["unshare", "--mount", "--propagation", "private", "sh", "-c", BOOT, "boot", self.stage,
             os.path.join(self.folder, "machine"), self.name],
            stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log, preexec_fn=self.enter, start_new_session=True)
        deadline = time.monotonic() + BOOT_TIMEOUT_S
        while not self.is_up():
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise AssertionError("the machine did not boot: %s" % self.said())
            time.sleep(0.02)
        return self

    def enter(self):
        """In the child: it ends with us, and all that it makes is in a cgroup of its own."""
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
        for path in hierarchies():
            own = os.path.join(path, self.name)
            os.mkdir(own)
            with open(os.path.join(own, "cgroup.procs"), "w", encoding="ascii") as file:
                file.write("0")

    def is_up(self):
        if self.leader is None:
            self.leader = self.find_leader()
        return self.leader is not None and self.run("systemctl", "is-system-running", check=False).stdout.strip() in ("running", "degraded")

    def find_leader(self):
        """The process that is the machine's first."""
        try:
            with open("/proc/%d/task/%d/children" % (self.process.pid, self.process.pid), encoding="ascii") as file:
                for pid in map(int, file.read().split()):
                    with open("/proc/%d/comm" % pid, encoding="utf-8") as name:
                        if name.read() == "systemd\n":
                            return pid
        except OSError:
            pass
        return None

    def run(self, *argv, check=True, timeout=60, stdin=None):
        """Runs a command inside; a CompletedProcess with text. check: it must end with 0."""
        command = ["nsenter", "--target", str(self.leader), "--all", "--", "env", "-i", "PATH=" + PATH, "LC_ALL=C.UTF-8",
                   "SYSTEMD_PAGER=", *map(str, argv)]
        done = subprocess.run(command, stdin=subprocess.DEVNULL if stdin is None else None, input=stdin, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, timeout=timeout, encoding="utf-8", errors="replace")
        if check and done.returncode != 0:
            raise AssertionError("%s: status %d\n%s%s" % (" ".join(map(str, argv)), done.returncode, done.stdout, done.stderr))
        return done

    def start_units(self, *units):
        """An AssertionError tells what they said."""
        done = self.run("systemctl", "start", *units, check=False)
        if done.returncode != 0:
            raise AssertionError("%s%s" % (done.stderr, "".join(map(self.journal, units))))

    def show(self, unit, *properties):
        """Properties of a unit, as text."""
        output = self.run("systemctl", "show", unit, *("--property=" + name for name in properties)).stdout
        return dict(line.split("=", 1) for line in output.splitlines())

    def journal(self, unit):
        return self.run("journalctl", "--no-pager", "--output=cat", "--unit", unit).stdout

    def said(self):
        self.log.flush()
        self.log.seek(0)
        return self.log.read().decode("utf-8", "replace")

    def stop(self):
        try:
            self.end_process()
        finally:
            for path in hierarchies():
                remove_cgroup(os.path.join(path, self.name))
            self.log.close()
            remove_traces(self.name)

    def end_process(self):
        if self.process is None:
            return
        # The first asks it to shut down, the second ends it at once.
        for number, patience in ((signal.SIGTERM, STOP_TIMEOUT_S), (signal.SIGTERM, STOP_TIMEOUT_S), (signal.SIGKILL, None)):
            if self.process.poll() is not None:
                break
            self.process.send_signal(number)
            try:
                self.process.wait(patience)
            except subprocess.TimeoutExpired:
                continue

    def __enter__(self):
        try:
            return self.start()
        except BaseException:
            self.stop()
            raise

    def __exit__(self, *_error):
        self.stop()


def remove_cgroup(path):
    """With all below it, once their processes have ended; those of a machine that was killed take a moment."""
    deadline = time.monotonic() + 5
    while os.path.isdir(path):
        for folder, _, _ in os.walk(path, topdown=False):
            try:
                os.rmdir(folder)
            except OSError:
                pass
        if time.monotonic() > deadline:
            return
        time.sleep(0.02)


def folder_of(name):
    return os.path.join(tempfile.gettempdir(), name)


def remove_traces(name):
    """Our own files, and what systemd-nspawn leaves in /run."""
    shutil.rmtree(folder_of(name), ignore_errors=True)
    shutil.rmtree("/run/systemd/nspawn/propagate/" + name, ignore_errors=True)


def remove_stale():
    """What tests left that were killed."""
    places = hierarchies() + [tempfile.gettempdir()]
    for name in {os.path.basename(path) for place in places for path in glob.glob(os.path.join(place, PREFIX + "[0-9]*"))}:
        if not os.path.exists("/proc/" + name[len(PREFIX):]):
            for place in hierarchies():
                remove_cgroup(os.path.join(place, name))
            remove_traces(name)
