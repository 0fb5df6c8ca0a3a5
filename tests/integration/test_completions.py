# SPDX-License-Identifier: Apache-2.0
"""Completions in the shells themselves."""
import os
import pty
import re
import select
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

import support

FOLDER = os.path.join(support.TOP, "packaging", "completions")
ENV = dict(os.environ, PATH=os.path.dirname(support.SAMPLED) + ":" + os.environ["PATH"])

# A line, and one word that completes its last.
WANTED = [
    ("sampled att", "attach"),
    ("sampled attach --subp", "--subprocesses"),
    ("sampled convert x -f spee", "speedscope"),
    ("sampled attach --mode exc", "exception"),
    ("sampled ctl rel", "reload"),
    ("sampled help doc", "doctor"),
]


class Completions:
    """complete(line) gives the words that the shell offers."""

    def test_known_words(self):
        for line, word in WANTED:
            with self.subTest(line=line):
                self.assertEqual(self.complete(line), [word])

    def test_every_option_of_the_help(self):
        for command in ("attach", "dump", "convert", "ctl"):
            text = support.sampled("help", command).stdout.decode()
            wanted = {option for line in text.splitlines() if re.match(r" +(-\w, )?--", line) for option in re.findall(r"--[a-z][a-z-]+", line.split("  [")[0])}
            self.assertGreater(len(wanted), 3)
            self.assertLessEqual(wanted, set(self.complete("sampled %s --" % command)))

    @support.needs_python
    def test_pids_of_pythons(self):
        with subprocess.Popen([sys.executable, "-c", "import time; print(flush=True); time.sleep(600)"], stdout=subprocess.PIPE) as process:
            process.stdout.readline()
            try:
                self.assertIn(str(process.pid), self.complete("sampled attach "))
                self.assertEqual(self.complete("sampled dump %d" % process.pid), [str(process.pid)])
            finally:
                process.kill()


@unittest.skipUnless(shutil.which("bash"), "bash is not installed")
class Bash(Completions, unittest.TestCase):
    def complete(self, line):
        script = 'source "$0/sampled.bash"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _sampled; printf "%s\\n" "${COMPREPLY[@]}"'
        done = subprocess.run(["bash", "-c", script, FOLDER, *line.split(" ")], stdout=subprocess.PIPE, env=ENV, check=True)
        return done.stdout.decode().split()


@unittest.skipUnless(shutil.which("fish"), "fish is not installed")
class Fish(Completions, unittest.TestCase):
    def complete(self, line):
        done = subprocess.run(["fish", "--no-config", "-c", "source $argv[1]/sampled.fish; complete -C $argv[2]", FOLDER, line],
                              stdout=subprocess.PIPE, env=ENV, check=True)
        return [row.split("\t")[0] for row in done.stdout.decode().splitlines()]


@unittest.skipUnless(shutil.which("zsh"), "zsh is not installed")
class Zsh(Completions, unittest.TestCase):
    """In an interactive zsh, whose Tab is asked to print the words."""

    SETUP = r"""
PS1=; fpath=($COMPLETIONS $fpath); autoload -Uz compinit; compinit -u -D
compadd() { local -a all; builtin compadd -O all "$@"; print -rn -- "<<${(j: :)all}>>" }
zle -C words complete-word _words_of; _words_of() { _main_complete; print -rn -- "<<END>>" }; bindkey '^I' words
print READY
"""

    def complete(self, line):
        with tempfile.NamedTemporaryFile("w") as setup:
            setup.write(self.SETUP)
            setup.flush()
            pid, terminal = pty.fork()
            if pid == 0:
                os.execvpe("zsh", ["zsh", "-f", "-i"], dict(ENV, COMPLETIONS=FOLDER, TERM="dumb"))
            try:
                os.write(terminal, b"source %s\n" % setup.name.encode())
                self.read_until(terminal, "READY\r\n")
                os.write(terminal, line.encode() + b"\t")
                text = self.read_until(terminal, "<<END>>")
            finally:
                os.close(terminal)
                os.waitpid(pid, 0)
        return [word for words in re.findall(r"<<(.*?)>>", text, re.S) if words != "END" for word in words.split()]

    def read_until(self, terminal, mark):
        data, deadline = b"", time.monotonic() + 60
        while mark.encode() not in data:
            if not select.select([terminal], [], [], max(0, deadline - time.monotonic()))[0]:
                self.fail("zsh did not say %r: %r" % (mark, data))
            data += os.read(terminal, 65536)
        return data.decode("utf-8", "replace")


if __name__ == "__main__":
    unittest.main()
