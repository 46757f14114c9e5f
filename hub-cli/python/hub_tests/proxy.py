"""A proxy that spoils one response in twenty: refused, overloaded, delayed, cut off, or lost after it took effect."""

import hashlib
import http.client
import re
import threading
import time
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

FAULTS = ("refuse", "throttle", "delay", "cut", "lose")
HOP_BY_HOP = {"connection", "keep-alive", "transfer-encoding", "te", "trailer", "upgrade", "content-length"}


class FaultProxy(ThreadingHTTPServer):
    """Forwards to `upstream`; what it spoils depends on the seed, the request and how often that was made, not on threads."""

    daemon_threads = True

    def __init__(self, upstream, seed, one_in=20):
        super().__init__(("127.0.0.1", 0), Handler)
        self.upstream, self.seed, self.one_in = urlsplit(upstream), seed, one_in
        self.seen, self.injected, self.lock = Counter(), Counter(), threading.Lock()
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def endpoint(self):
        return f"http://127.0.0.1:{self.server_address[1]}"

    def fault(self, method, path):
        """The fault for this request, or None."""
        # Commit ids depend on the clock.
        key = method + re.sub(r"[0-9a-f]{40,64}", "ID", path)
        with self.lock:
            self.seen[key] += 1
            drawn = hashlib.sha256(f"{self.seed} {key} {self.seen[key]}".encode()).digest()
            if drawn[0] * 256 + drawn[1] >= 65536 // self.one_in:
                return None
            fault = FAULTS[drawn[2] % len(FAULTS)]
            self.injected[fault] += 1
            return fault

    def handle_error(self, request, client_address):
        """A client that hangs up is no news."""


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def forward(self):
        body = self.read_body()
        fault = self.server.fault(self.command, self.path)
        if fault == "refuse":
            return self.answer(500, {}, b"the proxy refuses")
        if fault == "throttle":
            return self.answer(429, {"Retry-After": "0"}, b"the proxy wants less")
        if fault == "delay":
            time.sleep(0.4)
        status, headers, content = self.ask(body)
        if fault == "lose":
            return self.answer(502, {}, b"the proxy lost the answer")
        if fault == "cut":
            self.answer(status, headers, content, cut=True)
            self.close_connection = True
            return None
        return self.answer(status, headers, content)

    do_GET = do_HEAD = do_POST = do_PUT = do_DELETE = forward

    def read_body(self):
        if self.headers.get("Transfer-Encoding", "").lower() == "chunked":
            pieces = []
            while size := int(self.rfile.readline().split(b";")[0], 16):
                pieces.append(self.rfile.read(size))
                self.rfile.readline()
            self.rfile.readline()
            return b"".join(pieces)
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))

    def ask(self, body):
        """The hub's own answer."""
        connection = http.client.HTTPConnection(self.server.upstream.netloc, timeout=60)
        headers = {k: v for k, v in self.headers.items() if k.lower() not in HOP_BY_HOP}
        connection.request(self.command, self.path, body=body, headers=headers)
        response = connection.getresponse()
        content = response.read()
        kept = {k: v for k, v in response.getheaders() if k.lower() not in HOP_BY_HOP - {"content-length"}}
        connection.close()
        return response.status, kept, content

    def answer(self, status, headers, content, cut=False):
        self.send_response_only(status)
        for name, value in headers.items():
            self.send_header(name, value)
        if "content-length" not in {name.lower() for name in headers}:
            self.send_header("Content-Length", str(len(content)))
        if cut and not content:
            return  # not even the head arrives
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content[: len(content) // 2] if cut else content)

    def log_message(self, *args):
        """Quiet."""
