# SPDX-License-Identifier: Apache-2.0
"""The package for pip (make wheel): installed by pip and used in old and new Pythons, and in other Debians' roots."""
import glob
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

import support

AUDITWHEEL = os.path.join(support.CACHE, "consumers", "auditwheel", "bin", "auditwheel")

# Prints each fact in a line: what the profile, the dump and an error hold.
USES = """
import os, sys, time
import sampled

def spin():
    end = time.time() + 1
    while time.time() < end:
        sum(range(1000))

here = os.path.dirname(os.path.abspath(__file__))
with sampled.profile(os.path.join(here, "out.collapsed"), rate=200) as profile:
    spin()
profiled = open(os.path.join(here, "out.collapsed")).read()
print("profile", "spin (" in profiled, 'samples of 1 thread' in profile.summary)

@sampled.profile(os.path.join(here, "decorated.html"))
def decorated():
    spin()

decorated()
print("decorated", os.path.getsize(os.path.join(here, "decorated.html")) > 10000)

def hangs():
    return sampled.dump()

print("dump", "hangs (" in hangs())
try:
    with sampled.profile(os.path.join(here, "nowhere", "out.html")):
        print("was run")
except sampled.Error as error:
    print("error", str(error).startswith("sampled: cannot write "))
"""
SAID = ["profile True True", "decorated True", "dump True", "error True"]
wheel = None


def setUpModule():
    global wheel
    made = subprocess.run(["make", "--no-print-directory", "-j%d" % os.cpu_count(), "wheel"], cwd=support.TOP, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env={key: value for key, value in os.environ.items() if key != "BUILD"})
    if made.returncode != 0:
        raise AssertionError("make wheel: " + made.stdout.decode()[-3000:])
    wheel = os.path.join(support.TOP, made.stdout.decode().split()[-1])


def pip_install(python, *options):
    subprocess.run([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-index", *options, wheel], check=True,
                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


class Wheel(unittest.TestCase):
    @unittest.skipUnless(os.access(AUDITWHEEL, os.X_OK), "auditwheel is not installed (tests/consumers/setup-auditwheel)")
    def test_needs_nothing_of_its_host(self):
        shown = subprocess.run([AUDITWHEEL, "show", wheel], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=True).stdout.decode()
        self.assertIn("requires no external shared libraries", shown)
        self.assertIn("no external versioned symbols", " ".join(shown.split()))

    def test_is_made_alike(self):
        with open(wheel, "rb") as file:
            before = file.read()
        setUpModule()
        with open(wheel, "rb") as file:
            self.assertEqual(before, file.read())


@support.each_python
class Uses(unittest.TestCase):
    @support.on(support.few)
    def check_uses(self, python):
        if python.version < (3, 8):
            self.skipTest("the wheel is for 3.8 and later")
        folder = tempfile.mkdtemp(prefix="sampled-wheel-", dir=python.root + "/tmp")
        self.addCleanup(shutil.rmtree, folder)
        inside = folder[len(python.root):]
        script = os.path.join(folder, "uses.py")
        with open(script, "w", encoding="utf-8") as file:
            file.write(USES)
        argv, env = python.argv, dict(os.environ)
        if python.root or subprocess.run(argv + ["-c", "import ensurepip"], stderr=subprocess.DEVNULL).returncode != 0:
            pip_install(sys.executable, "--target", os.path.join(folder, "packages"), "--ignore-requires-python")
            env["PYTHONPATH"] = inside + "/packages"
        else:
            subprocess.run(argv + ["-m", "venv", os.path.join(folder, "venv")], check=True)
            argv = [os.path.join(folder, "venv", "bin", "python")]
            pip_install(argv[0])
        command = argv + [os.path.join(inside, "uses.py")]
        if python.root:  # with a /proc that goes with the command's own namespace
            script = 'mount -t proc proc "$0/proc" && exec "$@"'
            command = ["unshare", "--mount", "sh", "-c", script, python.root, *command]
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env,
                              timeout=support.SAMPLED_TIMEOUT_S)
        self.assertEqual(done.stdout.decode().splitlines(), SAID, done.stderr.decode())


@support.need_root
class Rights(unittest.TestCase):
    def test_another_user(self):
        """A user without privileges profiles its own process: the parent lets its child read it."""
        python = next((each for each in support.pythons() if not each.root and each.version >= (3, 8) and each.real.startswith("/usr/")), None)
        if not python:
            self.skipTest("no Python that all users may run")
        folder = tempfile.mkdtemp(prefix="sampled-wheel-", dir="/tmp")
        self.addCleanup(shutil.rmtree, folder)
        os.chmod(folder, 0o777)
        pip_install(sys.executable, "--target", os.path.join(folder, "packages"))
        with open(os.path.join(folder, "uses.py"), "w", encoding="utf-8") as file:
            file.write(USES)
        done = subprocess.run([python.real, os.path.join(folder, "uses.py")], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, env={"PYTHONPATH": folder + "/packages", "PATH": "/usr/bin:/bin"}, user=65534, group=65534,
                              extra_groups=[], cwd="/", timeout=support.SAMPLED_TIMEOUT_S)
        self.assertEqual(done.stdout.decode().splitlines(), SAID, done.stderr.decode())


if __name__ == "__main__":
    unittest.main()
