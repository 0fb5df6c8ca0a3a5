# SPDX-License-Identifier: Apache-2.0
"""Each core on the shelf (tests/cores) is of a program that said where its threads stood, before it was written. `dump --core` says the same, from
the core and the interpreter's file alone: the interpreter itself need not be installed any more."""
import functools
import json
import os
import shutil
import sys
import unittest

import cli
import support

sys.path.insert(0, os.path.join(support.TOP, "tests", "cores"))
import shelf  # noqa: E402

def chosen():
    """All; with SAMPLED_TEST_PYTHONS=quick one with frames on the heap and the newest."""
    found = shelf.entries()
    if not support.QUICK or len(found) < 3:
        return found
    heap = [entry for entry in found if entry.version < (3, 11)] or found[:1]
    return [heap[-1], found[-1]]


def frames_of(thread):
    return [[frame["name"], frame["file"], frame["line"]] for frame in thread["frames"]]


@unittest.skipUnless(shutil.which("zstd"), "zstd is not installed")
class Shelf(cli.Folder):
    maxDiff = None

    def dump(self, entry):
        core, interpreter = entry.unpack(self.folder)
        done = support.sampled("dump", "--core", core, "--exe", interpreter, "--json")
        self.assertEqual(done.returncode, cli.DONE, done.stderr)
        # Where the interpreter is not installed any more, nor are its modules: these are not needed, but looked at before it is.
        self.assertRegex(done.stderr.decode(), r"\A(sampled: (/.*: not (here|the one that was mapped), so .*|and \d+ files more)\n)*\Z")
        return json.loads(done.stdout)

    def check_entry(self, entry):
        found = self.dump(entry)
        self.assertEqual(found["pid"], entry.state["pid"])
        self.assertEqual(found["version"].split("+")[0], ".".join(map(str, entry.version)))
        self.assertEqual({thread["tid"]: thread["name"] for thread in found["threads"]}, {tid: thread["name"] for tid, thread in entry.threads.items()})
        for thread in found["threads"]:
            self.assertTrue(thread["sampled"] and not thread["truncated"], thread)
            self.assertEqual(frames_of(thread), entry.threads[thread["tid"]]["frames"], thread["name"])
        for status, key in (("gil", "holds"), ("gil_wait", "awaits"), ("exception", "handles")):
            self.assertEqual([thread["tid"] for thread in found["threads"] if status in thread["status"]], [entry.state[key]], status)

    def check_interpreter_is_asked_for(self, entry):
        """Without its file nothing is told but that it is not here: what check_entry() reads it reads from the one that is kept."""
        core, _interpreter = entry.unpack(self.folder)
        done = support.sampled("dump", "--core", core)
        self.assertEqual((done.returncode, done.stdout), (cli.FAILED, b""))
        self.assertIn("%s: not here" % entry.interpreter, done.stderr.decode())


for one in chosen():
    label = one.name.replace(".", "_").replace("-", "_")
    setattr(Shelf, "test_core_" + label, functools.partialmethod(Shelf.check_entry, one))
for one in chosen()[-1:]:
    Shelf.test_interpreter_is_asked_for = functools.partialmethod(Shelf.check_interpreter_is_asked_for, one)
if not chosen():
    Shelf.test_cores = support.skipped("the shelf of cores is not there (tests/setup-cores)")


if __name__ == "__main__":
    unittest.main()
