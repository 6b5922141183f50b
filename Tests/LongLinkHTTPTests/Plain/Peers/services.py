# SPDX-License-Identifier: Apache-2.0
"""An HTTP server of Python's own library: Digest with SHA-256, forms read by Python's parser, and documents.

It prints its port, and serves until its standard input ends. Each line of the input lets one node of a feed go.
"""

import email
import email.policy
import hashlib
import json
import queue
import re
import secrets
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

REALM, USER, PASSWORD = "peers", "Mufasa \"M\"", "Circle of Life"


def sha256(text):
    return hashlib.sha256(text.encode()).hexdigest()


class Nonces:
    """Each nonce with the numbers that were used with it."""

    def __init__(self):
        self.lock = threading.Lock()
        self.used = {}

    def make(self):
        nonce = secrets.token_urlsafe(16)
        with self.lock:
            self.used[nonce] = set()
        return nonce

    def use(self, nonce, number):
        """Whether the nonce is known, and the number is new."""
        with self.lock:
            used = self.used.get(nonce)
            if used is None or number in used:
                return False
            used.add(number)
            # An old one is not good for more.
            if len(used) >= 3:
                del self.used[nonce]
            return True


NONCES = Nonces()
STEPS = queue.Queue()
DOCUMENTS = {
    "/items": b'{"a": 1, "items": [1, {"b": "x",\r\n "c": 2}, "s"]}',
    "/array": b'[1, {"error": "down"}, 3]',
    "/problem": b'{"error": {"why": "no"}}',
    "/hostile": b'{"error": "no\\nlonglink: ok\\u202e' + b"x" * 9_000 + b'"}',
    "/hostile.xml": b"<feed><error>no\nlonglink: ok&#x202e;" + b"x" * 9_000 + b"</error></feed>",
    "/cut.json": b'{"items": [1, 2',
    "/cut.xml": b"<feed><node>1</node><node>2",
    "/broken.xml": b"<feed><node>1</node></food>",
    "/text": b"hello\n",
    "/controls": "a\x1b[31m\x07\x9b\x7f\u202e\u2028\tü\n".encode(),
    "/controls.json": '["\x1b\x9b\u202e\u2028\\\\ü", 1]'.encode(),
    "/controls.xml": "<feed><node>&#x9b;\x7f&#x202e;\u2028\tü\\</node></feed>".encode(),
}
PARAMETER = re.compile(r'(\w+)=(?:"((?:[^"\\]|\\.)*)"|([^,\s]*))')


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def body(self):
        if self.headers.get("Transfer-Encoding") == "chunked":
            parts = []
            while size := int(self.rfile.readline().strip(), 16):
                parts.append(self.rfile.read(size))
                self.rfile.readline()
            self.rfile.readline()
            return b"".join(parts)
        return self.rfile.read(int(self.headers.get("Content-Length", 0)))

    def answer(self, status, body=b"", *fields):
        self.send_response(status)
        for name, value in fields:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def challenge(self, stale=False):
        value = f'Digest realm="{REALM}", qop="auth", algorithm=SHA-256, nonce="{NONCES.make()}"'
        value += ', opaque="o\\"p"' + (", stale=true" if stale else "")
        self.answer(401, b"who?", ("WWW-Authenticate", value))

    def digest(self):
        field = self.headers.get("Authorization", "")
        if not field.startswith("Digest "):
            return self.challenge()
        values = {
            name: re.sub(r"\\(.)", r"\1", quoted) or plain
            for name, quoted, plain in PARAMETER.findall(field[7:])
        }
        first = sha256(f"{USER}:{REALM}:{PASSWORD}")
        second = sha256(f"{self.command}:{self.path}")
        expected = sha256(
            ":".join([first, values["nonce"], values["nc"], values["cnonce"], "auth", second])
        )
        if values["uri"] != self.path or values["opaque"] != 'o"p' or values["username"] != USER:
            return self.answer(400, b"other values")
        if values["response"] != expected:
            return self.challenge()
        if not NONCES.use(values["nonce"], values["nc"]):
            return self.challenge(stale=True)
        return self.answer(200, b"in " + values["nc"].encode())

    def form(self, body):
        head = f"Content-Type: {self.headers['Content-Type']}\r\n\r\n".encode()
        message = email.message_from_bytes(head + body, policy=email.policy.HTTP)
        parts = []
        for part in message.iter_parts():
            content = part.get_payload(decode=True)
            parts.append(
                {
                    "name": part.get_param("name", header="content-disposition"),
                    "file": part.get_filename(),
                    "type": part.get_content_type(),
                    "size": len(content),
                    "sha256": hashlib.sha256(content).hexdigest(),
                    "defects": [str(defect) for defect in part.defects + message.defects],
                }
            )
        self.answer(200, json.dumps(parts).encode(), ("Content-Type", "application/json"))

    def chunk(self, text):
        self.wfile.write(b"%x\r\n%s\r\n" % (len(text), text.encode()))

    def feed(self, count, ending):
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        self.chunk("<feed>")
        for number in range(1, count + 1):
            STEPS.get()
            self.chunk(f"<node>{number}\n<b>x</b></node>")
        self.chunk(ending)
        self.chunk("")

    def odd(self):
        """What a good server does not do."""
        if self.path == "/silent":
            STEPS.get()
        elif self.path == "/head":
            self.answer(200, b"", *[(f"X-{n}", "v" * 7000) for n in range(10)])
        elif self.path == "/cut":
            self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nabc")
            self.close_connection = True
        else:
            return False
        return True

    def serve(self):
        body = self.body()
        if self.path in DOCUMENTS:
            self.answer(200, DOCUMENTS[self.path])
        elif self.path == "/feed":
            self.feed(3, "</feed>")
        elif self.path == "/failing":
            self.feed(7, "<error>the database is down</error></feed>")
        elif self.path.startswith("/redirect/"):
            steps = int(self.path[10:])
            self.answer(302, b"", ("Location", f"/redirect/{steps - 1}" if steps > 1 else "/text"))
        elif self.path == "/503":
            self.answer(503, b"come back later")
        elif self.odd():
            pass
        elif self.path.startswith("/digest"):
            self.digest()
        elif self.path.startswith("/form"):
            self.form(body)
        else:
            self.answer(404)

    do_GET = do_POST = do_PUT = serve


def main():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(server.server_address[1], flush=True)
    for line in sys.stdin:
        STEPS.put(line)


if __name__ == "__main__":
    main()
