# SPDX-License-Identifier: Apache-2.0
"""The service: what it finds, what it keeps, what it writes, whom it answers."""
import contextlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import unittest

import cli
import support
from service import Service

LOSSES = ("lost_torn", "lost_unreadable", "lost_invalid", "lost_gone", "lost_dropped")


def of(target):
    """A rule's condition that only this program's processes meet."""
    return "*%s*" % target.inside


def check_sums(test, lines):
    """A dump accounts for each of its samples."""
    facts = lines[0]["facts"]
    test.assertEqual(facts["attempts"], facts["samples"] + sum(facts[key] for key in LOSSES))
    test.assertEqual(facts["samples"], facts["in_profile"] + facts["filtered"] + facts["omitted"] + facts["out_of_memory"])
    test.assertEqual(sum(line["self"].get("samples", 0) for line in lines if line["type"] == "node"), facts["in_profile"])


def functions(lines):
    return {line["function"] for line in lines if line["type"] == "frame"}


@support.needs_python
class Found(unittest.TestCase):
    def test_a_new_process(self):
        with support.Target(support.newest(), "parked.py") as first, Service("*sampled-test-*") as service:
            service.wait_sampled(first.pid)
            with support.Target(support.newest(), "parked.py") as second:
                support.wait_until(lambda: service.listed(second.pid) is not None, "it is listed")
                service.wait_sampled(second.pid)
            support.wait_until(lambda: service.listed(second.pid) is None, "it has gone")
            self.assertTrue(service.is_sampled(first.pid))

    def test_an_exec(self):
        """A shell that becomes a Python a while after it was looked at, and a Python that becomes another, with all that tells them apart by
        address at the same place (but where personality(2) is forbidden)."""
        with support.Target(support.pythons()[0], "parked.py") as other:
            with Service(of(other) + " *BECOMES*") as service:
                service.wait_sampled(other.pid)
                last = "BECOMES = 1; import time; time.sleep(1000)"
                first = "import os, sys, time; time.sleep(5); os.execv(sys.executable, [sys.executable, '-c', %r])" % last
                alike = ["setarch", "-R"] if subprocess.run(["setarch", "-R", "true"], stderr=subprocess.DEVNULL).returncode == 0 else []
                process = subprocess.Popen(["sh", "-c", 'sleep 2; exec "$@"', "sh", *alike, *support.newest().argv, "-c", first], start_new_session=True)
                try:
                    service.wait_sampled(process.pid)  # looked at after 1, 2, 4 s
                    support.wait_until(lambda: "execv" not in self.command_line(process.pid), "it is another program")
                    support.wait_until(lambda: service.said().count("profiling process %d " % process.pid) == 2, "it is found again", said=service.explain)
                    service.wait_sampled(process.pid)
                finally:
                    os.killpg(process.pid, signal.SIGKILL)
                    process.wait()

    def command_line(self, pid):
        with open("/proc/%d/cmdline" % pid, "rb") as file:
            return file.read().decode().replace("\0", " ")

    def test_rules(self):
        """The first rule that matches decides, and says at which rate."""
        python = support.newest()
        with support.Target(python, "busy.py", 1) as slow, support.Target(python, "busy.py", 1) as fast, support.Target(python, "busy.py", 1) as out:
            more = "rate = 10\n[rule fast]\ncommand = %s\nrate = 100\n[rule out]\ncommand = %s\naction = exclude\n" % (of(fast), of(out))
            with Service(of(slow), more) as service:
                service.wait_sampled(slow.pid)
                service.wait_sampled(fast.pid)
                rates = {target["pid"]: target for target in service.json("list")}
                self.assertEqual((rates[slow.pid]["rule"], rates[fast.pid]["rule"]), ("all", "fast"))
                self.assertNotEqual(rates.get(out.pid, {}).get("state"), "sampled")
                self.assertEqual((rates[slow.pid]["interval_asked_s"], rates[fast.pid]["interval_asked_s"]), (0.1, 0.01))

    def test_mode(self):
        """A rule for the CPU leaves out what is not on it."""
        with support.Target(support.newest(), "resting.py", 0.3, 0.3) as target:
            with Service(of(target), "mode = cpu\nrate = 100\n") as service:
                service.wait_sampled(target.pid, 1000)
                done = service.ctl("dump", target.pid, "-f", "jsonl", "-o", "-")
                lines = [json.loads(line) for line in done.stdout.splitlines()]
                check_sums(self, lines)
                self.assertGreater(lines[0]["facts"]["filtered"], lines[0]["facts"]["in_profile"])
                totals = [line["self"] for line in lines if line["type"] == "node"]
                self.assertEqual(sum(line.get("samples", 0) for line in totals if not line.get("runnable")), 0)


@support.needs_python
class Kept(unittest.TestCase):
    def test_signals(self):
        """USR1 dumps, HUP reloads, TERM ends."""
        with support.Target(support.newest(), "busy.py", 2) as target, Service(of(target)) as service:
            service.wait_sampled(target.pid, 100)
            service.signal(signal.SIGUSR1)
            support.wait_until(service.dumped, "there is a dump")
            (name, lines), = service.dumped()
            self.assertIn(str(target.pid), name)
            check_sums(self, lines)
            self.assertLessEqual({"descend", "leaf"}, functions(lines))
            before = service.listed(target.pid)["facts"]["samples"]
            service.write("rate = 100\n")
            service.signal(signal.SIGHUP)
            support.wait_until(lambda: service.json("status")["reloads"] == 1, "it has read its configuration")
            support.wait_until(lambda: (service.listed(target.pid) or {}).get("interval_asked_s") == 0.01, "the rate is another", said=service.said)
            done = service.ctl("dump", target.pid, "-f", "jsonl", "-o", "-")
            samples = sum(json.loads(line)["self"].get("samples", 0) for line in done.stdout.splitlines() if b'"node"' in line)
            self.assertGreaterEqual(samples, before)  # nothing was lost by reading it
            service.write("rate = much\n")
            service.signal(signal.SIGHUP)
            support.wait_until(lambda: service.json("status")["reloads_failed"] == 1, "it has refused its configuration")
            self.assertIn("sampled.conf:10: ", service.said())
            self.assertTrue(service.is_sampled(target.pid))
            self.assertEqual(service.stop(), 0, service.said())
            self.assertFalse(os.path.exists(service.socket))
            self.assertIn(target.state(), "RSD")

    def test_the_minute_before(self):
        """--last, --from and --to, of a process that is not there any more as well."""
        with support.Target(support.newest(), "busy.py", 1) as target, Service(of(target)) as service:
            service.wait_sampled(target.pid)
            support.wait_until(lambda: 0 < self.samples(service, target.pid, "--last", "2s") < self.samples(service, target.pid), "what is older is left out")
            whole = self.samples(service, target.pid)
            target.stop()
            support.wait_until(lambda: service.listed(target.pid) is None, "it has gone")
            self.assertGreaterEqual(self.samples(service, target.pid), whole)

    def samples(self, service, pid, *words):
        done = service.ctl("dump", pid, "-f", "jsonl", "-o", "-", *words)
        self.assertEqual(done.returncode, 0, done.stderr)
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        check_sums(self, lines)
        return lines[0]["samples"]

    def test_a_trigger(self):
        """A process that is busy for two seconds is dumped, once; one that waits is not."""
        python = support.newest()
        more = "[trigger hot]\ncpu = 5%\nfor = 2s\nevery = 10m\n"
        with support.Target(python, "resting.py", 0.001, 1000) as busy, support.Target(python, "parked.py") as parked:
            with Service(of(busy) + " " + of(parked), more) as service:
                service.wait_sampled(parked.pid)
                support.wait_until(service.dumped, "the trigger has fired", said=service.said)
                time.sleep(3)
                (name, lines), = service.dumped()
                self.assertIn(str(busy.pid), name)
                self.assertIn("hot", name)
                self.assertIn("work_hard", functions(lines))

    def test_too_few_descriptors(self):
        """Nothing is forgotten: what is not sampled is listed, with the reason, clients are answered all the time, and there is an end to it."""
        with contextlib.ExitStack() as stack:
            first = [stack.enter_context(support.Target(support.newest(), "busy.py", 2)) for _ in range(8)]
            service = stack.enter_context(Service(" ".join(map(of, first)), max_files=32))
            pids = {target.pid for target in first}
            for _ in range(3):
                listed = {}

                def all_are_listed():
                    listed.clear()
                    listed.update((target["pid"], target) for target in service.json("list") if target["state"] in ("sampled", "failed"))
                    return set(listed) >= pids

                support.wait_until(all_are_listed, "all are listed", said=service.explain)
                sampled = {pid for pid in pids if listed[pid]["state"] == "sampled"}
                starved = {pid for pid in pids if listed[pid]["state"] == "failed"}
                self.assertTrue(sampled and starved and sampled | starved == pids, listed)
                for pid in starved:
                    self.assertIn("too few file descriptors", listed[pid]["why"])
                text = service.ctl("status").stdout.decode()
                # There may be other Pythons on this machine, which cannot be told from these without a look at them.
                said = re.search(r"(?m)^not sampled +(\d+): too few file descriptors are left to look at it \(raise LimitNOFILE=", text)
                self.assertTrue(said and int(said.group(1)) >= len(starved), text)
                self.assertGreaterEqual(service.json("status")["targets"]["failed"], len(starved))
                self.assertRegex(text, r"(?m)^descriptors +\d+ of 32$")
                self.assertGreaterEqual(service.json("status")["descriptors"]["starved"], len(starved))
                time.sleep(1)
            for target in first:
                if target.pid in sampled:
                    target.stop()
            support.wait_until(lambda: any(service.is_sampled(pid) for pid in starved), "others have their turn", said=service.explain)

    def test_a_socket_in_a_folder_that_is_not_there(self):
        """As /run/sampled, which the unit makes."""
        with tempfile.TemporaryDirectory() as folder:
            config = os.path.join(folder, "sampled.conf")
            with open(config, "w") as file:
                file.write("[dump]\ndirectory = %s\n" % folder)
            done = support.sampled("daemon", "--config", config, "--socket", folder + "/none/control.sock")
        self.assertEqual(done.returncode, 1)
        self.assertEqual(done.stderr.decode(), "sampled: cannot start: %s/none/control.sock: No such file or directory (mkdir %s/none, or name another "
                         "place by --socket)\n" % (folder, folder))

    def test_a_folder_of_dumps_that_is_not_there(self):
        """As /var/lib/sampled, which the package makes."""
        with tempfile.TemporaryDirectory() as folder:
            config = os.path.join(folder, "sampled.conf")
            with open(config, "w") as file:
                file.write("[dump]\ndirectory = %s/none\n" % folder)
            done = support.sampled("daemon", "--config", config, "--socket", folder + "/control.sock")
        self.assertEqual(done.returncode, 1)
        self.assertEqual(done.stderr.decode(), "sampled: cannot start: %s/none: No such file or directory (mkdir -p %s/none, or name another with "
                         "directory = DIR in [dump])\n" % (folder, folder))

    def test_a_reload_keeps_what_triggers_did(self):
        """What they counted, and that they fired not long ago."""
        more = "[trigger hot]\ncpu = 1%\nfor = 1s\nevery = 10m\n"
        with support.Target(support.newest(), "resting.py", 0.001, 1000) as busy, Service(of(busy), more) as service:
            support.wait_until(service.dumped, "the trigger has fired", said=service.said)
            service.write("[trigger other]\ncpu = 90%\nfor = 1h\n" + more)
            self.assertEqual(service.ctl("reload").returncode, 0)
            time.sleep(4)
            fired = {trigger["name"]: trigger["fired"] for trigger in service.json("status")["triggers"]}
            self.assertEqual((fired, len(service.dumped())), ({"other": 0, "hot": 1}, 1))

    def test_the_budget(self):
        """What costs too much is slowed down, and says so."""
        with support.Target(support.newest(), "busy.py", 8) as target:
            with Service(of(target), "rate = 1000\n[budget]\ncpu = 0.1%\n") as service:
                service.wait_sampled(target.pid)
                support.wait_until(lambda: service.json("status")["cpu"]["slowdown"] > 1, "it slows down")
                support.wait_until(lambda: "budget" in service.said(), "it says so")
                support.wait_until(lambda: self.ticks_saved(service, target.pid) > 0, "ticks are saved")

    def ticks_saved(self, service, pid):
        done = service.ctl("dump", pid, "-f", "jsonl", "-o", "-")
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        check_sums(self, lines)
        return lines[0]["facts"]["ticks_saved"]


@support.needs_python
class Spooled(unittest.TestCase):
    def test_each_sample_once(self):
        """What is spooled of a process, one that has ended too, adds up to what a dump of it says."""
        for end in (False, True):
            with self.subTest(end=end), support.Target(support.newest(), "busy.py", 1) as target:
                service = Service(of(target))
                spool = service.path("spool")
                os.mkdir(spool)
                service.write("[push]\nspool = %s\ninterval = 1s\n" % spool)
                with service:
                    service.wait_sampled(target.pid, 200)
                    if end:
                        target.stop()
                        support.wait_until(lambda: service.listed(target.pid) is None, "it has gone")
                        time.sleep(3)
                        samples = json.loads(service.ctl("dump", target.pid, "-f", "jsonl", "-o", "-").stdout.splitlines()[0])["samples"]
                    self.assertEqual(service.stop(), 0)
                    spooled = sum(self.spooled(os.path.join(spool, name)) for name in os.listdir(spool))
                    if end:
                        self.assertEqual(spooled, samples)
                    else:
                        self.assertGreater(spooled, 0)

    def test_a_spool_that_a_reload_names(self):
        """What was sampled before is not sent."""
        with support.Target(support.newest(), "busy.py", 1) as target, Service(of(target)) as service:
            spool = service.path("spool")
            os.mkdir(spool)
            service.wait_sampled(target.pid)
            time.sleep(3)
            service.write("[push]\nspool = %s\ninterval = 1s\n" % spool)
            begun_ns = time.time_ns()
            self.assertEqual(service.ctl("reload").returncode, 0)
            support.wait_until(lambda: any(name.endswith(".spool") for name in os.listdir(spool)), "it is spooled")
            with open(os.path.join(spool, min(os.listdir(spool))), "rb") as file:
                file.readline()
                item = json.loads(file.readline())
            self.assertGreater(int(item["from_ns"]), begun_ns - 2 * 10**9)  # a slice, which may have begun before

    def spooled(self, path):
        """The samples in a file of the spool: each item a line of JSON, and a profile behind it."""
        with open(path, "rb") as file:
            data = file.read()
        head, _, data = data.partition(b"\n")
        self.assertEqual(head, b"sampled-spool 1")
        samples = 0
        while data:
            line, _, data = data.partition(b"\n")
            item = json.loads(line)
            self.assertEqual(item["labels"]["rule"], "all")
            with open(path + ".pb.gz", "wb") as file:
                file.write(data[: item["bytes"]])
            data = data[item["bytes"]:]
            done = support.sampled("convert", path + ".pb.gz", "-f", "jsonl", "-o", "-")
            self.assertEqual(done.returncode, 0, done.stderr)
            samples += json.loads(done.stdout.splitlines()[0])["samples"]
        return samples


@support.needs_python
class Asked(unittest.TestCase):
    def test_a_file_that_only_root_may_read(self):
        """Code that claims to come from it gets none of its lines into a dump."""
        with support.Target(support.newest(), "busy.py", 1) as target:
            secret = target.path("secret.py")
            with open(secret, "w") as file:
                file.write("# THE SECRET\n" * 40)
            os.chmod(secret, 0o600)
            program = "code = compile('def claims():\\n while True: sum(range(100))\\nclaims()', %r, 'exec'); exec(code)" % secret[len(target.python.root):]
            process = subprocess.Popen([*target.python.argv, "-c", program])
            try:
                with Service("*claims*") as service:
                    service.wait_sampled(process.pid)
                    for format_ in ("flamegraph", "heatmap", "text", "speedscope", "jsonl"):
                        done = service.ctl("dump", process.pid, "-f", format_, "-o", "-")
                        self.assertEqual(done.returncode, 0, done.stderr)
                        self.assertIn(b"claims", done.stdout)
                        self.assertNotIn(b"THE SECRET", done.stdout)
            finally:
                process.kill()
                process.wait()

    def test_users_see_their_own(self):
        support.need_root(self)
        python = cli.python_for_all()
        with support.Target(python, "parked.py", user=cli.NOBODY) as own, support.Target(python, "parked.py") as roots:
            with Service(of(own) + " " + of(roots)) as service:
                service.wait_sampled(own.pid)
                service.wait_sampled(roots.pid)
                self.assertEqual([target["pid"] for target in service.json("list", user=cli.NOBODY)], [own.pid])
                done = service.ctl("dump", own.pid, "-f", "collapsed", "-o", "-", user=cli.NOBODY)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertIn(b"<module>", done.stdout)
                for words in (["dump", roots.pid, "-o", "-"], ["dump", "-o", "-"], ["detach", roots.pid], ["attach", roots.pid], ["reload"]):
                    done = service.ctl(*words, user=cli.NOBODY)
                    self.assertEqual((done.returncode, done.stdout), (cli.NOT_PERMITTED, b""), words)
                    self.assertRegex(done.stderr, b"^sampled: .*not permitted")
                self.assertTrue(service.is_sampled(roots.pid))

    def test_users_see_their_own_that_are_not_profiled(self):
        support.need_root(self)
        python = cli.python_for_all()
        with support.Target(python, "parked.py", user=cli.NOBODY) as own, support.Target(python, "parked.py") as roots:
            service = Service(of(own) + " " + of(roots))
            service.write("action = exclude\n[rule rest]\ncommand = nothing-like-it\n")
            with service:
                support.wait_until(lambda: service.listed(own.pid) and service.listed(roots.pid), "they are listed")
                listed = service.json("list", user=cli.NOBODY)
                self.assertEqual([(target["pid"], target["state"]) for target in listed], [(own.pid, "excluded")])
                self.assertTrue(listed[0]["name"])

    def test_detach_and_attach(self):
        with support.Target(support.newest(), "busy.py", 1) as target, Service("nothing-like-it") as service:
            self.assertFalse(service.is_sampled(target.pid))
            self.assertEqual(service.ctl("attach", target.pid).returncode, 0)
            service.wait_sampled(target.pid)
            self.assertEqual(service.ctl("detach", target.pid).returncode, 0)
            support.wait_until(lambda: service.listed(target.pid)["state"] == "excluded", "it is let go")
            done = service.ctl("attach", os.getppid() if os.getppid() > 1 else 1)
            self.assertIn(done.returncode, (0, cli.NO_PYTHON))

    def test_a_file_is_whole_and_the_clients_own(self):
        with support.Target(support.newest(), "busy.py", 1) as target, Service(of(target)) as service:
            service.wait_sampled(target.pid)
            done = service.ctl("dump", "--all", "-o", "all.html")
            self.assertEqual((done.returncode, done.stdout), (0, b"all.html\n"), done.stderr)
            with open(service.path("all.html"), "rb") as file:
                self.assertIn(b"descend", file.read())
            done = service.ctl("dump", 999999999, "-o", "none.html")
            self.assertNotEqual(done.returncode, 0)
            self.assertFalse(os.path.exists(service.path("none.html")))

    def test_a_passed_pipe(self):
        """The service moves a dump into a pipe itself: its filter of system calls lets it."""
        support.need_root(self)
        with support.Target(support.newest(), "busy.py", 1) as target, Service(of(target)) as service:
            service.wait_sampled(target.pid)
            read_end, write_end = os.pipe()
            words = b"dump\0--all\0--format\0jsonl\0"
            with socket.socket(socket.AF_UNIX) as client, os.fdopen(read_end, "rb") as reader:
                client.connect(service.socket)
                socket.send_fds(client, [len(words).to_bytes(4, "little") + words], [write_end])
                os.close(write_end)
                self.assertIn(b"descend", reader.read())
                self.assertEqual(client.recv(4096, socket.MSG_WAITALL), b"x\1\0\0\0\0")

    def test_metrics(self):
        with support.Target(support.newest(), "busy.py", 1) as target, Service(of(target)) as service:
            service.wait_sampled(target.pid)
            if not shutil.which("curl"):
                self.skipTest("curl is not installed")
            done = subprocess.run(["curl", "-sS", "--unix-socket", service.socket, "http://localhost/metrics"], stdout=subprocess.PIPE, check=True)
            values = dict(line.rsplit(" ", 1) for line in done.stdout.decode().splitlines() if not line.startswith("#"))
            self.assertGreater(float(values["sampled_samples_total"]), 0)
            self.assertEqual(float(values['sampled_targets{state="sampled"}']), 1)


if __name__ == "__main__":
    unittest.main()
