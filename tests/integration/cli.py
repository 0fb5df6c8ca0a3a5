# SPDX-License-Identifier: Apache-2.0
"""What the tests of the command line share: its exit statuses, an empty folder to run in, and how an error looks."""
import functools
import os
import subprocess
import tempfile
import unittest

import support

DONE, FAILED, USAGE, NO_PYTHON, NOT_PERMITTED, BEFORE_EXEC, GIVEN_UP = 0, 1, 2, 3, 4, 125, 130
NOBODY = 65534


def samples(text):
    return sum(line.count for line in support.parse_collapsed(text))


def samples_in(path):
    return sum(line.count for line in support.read_collapsed(path))


class Folder(unittest.TestCase):
    """A test in an empty directory, which is the current one of the programs it starts."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="sampled-cli-")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        os.chmod(self.folder, 0o755)

    def path(self, name):
        return os.path.join(self.folder, name)

    def sampled(self, *args, **extra):
        return support.sampled(*args, cwd=self.folder, **extra)

    def assert_error(self, done, status, *texts):
        """One line on standard error that holds the texts, nothing on standard output, no file left."""
        error = done.stderr.decode()
        self.assertEqual(done.returncode, status, error)
        self.assertEqual(done.stdout, b"")
        self.assertEqual(error.count("\n"), 1, error)
        self.assertTrue(error.startswith("sampled: "), error)
        for text in texts:
            self.assertIn(text, error)


@functools.lru_cache(maxsize=None)
def python_for_all():
    """An interpreter that any user can run."""
    for python in support.all_pythons():
        if not python.root:
            try:
                subprocess.run(python.argv + ["-c", ""], check=True, stderr=subprocess.DEVNULL, user=NOBODY, group=NOBODY, cwd="/")
                return python
            except (OSError, subprocess.SubprocessError):
                pass
    raise unittest.SkipTest("no supported Python that user %d can run" % NOBODY)
