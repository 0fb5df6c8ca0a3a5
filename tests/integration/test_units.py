# SPDX-License-Identifier: Apache-2.0
"""What the units of systemd/ let a service do, and what not: a probe stands in for the program, under a real systemd."""
import json
import os
import re
import unittest

import nspawn
import support

EPERM, ENOENT, EACCES, EAFNOSUPPORT = ("OSError %d" % number for number in (1, 2, 13, 97))
SYSTEM_PYTHON = "/usr/bin/python3"
# Says where it keeps a number, and holds it.
TARGET = """import ctypes, time
number = ctypes.c_int(4711)
print("NUMBER", hex(ctypes.addressof(number)), flush=True)
time.sleep(3600)
"""


@nspawn.needs_machine
@unittest.skipUnless(os.access(SYSTEM_PYTHON, os.X_OK), SYSTEM_PYTHON + " is not there")
class Units(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.machine = nspawn.Machine()
        cls.addClassCleanup(cls.machine.stop)
        for kind, folder in (("sysusers", "sysusers.d"), ("tmpfiles", "tmpfiles.d")):
            with open(os.path.join(support.TOP, "systemd", "sampled.%s.conf" % kind), encoding="utf-8") as file:
                cls.machine.write("/usr/lib/%s/sampled.conf" % folder, file.read())
        with open(os.path.join(support.TARGETS, "unit_probe.py"), encoding="utf-8") as file:
            cls.machine.write("/opt/unit_probe.py", file.read())
        cls.machine.write("/opt/target.py", TARGET)
        cls.machine.write("/etc/sampled/push.conf", "")
        cls.machine.write("/etc/systemd/system/target.service",
                          "[Service]\nDynamicUser=yes\nExecStart=%s /opt/target.py\n" % SYSTEM_PYTHON)
        for unit in ("sampled.service", "sampled-push.service"):
            cls.machine.write("/etc/systemd/system/" + unit, probed(unit, "-"))
        cls.machine.start()
        cls.machine.run("systemctl", "start", "target")
        support.wait_until(lambda: "NUMBER" in cls.machine.journal("target"), "the target says its number")
        cls.pid = cls.machine.show("target", "MainPID")["MainPID"]
        cls.address = re.search(r"NUMBER (\S+)", cls.machine.journal("target")).group(1)

    def probe(self, unit):
        """What the probe said under a unit, which is started and stopped."""
        self.machine.run("sh", "-c", "cat >/etc/systemd/system/" + unit, stdin=probed(unit, self.pid + " " + self.address))
        self.machine.run("systemctl", "daemon-reload")
        started = self.machine.run("systemctl", "start", unit, check=False)
        self.assertEqual(started.returncode, 0, started.stderr + self.machine.journal(unit))
        self.addCleanup(self.machine.run, "systemctl", "stop", unit)
        support.wait_until(lambda: "PROBE" in self.machine.journal(unit), "the probe says what it found")
        return json.loads(re.findall(r"^PROBE (.*)$", self.machine.journal(unit), re.M)[-1])

    def test_the_service_reads_processes_and_writes_its_own_folders_only(self):
        said = self.probe("sampled.service")
        capabilities = "%016x" % (1 << 2 | 1 << 19)
        self.assertEqual(said.pop("status"), {
            "CapEff": capabilities, "CapPrm": capabilities, "CapBnd": capabilities, "CapAmb": capabilities, "NoNewPrivs": "1", "Seccomp": "2"})
        self.assertGreater(said.pop("processes"), 3)
        self.assertEqual(said, {
            "comm of another": "python3", "executable of another": True, "file in the root of another": True, "read memory": 4711,
            "write memory": EPERM, "read /proc/PID/mem": 4711, "write /proc/PID/mem": EACCES, "read /proc/PID/task/TID/syscall": True,
            "pidfd": True, "ptrace": EPERM, "signal another": EPERM, "unix socket": True, "inet socket": EAFNOSUPPORT,
            "netlink socket": EAFNOSUPPORT, "interfaces": ["lo"], "state": True, "runtime": True, "spool": True, "temporary": True,
            "etc": EACCES, "home": [], "shadow": True, "mount": EPERM})
        self.assertEqual(self.machine.show("sampled", "StatusText")["StatusText"], "probed")

    def test_the_sender_has_a_network_and_sees_nobody(self):
        said = self.probe("sampled-push.service")
        self.assertEqual(said.pop("status"), {
            "CapEff": "0" * 16, "CapPrm": "0" * 16, "CapBnd": "0" * 16, "CapAmb": "0" * 16, "NoNewPrivs": "1", "Seccomp": "2"})
        self.assertEqual(said.pop("processes"), 1)
        self.assertEqual(said, {
            "comm of another": ENOENT, "executable of another": ENOENT, "file in the root of another": ENOENT, "read memory": EPERM,
            "write memory": EPERM, "read /proc/PID/mem": ENOENT, "write /proc/PID/mem": ENOENT, "read /proc/PID/task/TID/syscall": ENOENT,
            "pidfd": EPERM, "ptrace": EPERM, "signal another": EPERM, "unix socket": True, "inet socket": True,
            "netlink socket": EAFNOSUPPORT, "interfaces": ["lo"], "state": ENOENT, "runtime": ENOENT, "spool": True, "temporary": True,
            "etc": EACCES, "home": EACCES, "shadow": EACCES, "mount": EPERM})


def probed(unit, arguments):
    """A unit with the probe in the program's place."""
    with open(os.path.join(support.TOP, "systemd", unit), encoding="utf-8") as file:
        text, count = re.subn(r"(?m)^ExecStart=.*$", "ExecStart=%s /opt/unit_probe.py %s" % (SYSTEM_PYTHON, arguments), file.read())
    assert count == 1
    return text


if __name__ == "__main__":
    unittest.main()
