# SPDX-License-Identifier: Apache-2.0
"""The service and its sender as systemd runs them: installed, started, reloaded, watched and stopped, while a Python service runs."""
import json
import os
import re
import subprocess
import time
import unittest

import nspawn
import support

SYSTEM_PYTHON = "/usr/bin/python3"
DUMPS = "/var/lib/sampled"
PROGRAM = """import time
def innermost():
    end = time.monotonic() + 0.01
    while time.monotonic() < end:
        pass
def outermost():
    while True:
        innermost()
outermost()
"""
CONFIG = """[dump]
format = collapsed
[history]
slice = 1s
[rule busy]
unit = busy.service
rate = %d
[push]
spool = /var/spool/sampled
interval = 2s
"""
PUSH = """[destination nobody]
type = pyroscope
url = http://127.0.0.1:9
"""
STORED = """[destination store]
type = pyroscope
url = http://127.0.0.1:8040
bearer-file = %s
"""
STORE = """import http.server
class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        print(self.headers["Authorization"], flush=True)
        self.send_response(200)
        self.end_headers()
http.server.HTTPServer(("127.0.0.1", 8040), Handler).serve_forever()
"""
READER_CAPABILITIES = "%016x" % (1 << 2 | 1 << 19)


def status_of(machine, pid):
    """Lines of /proc/PID/status, the same for all threads."""
    wanted = ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb", "NoNewPrivs", "Seccomp")
    text = machine.run("sh", "-c", "cat /proc/%s/task/*/status" % pid).stdout
    found = {name: set(re.findall(r"(?m)^%s:\t(\S+)$" % name, text)) for name in wanted}
    return {name: values.pop() if len(values) == 1 else values for name, values in found.items()}


@nspawn.needs_machine
@unittest.skipIf(support.SANITIZED, "the units are made for the program that is installed")
@unittest.skipUnless(os.access(SYSTEM_PYTHON, os.X_OK), SYSTEM_PYTHON + " is not there")
class Service(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        machine = cls.machine = nspawn.Machine()
        cls.addClassCleanup(machine.stop)
        # This machine may have sampled installed.
        for path in ("/etc/sampled", "/var/lib/sampled", "/var/spool/sampled"):
            if os.path.exists(path):
                machine.hide(path)
        subprocess.run(["make", "--no-print-directory", "install", "DESTDIR=" + machine.stage, "PREFIX=/usr", "SYSCONFDIR=/etc2"],
                       cwd=support.TOP, check=True, stdout=subprocess.DEVNULL)
        machine.write("/opt/busy.py", PROGRAM)
        machine.write("/etc/systemd/system/busy.service",
                      "[Service]\nDynamicUser=yes\nExecStart=%s /opt/busy.py\n" % SYSTEM_PYTHON)
        machine.start()
        machine.run("mkdir", "-p", "/etc/sampled/conf.d")
        machine.run("cp", "/etc2/sampled/sampled.conf", "/etc/sampled/")
        cls.configure("/etc/sampled/conf.d/test.conf", CONFIG % 49)
        cls.configure("/etc/sampled/push.conf", PUSH)
        machine.start_units("busy", "sampled")

    @classmethod
    def configure(cls, path, text):
        cls.machine.run("sh", "-c", 'cat >"$0"', path, stdin=text)

    def setUp(self):
        self.machine.run("systemctl", "reset-failed")
        self.machine.start_units("sampled")
        self.target = self.pid("busy")
        support.wait_until(lambda: self.target in self.listed(), "the target is profiled: " + self.machine.journal("sampled"))

    def pid(self, unit):
        return int(self.machine.show(unit, "MainPID")["MainPID"])

    def listed(self):
        done = self.machine.run("sampled", "ctl", "list", check=False)
        return {int(word) for word in re.findall(r"(?m)^\s*(\d+)\b", done.stdout)}

    def samples(self):
        """How many were taken of the target."""
        found = json.loads(self.machine.run("sampled", "ctl", "list", "--json").stdout)
        return sum(one["facts"]["samples"] for one in found if one["pid"] == self.target)

    def dumps(self):
        """Those of the target that are whole."""
        return set(re.findall(r"(?m)^sampled-python3-%d-\S*$" % self.target, self.machine.run("ls", DUMPS).stdout))

    def test_it_is_ready_and_says_how_it_is(self):
        shown = self.machine.show("sampled", "Type", "ActiveState", "SubState", "StatusText", "User")
        self.assertTrue(shown.pop("StatusText"))
        self.assertEqual(shown, {"Type": "notify", "ActiveState": "active", "SubState": "running", "User": "sampled"})
        self.assertTrue(self.machine.run("sampled", "ctl", "status").stdout)
        json.loads(self.machine.run("sampled", "ctl", "status", "--json").stdout)

    def test_limits(self):
        self.assertEqual(
            self.machine.show("sampled", "MemoryMax", "CPUQuotaPerSecUSec", "TasksMax", "OOMScoreAdjust", "WatchdogUSec", "Restart",
                              "PrivateNetwork", "ProtectSystem", "RestrictAddressFamilies", "LimitCORE"),
            {"MemoryMax": str(256 << 20), "CPUQuotaPerSecUSec": "200ms", "TasksMax": "32", "OOMScoreAdjust": "900", "WatchdogUSec": "30s",
             "Restart": "on-failure", "PrivateNetwork": "yes", "ProtectSystem": "strict", "RestrictAddressFamilies": "AF_UNIX",
             "LimitCORE": "0"})

    def test_privileges_of_the_service(self):
        pid = self.pid("sampled")
        self.assertEqual(status_of(self.machine, pid), {
            "CapInh": READER_CAPABILITIES, "CapPrm": READER_CAPABILITIES, "CapEff": READER_CAPABILITIES, "CapBnd": READER_CAPABILITIES,
            "CapAmb": "0" * 16, "NoNewPrivs": "1", "Seccomp": "2"})
        maps = self.machine.run("cat", "/proc/%d/maps" % pid).stdout
        self.assertNotRegex(maps, "libcurl|libmicrohttpd|libssl|libseccomp")

    def test_its_sampler_is_let_in_at_once(self):
        """It asks for turns of 0.1 ms, which Linux knows since 6.12."""
        text = self.machine.run("sh", "-c", "cat /proc/%d/task/*/sched" % self.pid("sampled"), check=False).stdout
        slices = [int(number) for number in re.findall(r"(?m)^se\.slice\s*:\s*(\d+)$", text)]
        if not slices:
            self.skipTest("the kernel does not tell how long turns are")
        self.assertEqual(min(slices), 100000)

    def dump(self):
        """The name of the one dump of the target that a signal makes."""
        before = self.dumps()
        said = self.machine.journal("sampled").count("dumped into")
        self.machine.run("systemctl", "kill", "--signal=USR1", "sampled")
        support.wait_until(lambda: self.machine.journal("sampled").count("dumped into") > said, "the dumps are written")
        (name,) = self.dumps() - before
        return name

    def test_a_signal_dumps_what_the_targets_do(self):
        support.wait_until(lambda: self.samples() > 100, "it is sampled for a while")
        name = self.dump()
        lines = support.parse_collapsed(self.machine.run("cat", DUMPS + "/" + name).stdout.encode())
        total = sum(line.count for line in lines)
        known = sum(line.count for line in lines if {"outermost", "innermost"} <= {frame[0] for frame in line.frames})
        self.assertGreater(total, 0)
        self.assertGreater(known, 0.9 * total)
        self.assertEqual(self.machine.run("stat", "--format=%A %U", DUMPS + "/" + name).stdout, "-rw-r----- sampled\n")

    def test_a_reload_goes_on_with_the_new_configuration(self):
        pid = self.pid("sampled")
        self.configure("/etc/sampled/conf.d/test.conf", CONFIG % 97)
        self.addCleanup(self.configure, "/etc/sampled/conf.d/test.conf", CONFIG % 49)
        self.machine.run("systemctl", "reload", "sampled")
        support.wait_until(lambda: re.search(r"\b97\b", self.machine.run("sampled", "ctl", "list").stdout), "the new rate")
        self.assertEqual(self.pid("sampled"), pid)
        self.assertEqual(self.machine.show("sampled", "ActiveState", "NRestarts"), {"ActiveState": "active", "NRestarts": "0"})
        time.sleep(2)
        self.assertTrue(self.dump(), "one, of before and after")

    def test_mistakes_in_the_configuration_leave_the_old_in_force(self):
        pid = self.pid("sampled")
        self.configure("/etc/sampled/conf.d/test.conf", "[service]\nrate = fast\n")
        self.addCleanup(self.configure, "/etc/sampled/conf.d/test.conf", CONFIG % 49)
        self.assertNotEqual(self.machine.run("systemctl", "reload", "sampled", check=False).returncode, 0)
        support.wait_until(lambda: "conf.d/test.conf:2: rate = fast" in self.machine.journal("sampled"), "file and line in the journal")
        self.assertEqual(self.pid("sampled"), pid)
        self.assertIn(self.target, self.listed())
        self.assertEqual(self.machine.show("sampled", "ActiveState"), {"ActiveState": "active"})

    def test_it_comes_back_however_often_it_is_killed(self):
        restarts = int(self.machine.show("sampled", "NRestarts")["NRestarts"])
        for count in range(1, 8):
            self.machine.run("kill", "-KILL", self.pid("sampled"))
            support.wait_until(lambda count=count: int(self.machine.show("sampled", "NRestarts")["NRestarts"]) == restarts + count and
                               self.pid("sampled"), "it is started again: " + self.machine.journal("sampled"))
        support.wait_until(lambda: self.target in self.listed(), "the target is profiled again")

    def test_who_stops_living_is_killed_and_started_again(self):
        drop_in = "/run/systemd/system/sampled.service.d"
        self.machine.run("mkdir", "-p", drop_in)
        self.configure(drop_in + "/test.conf", "[Service]\nWatchdogSec=2\n")
        self.machine.run("systemctl", "daemon-reload")
        self.machine.run("systemctl", "restart", "sampled")
        self.addCleanup(self.machine.run, "sh", "-c", "rm -r %s; systemctl daemon-reload; systemctl restart sampled" % drop_in)
        pid = self.pid("sampled")
        time.sleep(5)
        self.assertEqual(self.pid("sampled"), pid, "it lives, and says so")
        self.machine.run("kill", "-STOP", pid)
        support.wait_until(lambda: self.pid("sampled") not in (0, pid), "another in its place: " + self.machine.journal("sampled"))
        self.assertEqual(self.machine.show("sampled", "NRestarts"), {"NRestarts": "1"})
        support.wait_until(lambda: self.target in self.listed(), "the target is profiled again")
        self.assertIn(self.state_of(self.target), "RSD")

    def state_of(self, pid):
        return re.search(r"(?m)^State:\t(\S)", self.machine.run("cat", "/proc/%d/status" % pid).stdout).group(1)

    def test_it_stops_at_once_and_leaves_no_trace(self):
        self.machine.run("systemctl", "stop", "sampled")
        self.assertEqual(self.machine.show("sampled", "ActiveState", "Result"), {"ActiveState": "inactive", "Result": "success"})
        self.assertNotEqual(self.machine.run("test", "-e", "/run/sampled", check=False).returncode, 0)
        self.assertIn(self.state_of(self.target), "RSD")

    def test_the_sender_takes_what_is_spooled(self):
        self.machine.start_units("sampled-push")
        self.addCleanup(self.machine.run, "systemctl", "stop", "sampled-push")
        shown = self.machine.show("sampled-push", "ActiveState", "DynamicUser", "MemoryMax", "StatusText")
        self.assertEqual(shown.pop("MemoryMax"), str(256 << 20))
        self.assertEqual((shown["ActiveState"], shown["DynamicUser"]), ("active", "yes"))
        self.assertEqual(status_of(self.machine, self.pid("sampled-push")), {
            "CapInh": "0" * 16, "CapPrm": "0" * 16, "CapEff": "0" * 16, "CapBnd": "0" * 16, "CapAmb": "0" * 16, "NoNewPrivs": "1",
            "Seccomp": "2"})
        support.wait_until(lambda: ".spool" in self.machine.run("ls", "/var/spool/sampled").stdout, "files in the spool")
        self.assertRegex(self.machine.run("sh", "-c", "stat --format='%A %G' /var/spool/sampled/*.spool").stdout, "(-rw-rw---- sampled\n)+")
        support.wait_until(lambda: "127.0.0.1" in self.machine.journal("sampled-push"), "why nothing is sent")

    def test_a_credential_of_roots_reaches_the_store(self):
        """The sender's user may not read it; systemd hands it over. `push --check` sees the same."""
        self.machine.run("mkdir", "-p", "/etc/sampled/credentials")
        self.configure("/etc/sampled/credentials/token", "s3cret\n")
        self.machine.run("chmod", "600", "/etc/sampled/credentials/token")
        self.addCleanup(self.machine.run, "rm", "-r", "/etc/sampled/credentials")
        self.addCleanup(self.configure, "/etc/sampled/push.conf", PUSH)
        self.configure("/etc/sampled/push.conf", STORED % "/etc/sampled/credentials/token")
        done = self.machine.run("sampled", "push", "--check", check=False)
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("Permission denied (sampled-push.service has a user of its own: put the file into /etc/sampled/credentials", done.stderr)
        self.configure("/etc/sampled/push.conf", STORED % "token")
        self.machine.run("sampled", "push", "--check")
        self.configure("/opt/store.py", STORE)
        self.machine.run("systemd-run", "--unit=store", SYSTEM_PYTHON, "/opt/store.py")
        self.addCleanup(self.machine.run, "systemctl", "stop", "store")
        self.machine.start_units("sampled-push")
        self.addCleanup(self.machine.run, "systemctl", "stop", "sampled-push")
        support.wait_until(lambda: "Bearer s3cret" in self.machine.journal("store"), "the store is shown it: " + self.machine.journal("sampled-push"))
        self.assertNotIn("s3cret", self.machine.journal("sampled-push"))


if __name__ == "__main__":
    unittest.main()
