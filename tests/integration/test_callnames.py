# SPDX-License-Identifier: Apache-2.0
"""By what names code calls where, as the sampler reads it from the bytecode in a process' memory (sampler/callnames.h), is what its source says."""
import collections
import json
import os
import subprocess
import tempfile
import unittest

import support

PROGRAM = os.path.join(support.TOP, "build", "tests", "tools", "show_callnames")
WORD = (1 << 64) - 1
CALL = 1


def hash_of(name):
    """callname_hash(): FNV-1a, finished as base/hash.h does."""
    value = 0xCBF29CE484222325
    for byte in name.encode():
        value = (value ^ byte) * 0x100000001B3 & WORD
    for factor in (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53):
        value = (value ^ value >> 33) * factor & WORD
    return (value ^ value >> 33) & 0xFFFFFFFF | 1


def wanted(code, name):
    """The hashes that it may have: a private one within a function of a method keeps the name of the class."""
    parts = code["function"].split(".") if name.startswith("__") and not name.endswith("__") else []
    return [[hash_of(name)]] + [[hash_of("_" + part.lstrip("_") + name)] for part in parts if "<locals>" in parts]


def shown(pid, addresses):
    """{address: [(first offset, last, kind, hash, hash of the last argument's, code of a generator expression), …]}"""
    done = subprocess.run([PROGRAM, str(pid)], input="".join("%x\n" % a for a in addresses), text=True, capture_output=True, check=True, timeout=120)
    found = collections.defaultdict(list)
    for line in done.stdout.splitlines():
        address, first, last, kind, _single, name, given, made = line.split()
        found[int(address, 16)].append((int(first), int(last), int(kind), int(name, 16), int(given, 16), int(made, 16)))
    return found


@support.each_python
class Callnames(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        subprocess.run(["make", "-s", "build/tests/tools/show_callnames"], cwd=support.TOP, check=True, stdout=subprocess.DEVNULL,
                       env={**os.environ, "MAKEFLAGS": ""})

    @support.on(support.each_version)
    def check_names(self, python):
        if python.version < (3, 11):
            self.skipTest("to 3.10 names are not looked at")
        root = python.root or ""
        with tempfile.NamedTemporaryFile("r", dir=root + "/tmp") as file:
            with support.Target(python, "callnames.py", file.name[len(root):]) as target:
                codes = [json.loads(line) for line in file]
                found = shown(target.pid, sorted({code["address"] for code in codes}))
        right, missing = collections.Counter(), collections.Counter()
        all_made = 0
        for code in codes:
            for offset, (kind, name) in code["named"].items():
                names = [n for first, last, k, n, _, _ in found[code["address"]] if k == kind and n and first <= int(offset) <= last]
                if names:
                    self.assertIn(names, wanted(code, name), "%s: %s at %s: %s" % (code["file"], code["function"], offset, name))
                    right[kind] += 1
                else:  # what a variable names, mostly
                    missing[kind] += 1
            for offset, name in code["given"].items():
                names = [n for first, last, _, _, n, _ in found[code["address"]] if n and first <= int(offset) <= last]
                if names:
                    self.assertIn(names, wanted(code, name), "%s: %s at %s: given %s" % (code["file"], code["function"], offset, name))
                (right if names else missing)["given"] += 1
            for first, last, kind, _, _, made in found[code["address"]]:
                if kind == CALL and made in code["expressions"]:
                    places = [offset for offset in code["made"] if first <= int(offset) <= last]
                    self.assertEqual([code["made"][offset] for offset in places], [made], "%s: %s at %d" % (code["file"], code["function"], first))
                    right["made"] += 1
            all_made += len(code["made"])
        self.assertGreater(right["given"] / (right["given"] + missing["given"]), 0.9)
        self.assertGreater(right["made"], 20)
        self.assertGreater(right["made"] / all_made, 0.9)
        self.assertGreater(right[1], 10000)
        self.assertGreater(right[2], 100)
        self.assertGreater(right[1] / (right[1] + missing[1]), 0.9)
        self.assertGreater(right[2] / (right[2] + missing[2]), 0.6)


if __name__ == "__main__":
    unittest.main()
