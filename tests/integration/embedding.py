# SPDX-License-Identifier: Apache-2.0
"""Programs in C with a Python in them, compiled here against the interpreters whose headers and library are on this machine."""
import functools
import os
import shutil
import subprocess
import tempfile
import unittest

import support

ASK = "import sysconfig as s; print(s.get_path('include'), s.get_config_var('LIBDIR'), s.get_config_var('INSTSONAME'), sep='\\n')"


@functools.lru_cache(maxsize=None)
def build(python, name):
    """The program made of tests/targets/NAME.c; skips where that needs what is not there."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    said = subprocess.run(python.argv + ["-c", ASK], stdout=subprocess.PIPE, check=True, cwd="/").stdout.decode()
    include, folder, library = said.split("\n")[:3]
    library = os.path.join(python.root + folder, library)
    if not compiler or not os.path.exists(os.path.join(python.root + include, "Python.h")):
        raise unittest.SkipTest("%s has no headers here, or there is no C compiler" % python)
    if not library.endswith(".so") and ".so." not in library or not os.path.exists(library):
        raise unittest.SkipTest("%s has no shared library here" % python)
    made = os.path.join(tempfile.mkdtemp(prefix="sampled-embedding-"), name)
    unittest.addModuleCleanup(shutil.rmtree, os.path.dirname(made), ignore_errors=True)
    command = [compiler, "-O1", "-o", made, os.path.join(support.TARGETS, name + ".c"), "-I" + python.root + include, library]
    command += ["-idirafter", python.root + "/usr/include"] if python.root else ["-Wl,-rpath," + folder]
    subprocess.run(command + ["-Wl,--allow-shlib-undefined"], check=True)
    return made


class Program(support.Target):
    """One of them, running."""

    def __init__(self, python, name, *args):
        made = build(python, name)
        inside = support.Python(python.argv[:-1], python.root, python.version, python.text, python.kind, python.real)
        super().__init__(inside, name, *args, files=[made])

    def command(self, script):
        return self.python.argv + [os.path.join(self.inside, script)]
