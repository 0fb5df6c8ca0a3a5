# SPDX-License-Identifier: Apache-2.0
"""What the tests of pushing share: spool files, servers that behave as they are told, and the sender."""
import contextlib
import http.server
import json
import os
import signal
import socket
import ssl
import struct
import subprocess
import threading
import time
import urllib.parse

import cli
import support

SERVICE = "web shop"


def write_spool(folder, profiles, number=0, labels=None):
    """A file of these packed profiles, as spool_write.h says."""
    content = b"sampled-spool 1\n"
    now_ns = int(time.time() * 1e9)
    for packed in profiles:
        line = {"labels": labels or {"service_name": SERVICE, "host": "h1", "unit": "a,b.service"}, "from_ns": str(now_ns - 10**9),
                "until_ns": str(now_ns), "bytes": len(packed)}
        content += json.dumps(line, separators=(",", ":")).encode() + b"\n" + packed
    path = os.path.join(folder, "%s-%06d.spool" % (time.strftime("%Y%m%dT%H%M%SZ", time.gmtime()), number))
    with open(path + ".new", "wb") as file:
        file.write(content)
    os.rename(path + ".new", path)
    return path


class Server:
    """An HTTP server that answers each request by the next of `script`, and by the last one ever after: a status, or (status, headers, body), or
    "hang", "reset", "garbage", "endless"; or a function of the path that returns one of these. requests: (path, headers, body) of each."""

    def __init__(self, *script, certificate=None):
        self.script = list(script) or [200]
        self.requests = []
        self.lock = threading.Lock()
        self.over = threading.Event()
        server = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                with server.lock:
                    server.requests.append((self.path, dict(self.headers), body))
                    does = server.script.pop(0) if len(server.script) > 1 else server.script[0]
                self.close_connection = True
                server.behave(self, does(self.path) if callable(does) else does)

            do_GET = do_POST

            def log_message(self, *_args):
                pass

        class Listener(http.server.ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, *_args):  # clients that hang up are part of the play
                pass

        self.listener = Listener(("127.0.0.1", 0), Handler)
        scheme = "http"
        if certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate)
            self.listener.socket = context.wrap_socket(self.listener.socket, server_side=True)
            scheme = "https"
        self.port = self.listener.server_address[1]
        self.url = "%s://127.0.0.1:%d" % (scheme, self.port)

    def behave(self, handler, does):
        if does == "hang":
            self.over.wait(60)
        elif does == "reset":
            handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            handler.connection.close()
        elif does == "garbage":
            handler.wfile.write(b"\0\1\2 what is this?\r\n" * 50)
        elif does == "endless":
            handler.wfile.write(b"HTTP/1.1 200 OK\r\n\r\n")
            with contextlib.suppress(OSError):
                while not self.over.is_set():
                    handler.wfile.write(b"x" * 65536)
        else:
            status, headers, body = does if isinstance(does, tuple) else (does, {}, b"")
            handler.send_response(status)
            for name, value in headers.items():
                handler.send_header(name, value)
            handler.send_header("Content-Length", str(len(body)))
            handler.end_headers()
            handler.wfile.write(body)

    def __enter__(self):
        threading.Thread(target=self.listener.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        return self

    def __exit__(self, *_error):
        self.over.set()
        self.listener.shutdown()
        self.listener.server_close()


def closed_port():
    """One that nobody listens at."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def query(path):
    return {name: values[0] for name, values in urllib.parse.parse_qs(urllib.parse.urlsplit(path).query).items()}


def make_certificate(path, *names):
    """A certificate that signs itself, and its key, in one file."""
    key = path + ".key"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=test", "-keyout", key, "-out", path,
                    "-addext", "subjectAltName=" + ",".join(names)], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    with open(path, "ab") as to, open(key, "rb") as of:
        to.write(of.read())
    return path


class Pushing(cli.Folder):
    """A test with a spool."""

    def setUp(self):
        super().setUp()
        self.spool = self.path("spool")
        os.mkdir(self.spool)

    def left(self):
        """All but what is kept of refused profiles."""
        return sorted(name for name in os.listdir(self.spool) if name != "refused")

    def refused(self):
        """What is kept of them: the words by name, and the profiles by name."""
        folder = os.path.join(self.spool, "refused")
        found = {".txt": {}, ".pb.gz": {}}
        for name in os.listdir(folder) if os.path.isdir(folder) else ():
            stem, dot, suffix = name.partition(".")
            with open(os.path.join(folder, name), "rb") as file:
                found[dot + suffix][stem] = file.read()
        return found[".txt"], found[".pb.gz"]

    def config(self, *destinations, more="", name="push.conf"):
        """(name, type, url, further lines) each."""
        text = "[spool]\ndirectory = %s\n%s\n" % (self.spool, more)
        for name, kind, url, *lines in destinations:
            text += "[destination %s]\ntype = %s\nurl = %s\n%s\n" % (name, kind, url, "\n".join(lines))
        path = self.path(name)
        with open(path, "w") as file:
            file.write(text)
        return path

    def once(self, url, kind="pyroscope", *args):
        return self.sampled("push", "--once", "--spool", self.spool, "--url", url, "--type", kind, *args)

    @contextlib.contextmanager
    def sender(self, config, env=None):
        """`sampled push`, ended by SIGTERM, which must not wait for a server."""
        process = support.start_sampled("push", "--config", config, env=dict(os.environ, **(env or {})))
        try:
            yield process
            began = time.monotonic()
            process.send_signal(signal.SIGTERM)
            status = process.wait(30)
            took = time.monotonic() - began
            self.errors = process.stderr.read().decode()
            self.assertEqual(status, 0, self.errors)
            self.assertLess(took, 20)
        finally:
            process.kill()
            process.wait()
            process.stdout.close()
            process.stderr.close()
