# SPDX-License-Identifier: Apache-2.0
"""Pushing: what each kind of server is sent, and what becomes of it when servers misbehave. The servers here are small and hostile; real ones are in
test_push_servers.py."""
import base64
import contextlib
import email.utils
import gzip
import json
import os
import shutil
import signal
import socket
import subprocess
import threading
import time
import unittest
import unittest.mock
import urllib.error
import urllib.request

import cli
import profiles
import pushing
import support
from pushing import Server

OTLPREAD = os.path.join(profiles.CONSUMERS, "otlpread", "otlpread")
PROMTOOL = os.path.join(support.CACHE, "consumers", "prometheus", "promtool")
COUNTS = ("samples/count", "wall/nanoseconds")


class Push(pushing.Pushing):
    def setUp(self):
        super().setUp()
        self.packed = self.read(profiles.make("one", "pprof", self.path("one.pb.gz")))

    @staticmethod
    def read(path):
        with open(path, "rb") as file:
            return file.read()

    def put(self, count=1, number=0):
        return pushing.write_spool(self.spool, [self.packed] * count, number)


class Bodies(Push):
    def sent(self, kind):
        self.put(2)
        with Server() as server:
            done = self.once(server.url + "/prefix/", kind)
        self.assertEqual((done.returncode, done.stderr, done.stdout), (0, b"", b""))
        self.assertEqual(self.left(), [])
        self.assertEqual(len(server.requests), 2)
        return server.requests[0]

    def test_pyroscope(self):
        path, headers, body = self.sent("pyroscope")
        asked = pushing.query(path)
        self.assertTrue(path.startswith("/prefix/ingest?"), path)
        self.assertEqual(asked["name"], "web shop{host=h1,unit=a_b.service}")
        self.assertEqual((asked["format"], asked["spyName"]), ("pprof", "sampled"))
        self.assertTrue(0 < int(asked["until"]) - int(asked["from"]) <= 2, asked)
        self.assertEqual(body, self.packed)
        self.assertNotIn("Expect", headers)

    def test_pyroscope_push(self):
        path, headers, body = self.sent("pyroscope-push")
        self.assertEqual((path, headers["Content-Type"]), ("/prefix/push.v1.PusherService/Push", "application/json"))
        (series,) = json.loads(body)["series"]
        labels = {label["name"]: label["value"] for label in series["labels"]}
        self.assertEqual(labels, {"__name__": "process_cpu", "service_name": "web shop", "host": "h1", "unit": "a,b.service"})
        self.assertEqual(base64.b64decode(series["samples"][0]["rawProfile"]), self.packed)

    def test_parca(self):
        path, _headers, body = self.sent("parca")
        self.assertEqual(path, "/prefix/api/profiles/writeraw")
        (series,) = json.loads(body)["series"]
        self.assertEqual([label["name"] for label in series["labels"]["labels"]], ["__name__", "service_name", "host", "unit"])
        self.assertEqual(base64.b64decode(series["samples"][0]["rawProfile"]), self.packed)

    @profiles.needs(profiles.PYTHON, "opentelemetry-proto for Python")
    def test_otlp(self):
        path, headers, body = self.sent("otlp")
        self.assertEqual((path, headers["Content-Type"], headers["Content-Encoding"]),
                         ("/prefix/v1development/profiles", "application/x-protobuf", "gzip"))
        with open(self.path("sent.otlp"), "wb") as file:
            file.write(gzip.decompress(body))
        found = profiles.strict("otlp", self.path("sent.otlp"))
        self.assertEqual(tuple(found["sums"][name] for name in COUNTS), profiles.truth("one", self.folder))
        resource = found["resources"][0]
        self.assertEqual((resource["service.name"], resource["host.name"], resource["unit"]), ("web shop", "h1", "a,b.service"))
        if os.path.exists(OTLPREAD):  # a Collector's own decoder and exporter
            text = profiles.run(OTLPREAD, self.path("sent.otlp")).decode()
            self.assertIn("service.name: Str(web shop)", text)

    def test_labels_of_a_destination(self):
        self.put()
        with Server() as server:
            config = self.config(("a", "pyroscope", server.url, "tenant = t1", "label.host =", "label.region = eu{1}"))
            done = self.sampled("push", "--once", "--config", config)
        self.assertEqual(done.returncode, 0, done.stderr)
        path, headers, _body = server.requests[0]
        self.assertEqual(pushing.query(path)["name"], "web shop{unit=a_b.service,region=eu_1_}")
        self.assertEqual(headers["X-Scope-OrgID"], "t1")


class Answers(Push):
    def test_what_is_tried_again(self):
        for does in (429, 502, 503, 504, (429, {"Retry-After": "1"}, b"slow"), "a date", "reset"):
            with self.subTest(does):
                self.put()
                if does == "a date":  # whole seconds: two to three from now
                    does = (503, {"Retry-After": email.utils.formatdate(time.time() + 3, usegmt=True)}, b"")
                began = time.monotonic()
                with Server(does, 200) as server:
                    done = self.once(server.url)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertEqual(len(server.requests), 2)
                self.assertIn(b"trying again", done.stderr)
                self.assertEqual(self.left(), [])
                if isinstance(does, tuple):
                    self.assertGreater(time.monotonic() - began, 0.9)

    def test_what_is_refused(self):
        """It is out of the others' way, and kept with the server's words."""
        for does, why in ((400, b"400"), ((413, {}, b"no \x1b[31mroom"), b"413: no "), (415, b"415"), ((422, {}, b"it has a token=abc"), b"token=***")):
            with self.subTest(does):
                self.put(4)
                before = set(self.refused()[0])
                with Server(does, does, does, 200) as server:
                    done = self.once(server.url)
                self.assertEqual(done.returncode, cli.FAILED)
                self.assertIn(why, done.stderr)
                self.assertNotIn(b"\x1b", done.stderr)
                self.assertEqual(done.stderr.count(b"a profile was refused"), 2, "a line a minute, and at the end what was withheld")
                self.assertIn(b"(and 1 more of the like)", done.stderr)
                self.assertEqual(len(server.requests), 4, "the others are sent")
                self.assertEqual(self.left(), [])
                words, packed = self.refused()
                new = set(words) - before
                self.assertEqual((len(new), set(packed)), (3, set(words)))
                for name in new:
                    self.assertEqual(packed[name], self.packed)
                    self.assertIn(why, words[name])
                    self.assertIn(b"destination url, type pyroscope, at %s\n" % server.url.encode(), words[name])
                    self.assertIn(b"service_name = web shop\n", words[name])
                    self.assertNotIn(b"\x1b", words[name])

    def test_what_is_kept_of_the_refused_is_bounded(self):
        with Server(400) as server:
            self.put(12)
            kept = len(self.packed) * 5
            done = self.sampled("push", "--once", "--config", self.config(("a", "pyroscope", server.url), more="refused-size = %d" % kept))
            self.assertEqual((done.returncode, len(server.requests)), (cli.FAILED, 12))
            words, packed = self.refused()
            self.assertLessEqual(sum(map(len, words.values())) + sum(map(len, packed.values())), kept)
            self.assertGreaterEqual(len(packed), 2)
            self.assertEqual(min(packed), min(set(packed) & set(words)), "the oldest go")
            shutil.rmtree(os.path.join(self.spool, "refused"))
            self.put(1)
            self.sampled("push", "--once", "--config", self.config(("a", "pyroscope", server.url), more="refused-size = 0"))
            self.assertEqual(os.listdir(self.spool), [])

    def test_what_somebody_has_to_mend(self):
        """Nobody waits for it, and nothing is lost."""
        for does, why in ((401, b"401"), (403, b"403"), (404, b"404"), (410, b"410"),
                          ((301, {"Location": "http://127.0.0.1:9/x"}, b""), b"leads to http://127.0.0.1:9/x and is not followed"),
                          ((307, {"Location": "file:///etc/passwd"}, b""), b"not followed")):
            with self.subTest(does):
                self.put(3)
                with Server(does) as server:
                    done = self.once(server.url)
                self.assertEqual((done.returncode, len(server.requests), len(self.left())), (cli.FAILED, 1, 1), done.stderr)
                self.assertIn(why, done.stderr)
                self.assertIn(b"gave up", done.stderr)
                with Server() as server:
                    self.assertEqual(self.once(server.url).returncode, 0)
                self.assertEqual((len(server.requests), self.left()), (3, []))

    def test_any_status(self):
        """From 300 to 599: what says of the profile itself that it will not do is refused, all else is sent when it passes."""
        bodies, seen, received = {400, 413, 415, 422}, set(), set()

        def answer(path):
            status = int(path.split("/")[1])
            if status in seen:
                received.add(status)
                return 200
            seen.add(status)
            return status

        with Server(answer) as server, contextlib.ExitStack() as senders:
            statuses, spools = list(range(300, 600)), []
            while statuses:
                some, statuses = statuses[:16], statuses[16:]
                self.spool = self.path("spool-%d" % some[0])
                os.mkdir(self.spool)
                self.put(number=some[0])
                spools.append(self.spool)
                config = self.config(*[("s%d" % status, "pyroscope", "%s/%d" % (server.url, status)) for status in some], name="push-%d.conf" % some[0])
                senders.enter_context(self.sender(config))
            support.wait_until(lambda: all(os.listdir(spool) in ([], ["refused"]) for spool in spools), "all are through", 120)
        self.assertEqual(seen, set(range(300, 600)))
        self.assertEqual(received, seen - bodies)
        words = []
        for self.spool in spools:
            words += self.refused()[0].values()
        self.assertEqual(sorted(int(text.partition(b"it answered ")[2][:3]) for text in words), sorted(bodies))

    def test_a_profile_that_a_server_stumbles_over(self):
        """It lets the others pass, and is sent when that is mended."""
        self.put(3, number=0)
        self.put(1, number=1)
        with Server(500, 500, 500, 200, 200, 200, 500, 200) as server:
            with self.sender(self.config(("a", "pyroscope", server.url))):
                support.wait_until(lambda: not self.left(), "all is sent", 90)
        self.assertEqual(len(server.requests), 8, "three times the first, then the others, and the first again")
        self.assertIn("it answered 500", self.errors)
        self.assertIn("it takes profiles again", self.errors)

    def test_one_that_only_one_destination_stumbles_over(self):
        self.put(2)
        with Server(500, 500, 500, 200) as server, Server() as other:
            with self.sender(self.config(("a", "pyroscope", server.url), ("b", "pyroscope", other.url))):
                support.wait_until(lambda: not self.left(), "all is sent", 90)
        self.assertEqual((len(server.requests), len(other.requests)), (5, 2), "each once to who took it")

    def test_nothing_is_lost_by_misbehaviour(self):
        for number in range(6):
            self.put(number=number)
        script = ["reset", 403, "garbage", 302, 200]
        with Server(*script) as server:
            with self.sender(self.config(("a", "pyroscope", server.url, "timeout = 300ms"))):
                support.wait_until(lambda: not self.left(), "all is sent", 120)
        self.assertEqual(len(server.requests), len(script) - 1 + 6)
        for why in ("reset", "it answered 403", "it answered 302", "HTTP/0.9"):
            self.assertIn(why, self.errors, "each kind has its own silence, and what was withheld is said at the end")

    def test_an_answer_without_end(self):
        self.put()
        with Server("endless") as server:
            done = self.once(server.url)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_a_rejection_within_success(self):
        self.put()
        with Server((200, {}, b"\x0a\x06\x08\x03\x12\x02no")) as server:
            done = self.once(server.url, "otlp")
        self.assertEqual(done.returncode, cli.FAILED)
        self.assertIn(b"refused 3 profiles", done.stderr)

    def test_a_server_that_hangs(self):
        self.put()
        with Server("hang", 200) as server:
            with self.sender(self.config(("a", "pyroscope", server.url, "timeout = 500ms"))):
                support.wait_until(lambda: not self.left(), "it is sent when the server is back")
        with Server("hang") as server:
            self.put()
            with self.sender(self.config(("a", "pyroscope", server.url))):
                support.wait_until(lambda: server.requests, "a request")
        self.assertEqual(len(self.left()), 1, "SIGTERM keeps what was not sent")

    def test_files_that_make_no_sense(self):
        self.put(number=1)
        with open(os.path.join(self.spool, "20200101T000000Z-000000.spool"), "wb") as file:
            file.write(b"sampled-spool 1\n{\"labels\":[]}\n")
        with open(os.path.join(self.spool, "unrelated"), "wb"):
            pass
        with Server() as server:
            done = self.once(server.url)
        self.assertEqual(done.returncode, cli.FAILED)
        self.assertIn(b"20200101T000000Z-000000.spool is left out and removed: it is malformed", done.stderr)
        self.assertEqual((len(server.requests), self.left()), (1, ["unrelated"]))


class Destinations(Push):
    def test_one_that_is_down_holds_nobody_up(self):
        self.put(2, number=0)
        self.put(1, number=1)
        down = "http://127.0.0.1:%d" % pushing.closed_port()
        with Server() as server:
            config = self.config(("up", "parca", server.url), ("down", "pyroscope", down))
            with self.sender(config):
                support.wait_until(lambda: len(server.requests) == 3, "all is sent to the one")
                time.sleep(0.2)
            self.assertIn("push to down: ", self.errors)
            self.assertEqual(sum(name.endswith(".spool") for name in self.left()), 2, "kept for the other")
            with self.sender(config):  # a restart sends nothing twice
                time.sleep(0.5)
            self.assertEqual(len(server.requests), 3)
            with Server() as second:
                with self.sender(self.config(("up", "parca", server.url), ("down", "pyroscope", second.url))):
                    support.wait_until(lambda: not self.left(), "all is sent to the other")
                self.assertEqual((len(server.requests), len(second.requests)), (3, 3))

    def test_new_files_are_seen_at_once(self):
        with Server() as server:
            with self.sender(self.config(("a", "pyroscope", server.url))):
                time.sleep(0.5)
                self.put()
                support.wait_until(lambda: server.requests, "a request")

    def test_the_spool_is_bounded(self):
        for number in range(12):
            self.put(number=number)
        down = "http://127.0.0.1:%d" % pushing.closed_port()
        with self.sender(self.config(("a", "pyroscope", down), more="size = 32K")):
            support.wait_until(lambda: len(self.left()) <= 8, "the oldest are removed")
            time.sleep(0.2)
        self.assertTrue(self.left() and self.left()[-1].endswith("-000011.spool"), self.left())

    # A sanitized build keeps what was freed for a while, which is no growth.
    @unittest.mock.patch.dict(os.environ, ASAN_OPTIONS=os.environ.get("ASAN_OPTIONS", "") + ":quarantine_size_mb=1:thread_local_quarantine_size_kb=64")
    def test_a_thousand_failures(self):
        """File descriptors and memory stay what they were."""
        def look(process):
            with open("/proc/%d/status" % process.pid) as file:
                memory = [int(line.split()[1]) for line in file if line.startswith("VmRSS:")][0]
            return len(os.listdir("/proc/%d/fd" % process.pid)), memory

        with Server(400, "garbage", *[400, 413, 422] * 400) as server:
            with self.sender(self.config(("a", "pyroscope", server.url), ("b", "otlp", server.url))) as process:
                self.put(100)
                support.wait_until(lambda: not self.left(), "the first hundred")
                before = look(process)
                for number in range(1, 6):
                    self.put(100, number)
                support.wait_until(lambda: not self.left(), "all of them")
                time.sleep(0.2)
                after = look(process)
        self.assertEqual(len(server.requests), 1201, "the garbage was no answer")
        self.assertLessEqual(after[0], before[0] + 1, "descriptors")
        self.assertLess(after[1] - before[1], 20000 if support.SANITIZED else 2000, "KiB of memory")


@unittest.skipUnless(shutil.which("openssl"), "openssl is not installed")
class Certificates(Push):
    def test_a_certificate_must_be_right(self):
        good = pushing.make_certificate(self.path("good.pem"), "IP:127.0.0.1")
        other = pushing.make_certificate(self.path("other.pem"), "DNS:elsewhere.example")
        self.put()
        with Server(certificate=good) as server:
            done = self.once(server.url)
            self.assertEqual((done.returncode, server.requests), (cli.FAILED, []))
            self.assertIn(b"certificate", done.stderr)
            self.assertIn(b"gave up", done.stderr)
            self.assertEqual(len(self.left()), 1)
        with Server(certificate=other) as server:  # known, but of another name
            done = self.sampled("push", "--once", "--config", self.config(("a", "parca", server.url, "ca-file = " + other)))
            self.assertEqual((done.returncode, server.requests), (cli.FAILED, []))
        with Server(certificate=good) as server:
            done = self.sampled("push", "--once", "--config", self.config(("a", "parca", server.url, "ca-file = " + good)))
            self.assertEqual((done.returncode, len(server.requests)), (0, 1), done.stderr)


class Credentials(Push):
    def secret(self, text, mode=0o600):
        path = self.path("secret")
        with open(path, "w") as file:
            file.write(text)
        os.chmod(path, mode)
        return path

    def test_bearer_is_read_again(self):
        path = self.secret("first\n")
        with Server() as server:
            with self.sender(self.config(("a", "pyroscope", server.url, "bearer-file = " + path))):
                self.put(number=0)
                support.wait_until(lambda: len(server.requests) == 1, "a request")
                self.secret("the second")
                self.put(number=1)
                support.wait_until(lambda: len(server.requests) == 2, "another")
        self.assertEqual([headers["Authorization"] for _p, headers, _b in server.requests], ["Bearer first", "Bearer the second"])
        self.assertEqual(self.errors, "")

    def test_basic(self):
        path = self.secret("pa:ss\n", 0o644)
        self.put()
        with Server() as server:
            config = self.config(("a", "pyroscope", server.url, "user = me", "password-file = " + path))
            done = self.sampled("push", "--once", "--config", config)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(b"can be read by others than its owner", done.stderr)
        self.assertEqual(server.requests[0][1]["Authorization"], "Basic " + base64.b64encode(b"me:pa:ss").decode())

    def test_a_file_that_is_none(self):
        for text in ("", "two\nlines: of a header"):
            with self.subTest(text):
                self.put()
                with Server() as server:
                    with self.sender(self.config(("a", "pyroscope", server.url, "bearer-file = " + self.secret(text)))):
                        time.sleep(0.5)
                    self.assertEqual(server.requests, [])
                self.assertIn("cannot read " + self.path("secret"), self.errors)

    def test_no_proxy_of_the_environment(self):
        self.put()
        with Server() as server:
            env = dict(os.environ, http_proxy="http://127.0.0.1:%d" % pushing.closed_port(), no_proxy="")
            done = self.sampled("push", "--once", "--spool", self.spool, "--url", server.url, env=env)
        self.assertEqual((done.returncode, len(server.requests)), (0, 1), done.stderr)


class Metrics(Push):
    def scrape(self, port, path="/metrics"):
        with urllib.request.urlopen("http://127.0.0.1:%d%s" % (port, path), timeout=10) as answer:
            return answer.read().decode()

    def test_metrics(self):
        port, control = pushing.closed_port(), self.path("control.sock")
        listener = socket.socket(socket.AF_UNIX)
        self.addCleanup(listener.close)
        listener.bind(control)
        listener.listen()
        with Server(200, 400, 503, 200) as server:
            config = self.config(("a", "parca", server.url), more="[metrics]\nlisten = 127.0.0.1:%d\ncontrol = %s\n" % (port, control))
            with self.sender(config):
                self.put(3)
                support.wait_until(lambda: not self.left(), "all are dealt with")
                daemon = support_daemon(listener)
                text = self.scrape(port)
                daemon.join()
                with self.assertRaises(urllib.error.HTTPError):
                    self.scrape(port, "/")
        values = {line.rpartition(" ")[0]: float(line.rpartition(" ")[2]) for line in text.splitlines() if not line.startswith("#")}
        self.assertEqual(values['sampled_push_items_total{destination="a",result="sent"}'], 2)
        self.assertEqual(values['sampled_push_items_total{destination="a",result="refused"}'], 1)
        self.assertEqual(values['sampled_push_retries_total{destination="a"}'], 1)
        self.assertLess(abs(values['sampled_push_last_success_timestamp_seconds{destination="a"}'] - time.time()), 60)
        self.assertEqual((values["sampled_push_daemon_up"], values["sampled_test_total"]), (1, 7), "the daemon's, too")
        if not os.path.exists(PROMTOOL):
            self.skipTest("promtool is not installed: tests/consumers/setup-prometheus")
        done = subprocess.run([PROMTOOL, "check", "metrics"], input=text.encode(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.assertEqual((done.returncode, done.stdout), (0, b""))

    def test_status_for_the_service_manager(self):
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.addCleanup(listener.close)
        listener.bind("\0sampled-test-%d" % os.getpid())
        listener.settimeout(10)
        with self.sender(self.config(("a", "parca", "http://127.0.0.1:%d" % pushing.closed_port())),
                         {"NOTIFY_SOCKET": "@sampled-test-%d" % os.getpid(), "WATCHDOG_USEC": "600000"}):
            heard = b""
            while heard.count(b"WATCHDOG=1") < 3:
                heard += listener.recv(4096) + b"\n"
        while b"STOPPING=1" not in heard:
            heard += listener.recv(4096)
        self.assertTrue(heard.startswith(b"READY=1\n"), heard)
        self.assertIn(b"STATUS=0 profiles sent, 0 refused; 0 files wait; 0 of 1 destinations failing", heard)


def support_daemon(listener):
    """Answers one request as the daemon does."""
    def answer():
        connection, _address = listener.accept()
        with connection:
            assert connection.recv(4096).startswith(b"GET /metrics HTTP/1.0\r\n")
            connection.sendall(b"HTTP/1.0 200 OK\r\nContent-Type: text/plain\r\n\r\n"
                               b"# HELP sampled_test_total Of a test.\n# TYPE sampled_test_total counter\nsampled_test_total 7\n")

    thread = threading.Thread(target=answer, daemon=True)
    thread.start()
    return thread


class Configuration(Push):
    def check(self, text):
        with open(self.path("push.conf"), "w") as file:
            file.write(text)
        return self.sampled("push", "--check", "--config", self.path("push.conf"))

    def test_check(self):
        good = "[spool]\ndirectory = %s\n[destination a]\ntype = otlp\nurl = https://collector.example:4318\ntimeout = 5s\n[metrics]\nlisten = [::1]:9464\n" % self.spool
        os.chmod(self.spool, 0o777)
        done = self.check(good)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, b"", b""))
        for text, *why in (("", "there is no destination"), (good + "[destination b]\ntype = otlp\n", "destination b has no url"),
                           ("[destination a]\nurl = ftp://x\n", "push.conf:2: ", "not an http or https address"),
                           ("[destination a]\nurl = http://me:secret@x\n", "takes no user and no password"),
                           ("[destination a]\ntype = loki\n", "push.conf:2: ", "no such type"),
                           ("[destination a]\nurls = x\n", "has no key urls"), ("[push]\nurl = x\n", "no such section"),
                           ("[spool]\nsize = many\n", "not a size"), ("[destination a/b]\nurl = http://x\n", "not a name"),
                           (good + "user = me\n", "has no key user"),
                           (good + "[destination a]\nuser = me\n", "user and password-file go together")):
            with self.subTest(text):
                done = self.check(text)
                self.assert_error(done, cli.USAGE, *why)
                self.assertNotIn(b"secret", done.stderr)

    def test_check_looks_at_files(self):
        """As the user that the service is; what it says does not hold the credential."""
        os.chmod(self.spool, 0o777)
        secret = self.path("token")
        with open(secret, "w") as file:
            file.write("hunter2")
        text = "[spool]\ndirectory = %s\n[destination a]\ntype = otlp\nurl = %%s\nbearer-file = %%s\n" % self.spool
        os.chmod(secret, 0o644)
        done = self.check(text % ("https://collector.example", secret))
        self.assertEqual((done.returncode, done.stderr), (0, b""))
        done = self.check(text % ("http://collector.example", secret))
        self.assertEqual(done.returncode, 0)
        self.assertIn(b"push to a: its credential goes over plain http", done.stderr)
        self.assertEqual(self.check(text % ("http://127.0.0.1:9", secret)).stderr, b"")
        if os.geteuid() == 0:
            os.chmod(secret, 0o600)
            self.assert_error(self.check(text % ("https://x", secret)), cli.USAGE, "cannot read " + secret, "/etc/sampled/credentials")
            os.chmod(secret, 0o644)
            os.chmod(self.spool, 0o700)
            self.assert_error(self.check(text % ("https://x", secret)), cli.USAGE, "cannot use the spool")
            os.chmod(self.spool, 0o777)
        self.assert_error(self.check(text % ("https://x", "no-such-name")), cli.USAGE, "cannot read /etc/sampled/credentials/no-such-name")
        done = self.check(text % ("https://x", "hunter2/x"))
        self.assert_error(done, cli.USAGE, "a credential is named by its file")
        self.assertNotIn(b"hunter2", done.stderr)
        with unittest.mock.patch.dict(os.environ, CREDENTIALS_DIRECTORY=self.folder):
            self.assertEqual(self.check(text % ("https://x", "token")).returncode, 0)
            os.rename(secret, self.path("credentials_token"))
            self.assertEqual(self.check(text % ("https://x", "token")).returncode, 0)

    @unittest.skipIf(os.path.exists("/etc/sampled/push.conf"), "this machine has a configuration")
    def test_a_fresh_machine(self):
        self.assert_error(self.sampled("push", "--check"), cli.USAGE, "/etc/sampled/push.conf: No such file", "copy /usr/share/doc/sampled/examples/push.conf")

    def test_a_spool_that_is_not_there(self):
        done = self.sampled("push", "--spool", self.path("nothing"), "--url", "http://127.0.0.1:9")
        self.assert_error(done, cli.FAILED, "cannot use the spool")
        self.assert_error(self.sampled("push", "--type", "otlp"), cli.USAGE, "goes with --url")
        self.assert_error(self.sampled("push", "x"), cli.USAGE, "takes no operand")


@support.needs_python
class Attach(Push):
    COMMAND = ("import time\nend = time.time() + %d\nwhile time.time() < end: pass" % support.LIFE_S,)

    def run_pushed(self, *args):
        return self.sampled("run", *args, "--", *support.newest().argv, "-c", *self.COMMAND)

    @profiles.needs(profiles.PYTHON, "protobuf for Python")
    def test_run_sends_what_it_writes(self):
        with Server() as server:
            done = self.run_pushed("-f", "pprof", "-o", self.path("own.pb.gz"), "--push", server.url, "-q")
        self.assertEqual((done.returncode, done.stderr), (0, b""))
        with open(self.path("sent.pb.gz"), "wb") as file:
            file.write(server.requests[0][2])
        own, sent = (profiles.strict("pprof", os.path.join(profiles.CONSUMERS, "profile.desc"), self.path(name))
                     for name in ("own.pb.gz", "sent.pb.gz"))
        self.assertEqual(own["sums"], sent["sums"])
        name = pushing.query(server.requests[0][0])["name"]
        self.assertIn("host=" + socket.gethostname(), name)
        self.assertIn("version=" + support.newest().text.split("+")[0][:4], name)

    def test_nothing_else_is_written(self):
        with Server() as server:
            done = self.run_pushed("--push", server.url, "--push-type", "parca", "-q")
        self.assertEqual((done.returncode, done.stdout, len(server.requests)), (0, b"", 1), done.stderr)
        self.assertEqual(sorted(os.listdir(self.folder)), ["one.pb.gz", "spool"])

    def test_snapshots_are_told_apart(self):
        """Each holds what the one before it held: under one name they would add up."""
        with Server() as server:
            with support.Target(support.newest(), "busy.py") as target:
                process = support.start_sampled("attach", target.pid, "--push", server.url, "-q", cwd=self.folder)
                try:
                    support.wait_sampling(process)
                    for count in (1, 2):
                        process.send_signal(signal.SIGUSR1)
                        support.wait_until(lambda count=count: len(server.requests) >= count, "a snapshot")
                    process.send_signal(signal.SIGINT)
                    _out, error = process.communicate(timeout=support.PATIENCE_S)
                finally:
                    process.kill()
                    process.wait()
        self.assertEqual((process.returncode, error), (0, b""))
        names = [pushing.query(path)["name"] for path, _headers, _body in server.requests]
        self.assertEqual([name.partition("snapshot=")[2].partition("}")[0] for name in names], ["1", "2", ""])

    def test_a_failure_is_one_line(self):
        with Server(400) as server:
            done = self.run_pushed("--push", server.url, "-q")
        self.assert_error(done, cli.FAILED, "push to pyroscope: a profile was refused: it answered 400")
        with Server(403) as server:
            done = self.run_pushed("--push", server.url, "-q")
        self.assert_error(done, cli.FAILED, "push to pyroscope: it answered 403: gave up")
        done = self.run_pushed("--push", "http://127.0.0.1:%d" % pushing.closed_port(), "-q")
        self.assert_error(done, cli.FAILED, "push to pyroscope: ", "gave up")
        self.assert_error(self.run_pushed("--push", "gopher://x"), cli.USAGE, "not an http or https address")
        self.assert_error(self.run_pushed("--push-type", "otlp"), cli.USAGE, "goes with --push")

    def test_the_sender_has_no_rights_and_leaves_nothing(self):
        with Server("hang") as server:
            process = support.start_sampled("run", "--push", server.url, "-q", "--", *support.newest().argv, "-c", *self.COMMAND,
                                            cwd=self.folder, env=dict(os.environ, TMPDIR=self.folder))
            support.wait_until(lambda: server.requests, "a request", 60)
            with open("/proc/%d/task/%d/children" % (process.pid, process.pid)) as file:
                children = file.read().split()
            with open("/proc/%s/status" % children[-1]) as file:
                status = dict(line.rstrip("\n").split(":\t") for line in file if ":\t" in line)
            self.assertEqual((int(status["CapEff"], 16), int(status["CapPrm"], 16), status["NoNewPrivs"]), (0, 0, "1"))
            with open("/proc/%d/maps" % process.pid) as file:
                self.assertNotIn("libcurl", file.read(), "who reads others' memory does not even map it")
            process.kill()
            process.wait()
            process.stdout.close()
            process.stderr.close()
            support.wait_until(lambda: not os.path.exists("/proc/" + children[-1]), "it ends with its parent", 5)
        self.assertEqual([name for name in os.listdir(self.folder) if name.startswith("sampled-push")], [])


if __name__ == "__main__":
    unittest.main()
