# SPDX-License-Identifier: Apache-2.0
"""What a process was started with does not leave the host: neither arguments, unless the configuration says so, nor what looks secret, ever."""
import os
import re
import signal
import tempfile
import unittest
import zlib

import cli
import support
from pushing import Server
from service import Service

PROGRAM = """import sys, threading
def innermost():
    while True:
        sum(range(1000))
thread = threading.Thread(target=innermost, name="redis://:%s%scache %s" % (sys.argv[2], chr(64), sys.argv[4]))
thread.start()
print("READY {}", flush=True)
"""
ARGUMENTS = ("--password", "hunter2-next", "--api-key=hunter2-own", "DB_TOKEN=hunter2-var", "positional-word")
SECRET, ARGUMENT = b"hunter2", b"positional-word"


def unpacked(content):
    """The bytes, and those of each gzip member in them."""
    parts = [content]
    for found in re.finditer(b"\x1f\x8b\x08", content):
        try:
            parts.append(zlib.decompressobj(31).decompress(content[found.start():]))
        except zlib.error:
            pass  # that was none
    return b"\n".join(parts)


def read(*path):
    with open(os.path.join(*path), "rb") as file:
        return unpacked(file.read())


@support.needs_python
class Secrets(cli.Folder):
    def target(self):
        folder = tempfile.mkdtemp()
        self.addCleanup(support.shutil.rmtree, folder)
        with open(os.path.join(folder, "arguments.py"), "w") as file:
            file.write(PROGRAM)
        return support.Target(support.newest(), "arguments.py", *ARGUMENTS, files=[os.path.join(folder, "arguments.py")])

    def service_says(self, service, pid):
        """By kind, all that the service writes, sends and prints."""
        said = {kind: unpacked(service.ctl("dump", pid, "-f", kind, "-o", "-").stdout)
                for kind in ("collapsed", "text", "pprof", "otlp", "jsonl", "callgrind", "flamegraph", "dask")}
        service.signal(signal.SIGUSR1)
        support.wait_until(service.dumped, "a dump", 20, service.said)
        support.wait_until(lambda: os.listdir(service.path("spool")), "a file in the spool", 20, service.said)
        for folder in (service.dumps, service.path("spool")):
            said[folder] = b"".join(name.encode() + read(folder, name) for name in os.listdir(folder) if not name.endswith(".tmp"))
        for words in (("list",), ("list", "--json"), ("status",), ("status", "--json")):
            done = service.ctl(*words)
            self.assertEqual(done.returncode, 0, done.stderr)
            said[" ".join(words)] = done.stdout
        said["journal"] = service.said().encode()
        return said

    def test_the_service(self):
        with self.target() as target:
            service = Service("*%s*" % target.inside)
            os.mkdir(service.path("spool"))
            more = "[push]\nspool = %s\ninterval = 1s\n" % service.path("spool")
            service.write(more)
            with service:
                service.wait_sampled(target.pid)
                support.wait_until(lambda: b"innermost" in service.ctl("dump", target.pid, "-f", "text", "-o", "-").stdout, "its thread", 20)
                for kind, said in self.service_says(service, target.pid).items():
                    self.assertFalse(SECRET in said, kind)
                    self.assertFalse(ARGUMENT in said, kind)
                dump = service.ctl("dump", target.pid, "-f", "jsonl", "-o", "-").stdout
                self.assertIn(b"arguments.py", dump, "program and script are there")
                service.write(more + "[service]\ncommand-line = full\n")
                self.assertEqual(service.ctl("reload").returncode, 0)
                support.wait_until(lambda: ARGUMENT in service.ctl("dump", target.pid, "-f", "jsonl", "-o", "-").stdout,
                                   "the arguments, as the configuration says now", 20, service.explain)
                for kind, said in self.service_says(service, target.pid).items():
                    self.assertFalse(SECRET in said, kind)
                self.assertIn(b"--password ***", service.ctl("dump", target.pid, "-f", "jsonl", "-o", "-").stdout)

    def test_attach_and_dump(self):
        """What a user writes for himself has the arguments, masked."""
        kinds = ("flamegraph", "collapsed", "text", "pprof", "speedscope", "firefox", "chrome", "svg", "callgrind", "dask", "jsonl", "otlp", "heatmap")
        with self.target() as target:
            outputs = [word for kind in kinds for word in ("-f", kind, "-o", self.path(kind))]
            done = self.sampled("attach", target.pid, "-d", "1", *outputs, "--record", self.path("recording.sampled"))
            self.assertEqual(done.returncode, 0, done.stderr)
            printed = [done.stdout + done.stderr, self.sampled("dump", target.pid).stdout, self.sampled("dump", "--json", target.pid).stdout]
        for text in printed:
            self.assertNotIn(SECRET, text)
        self.assertIn(ARGUMENT, printed[1])
        self.assertIn(b"redis://:***@cache DB_TOKEN=***", printed[1], "the thread's name")
        for name in os.listdir(self.folder):
            self.assertFalse(SECRET in read(self.folder, name), name)
        self.assertTrue(ARGUMENT in read(self.folder, "jsonl"))

    def test_a_push(self):
        """What attach sends has no arguments."""
        with self.target() as target, Server() as server:
            done = self.sampled("attach", target.pid, "-d", "1", "-q", "--push", server.url, "--push-type", "otlp")
        self.assertEqual((done.returncode, done.stderr), (0, b""))
        sent = unpacked(server.requests[0][2])
        self.assertTrue(b"arguments.py" in sent)
        self.assertFalse(SECRET in sent or ARGUMENT in sent)


if __name__ == "__main__":
    unittest.main()
