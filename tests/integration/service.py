# SPDX-License-Identifier: Apache-2.0
"""A service of the test's own: its configuration, its folders, its socket."""
import json
import os
import resource
import shutil
import signal
import subprocess
import tempfile

import support

class Service:
    """Rules take only what `command` matches, so that tests do not profile each other's programs."""

    def __init__(self, command, more="", max_files=None):
        self.folder = tempfile.mkdtemp(prefix="sampled-service-", dir="/tmp")
        os.chmod(self.folder, 0o755)
        self.dumps = self.path("dumps")
        os.mkdir(self.dumps)
        self.socket = self.path("control.sock")
        self.config = self.path("sampled.conf")
        self.command = command
        self.process = None
        self.max_files = max_files
        self.write(more)

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, more="", rule="rule all"):
        with open(self.config, "w", encoding="utf-8") as file:
            file.write("[dump]\ndirectory = %s\nformat = jsonl\n[history]\nslice = 1s\n[budget]\ncpu = 100%%\n[%s]\ncommand = %s\n%s"
                       % (self.dumps, rule, self.command, more))

    def start(self):
        self.log = open(self.path("log"), "ab")
        self.process = subprocess.Popen([support.SAMPLED, "daemon", "--config", self.config, "--socket", self.socket, "-v"],
                                        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=self.log, preexec_fn=self.limit)
        support.wait_until(lambda: os.path.exists(self.socket) or self.process.poll() is not None, "the service is ready", said=self.said)
        if self.process.poll() is not None:
            raise AssertionError("the service ended with %d: %s" % (self.process.returncode, self.said()))

    def limit(self):
        if self.max_files:
            resource.setrlimit(resource.RLIMIT_NOFILE, (self.max_files, self.max_files))

    def said(self):
        with open(self.path("log"), encoding="utf-8", errors="replace") as file:
            return file.read()

    def signal(self, number):
        self.process.send_signal(number)

    def stop(self):
        """Its exit status."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=support.PATIENCE_S)

    def ctl(self, *words, user=None):
        return support.sampled("ctl", "--socket", self.socket, *words, user=user, cwd=self.folder)

    def json(self, *words, user=None):
        done = self.ctl(*words, "--json", user=user)
        if done.returncode:
            raise AssertionError(done.stderr)
        return json.loads(done.stdout)

    def listed(self, pid):
        found = [target for target in self.json("list") if target["pid"] == pid]
        return found[0] if found else None

    def is_sampled(self, pid, samples=1):
        """Whether so many were taken of it."""
        target = self.listed(pid)
        return target is not None and target["state"] == "sampled" and target["facts"]["samples"] >= samples

    def explain(self):
        return self.said() + self.ctl("list").stdout.decode()

    def wait_sampled(self, pid, samples=1):
        support.wait_until(lambda: self.is_sampled(pid, samples), "process %d is sampled" % pid, said=self.explain)

    def dumped(self):
        """The dumps that are there, as (name, lines)."""
        dumps = []
        for name in sorted(os.listdir(self.dumps)):
            if name.endswith(".jsonl"):
                with open(os.path.join(self.dumps, name), encoding="utf-8") as file:
                    dumps.append((name, [json.loads(line) for line in file]))
        return dumps

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_error):
        if self.process and self.process.poll() is None:
            self.process.kill()
        if self.process:
            self.process.wait()
        self.log.close()
        shutil.rmtree(self.folder, ignore_errors=True)

