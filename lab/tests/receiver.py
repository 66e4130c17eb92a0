# SPDX-License-Identifier: GPL-2.0-or-later
"""An HTTP server on the loopback that records requests and answers as configured."""

from __future__ import annotations

import ssl
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread


@dataclass(frozen=True)
class Got:
    """One request that arrived; header names in lower case."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes


@dataclass(frozen=True)
class Reply:
    """The answer of the receiver. drip_s: the pause between single bytes of the body."""

    status: int = 200
    body: bytes = b"fine"
    location: str = ""
    drip_s: float = 0.0


@dataclass
class Receiver:
    """replies: taken in order, the last one for all that follow."""

    url: str
    got: list[Got] = field(default_factory=list)
    replies: list[Reply] = field(default_factory=lambda: [Reply()])

    def next_reply(self) -> Reply:
        return self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]


@contextmanager
def receiving(tls: ssl.SSLContext | None = None) -> Iterator[Receiver]:
    """Serve until the block ends; over TLS with a context."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length", 0)))
            headers = {name.lower(): value for name, value in self.headers.items()}
            receiver.got.append(Got(self.command, self.path, headers, body))
            reply = receiver.next_reply()
            try:
                self.send_response(reply.status)
                if reply.location:
                    self.send_header("location", reply.location)
                self.send_header("content-length", str(len(reply.body)))
                self.end_headers()
                for at in range(len(reply.body)) if reply.drip_s else ():
                    self.wfile.write(reply.body[at : at + 1])
                    time.sleep(reply.drip_s)
                if not reply.drip_s:
                    self.wfile.write(reply.body)
            except OSError:
                pass  # the other side went away, as it should

        do_GET = do_POST

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    if tls:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    receiver = Receiver(f"{'https' if tls else 'http'}://127.0.0.1:{server.server_address[1]}")
    Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    try:
        yield receiver
    finally:
        server.shutdown()
        server.server_close()
