# SPDX-License-Identifier: Apache-2.0
"""The tree built in another Debian, in a root of tests/setup-roots: today's stable one, and the one that has the newest gcc."""
import os
import shutil
import subprocess

from results import JOBS, RESULTS, TOP, command

CACHE = os.environ.get("SAMPLED_CACHE", os.path.expanduser("~/.cache/sampled"))
# Its own view of what is mounted goes with it.
ENTER = 'for part in proc sys; do mount --rbind /$part "$0/$part" || exit 1; done; mkdir -p "$0/dev/shm" && mount -t tmpfs tmpfs "$0/dev/shm" && exec chroot "$0" \
	/usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 SOURCE_DATE_EPOCH="$1" sh -ec "cd /src && $2"'


def root_of(suite):
    arch = subprocess.run(["dpkg", "--print-architecture"], stdout=subprocess.PIPE, text=True, check=False).stdout.strip()
    return os.path.join(CACHE, "build-%s-%s" % (suite, arch))


def copy_tree(root):
    """The files of this tree into /src there: make builds anew what differs. What was built stays, all else that is not in the tree goes."""
    to = os.path.join(root, "src")
    listed = subprocess.run(["git", "ls-files", "-z", "-co", "--exclude-standard"], cwd=TOP, stdout=subprocess.PIPE, text=True, check=True).stdout.split("\0")
    files = {name for name in listed if name and os.path.exists(os.path.join(TOP, name))}
    for folder, _folders, names in os.walk(to):
        for name in names:
            path = os.path.join(folder, name)
            inside = os.path.relpath(path, to)
            if not inside.startswith("build" + os.sep) and inside not in files:
                os.remove(path)
    for name in files:
        source, there = os.path.join(TOP, name), os.path.join(to, name)
        if os.path.exists(there) and read(source) == read(there):
            continue
        os.makedirs(os.path.dirname(there), exist_ok=True)
        shutil.copy(source, there)


def read(path):
    with open(path, "rb") as file:
        return file.read()


def ready(suite):
    """Whether there is such a root; says why not. The tree is in it then."""
    why = None
    if os.geteuid() != 0:
        why = "only root can enter another Debian"
    elif not os.path.isdir(root_of(suite)):
        why = "Debian %s is not installed (tests/setup-roots build-%s)" % (suite, suite)
    if why:
        RESULTS.skip("Debian " + suite, why)
        return False
    copy_tree(root_of(suite))
    return True


def inside(suite, what, script):
    """One test: a shell command in that root, in the tree."""
    epoch = subprocess.run(["git", "log", "-1", "--format=%ct"], cwd=TOP, stdout=subprocess.PIPE, text=True, check=False).stdout.strip() or "0"
    return command("Debian %s: %s" % (suite, what), ["unshare", "--mount", "sh", "-c", ENTER, root_of(suite), epoch, script], 1200)


def stable():
    """As this machine's: built without warnings, unit tests, the package, and a dump, a profile and the service of a program."""
    if ready("trixie") and inside("trixie", "build", "make %s CFLAGS='-O2 -g -Werror' all unit" % JOBS):
        inside("trixie", "unit tests", "build/tests/unit --quiet --timeout 120 " + JOBS)
        inside("trixie", "dump, attach, daemon", "sh tests/checks/smoke.sh build/sampled")
        inside("trixie", "package", "systemd/make-deb")


def newest_compiler():
    if ready("forky"):
        inside("forky", "build", "gcc --version && make %s CFLAGS='-O2 -g -Werror' all" % JOBS)
