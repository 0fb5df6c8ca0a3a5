# SPDX-License-Identifier: Apache-2.0
"""The Debian package, installed, upgraded, removed and purged under a real systemd."""
import glob
import os
import shutil
import subprocess
import unittest

import nspawn
import support


@nspawn.needs_machine
@unittest.skipIf(support.QUICK or support.SANITIZED, "the package is built and tested in full runs only")
@unittest.skipUnless(shutil.which("dh"), "debhelper is not installed")
class Package(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        subprocess.run(["make", "--no-print-directory", "deb"], cwd=support.TOP, check=True, stdout=subprocess.DEVNULL)
        (path,) = glob.glob(os.path.join(support.TOP, "build", "sampled_*.deb"))
        cls.machine = nspawn.Machine()
        cls.addClassCleanup(cls.machine.stop)
        os.makedirs(cls.machine.stage + "/opt")
        cls.deb = shutil.copy(path, cls.machine.stage + "/opt/")[len(cls.machine.stage):]
        # This machine may have had sampled installed.
        for path in ("/etc/sampled", "/var/lib/sampled", "/var/spool/sampled"):
            if os.path.exists(path):
                cls.machine.hide(path)
        cls.machine.start()

    def is_there(self, *paths):
        return {path: self.machine.run("test", "-e", path, check=False).returncode == 0 for path in paths}

    def test_from_installation_to_purge(self):
        run = self.machine.run
        run("dpkg", "--install", self.deb)
        self.assertIn("sampled", run("getent", "passwd", "sampled").stdout)
        self.assertEqual(run("stat", "--format=%A %U %G", "/var/spool/sampled").stdout, "drwxrws--- sampled sampled\n")
        for unit in ("sampled.service", "sampled-push.service"):
            self.assertEqual(self.machine.show(unit, "LoadState", "ActiveState", "UnitFileState"),
                             {"LoadState": "loaded", "ActiveState": "inactive", "UnitFileState": "disabled"})
        self.assertIn("no mistake found", run("sampled", "daemon", "--check").stdout)
        run("sh", "-c", "echo '# mine' >>/etc/sampled/sampled.conf; mkdir -p /var/lib/sampled")
        run("dpkg", "--install", self.deb)
        self.assertIn("# mine", run("tail", "-n", "1", "/etc/sampled/sampled.conf").stdout)
        run("dpkg", "--remove", "sampled")
        self.assertEqual(self.is_there("/usr/bin/sampled", "/etc/sampled/sampled.conf", "/var/spool/sampled"),
                         {"/usr/bin/sampled": False, "/etc/sampled/sampled.conf": True, "/var/spool/sampled": True})
        run("dpkg", "--purge", "sampled")
        gone = ("/etc/sampled", "/var/lib/sampled", "/var/spool/sampled", "/usr/share/doc/sampled", "/usr/lib/sysusers.d/sampled.conf")
        self.assertEqual(self.is_there(*gone), dict.fromkeys(gone, False))


if __name__ == "__main__":
    unittest.main()
