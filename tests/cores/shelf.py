# SPDX-License-Identifier: Apache-2.0
"""The shelf of cores: ${SAMPLED_CACHE:-~/.cache/sampled}/cores, a folder for each interpreter of which there ever was one on this machine.

    3.14.3-shared-0f71c28d9e21/      version, kind, the beginning of the build id of the file that holds the interpreter
        core.zst                     of a process that stood in standing.py
        interpreter.zst              that file, without what is for debuggers: all that `dump --core` needs of what was mapped
        state.json                   where the process said that it stood
        entry.json                   the machine, the name that the file had, and each ELF file that was mapped, with its build id

tests/setup-cores fills it; nothing is taken off it, so that an interpreter stays tested when it is not installed any more."""
import json
import os
import re
import subprocess

CACHE = os.environ.get("SAMPLED_CACHE", os.path.expanduser("~/.cache/sampled"))
SHELF = os.path.join(CACHE, "cores")
NAME = re.compile(r"(\d+\.\d+\.\d+\w*)-(static|shared|chroot)-([0-9a-f]{12})$")
COPIED = ("core", "interpreter")


class Entry:
    def __init__(self, folder):
        self.folder, self.name = folder, os.path.basename(folder)
        self.about, self.state = self.read("entry.json"), self.read("state.json")
        # A core names its threads by number, and JSON's keys are text.
        self.threads = {int(tid): thread for tid, thread in self.state["threads"].items()}
        self.version = tuple(self.state["version"])
        self.interpreter = self.about["interpreter"]  # the name that its file had

    def read(self, name):
        with open(os.path.join(self.folder, name), encoding="utf-8") as file:
            return json.load(file)

    def unpack(self, to):
        """(core, interpreter) in that folder"""
        paths = [os.path.join(to, name) for name in COPIED]
        for path, name in zip(paths, COPIED):
            subprocess.run(["zstd", "-q", "-d", "-f", "--sparse", os.path.join(self.folder, name + ".zst"), "-o", path], check=True)
        return paths


def entries():
    """Those of this kind of machine, oldest version first."""
    names = sorted(filter(NAME.match, os.listdir(SHELF))) if os.path.isdir(SHELF) else []
    found = [Entry(os.path.join(SHELF, name)) for name in names]
    return sorted((entry for entry in found if entry.about["machine"] == os.uname().machine), key=lambda entry: (entry.version, entry.name))
