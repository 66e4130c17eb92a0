# SPDX-License-Identifier: GPL-2.0-or-later
"""A gunicorn worker that hands a request to a thread once all of it has come, so that slow senders hold no thread."""

import errno
import socket
import time
from collections import Counter
from contextlib import suppress
from functools import partial
from selectors import EVENT_READ
from tempfile import SpooledTemporaryFile
from typing import Any

from gunicorn import util
from gunicorn.errors import ConfigError
from gunicorn.http import RequestParser
from gunicorn.http.body import LengthReader
from gunicorn.workers.gthread import TConn, ThreadWorker

HEAD_BYTES = 64 << 10
# The largest form has files of a series; DATA_UPLOAD_MAX_MEMORY_SIZE bounds everything else far below it.
BODY_BYTES = 64 << 20
PIECE = 64 << 10
# Each connection holds a descriptor, and a second one for a large body; 1024 is what a process usually has.
CONNECTIONS = 400
# The most bytes that all incomplete requests may hold, in memory and on the disk.
HELD_BYTES = 256 << 20
LINGER_S = 2.0
SEND_BUFFER = 256 << 10


class RequestRefused(Exception):
    """A request that is answered before its body is read. status and reason: those of the answer."""

    def __init__(self, status: int, reason: str, text: str) -> None:
        super().__init__(text)
        self.status, self.reason = status, reason


class Answering(socket.socket):
    """A client's socket. Each answer has grace_s, and a second more for each PIECE that was sent."""

    grace_s = 30.0
    _began = 0.0
    _sent = 0

    def begin(self) -> None:
        """Start the time of an answer."""
        self._began, self._sent = time.monotonic(), 0

    def sendall(self, data: Any, flags: int = 0, /) -> None:
        """Send all of data. Raises BrokenPipeError where the client reads too slowly."""
        view = memoryview(data).cast("B")
        for start in range(0, len(view), PIECE):
            left = self._began + self.grace_s + self._sent / PIECE - time.monotonic()
            part = view[start : start + PIECE]
            try:
                self.settimeout(max(left, 0.001))
                super().sendall(part, flags)
            except TimeoutError as exc:
                raise BrokenPipeError(errno.EPIPE, "the client reads too slowly") from exc
            self._sent += len(part)

    def sendfile(self, file: Any, offset: int = 0, count: int | None = None) -> int:
        """Send count bytes of a file, or all; the system's own call would have no deadline."""
        file.seek(offset)
        left = count
        while part := file.read(PIECE if left is None else min(PIECE, left)):
            self.sendall(part)
            left = None if left is None else left - len(part)
            offset += len(part)
        return offset


class Connection(TConn):  # type: ignore[misc]  # the library has no types
    """One client: the received part of its request, and the deadline for the rest."""

    head_s = 10.0
    body_s = 30.0
    answers_by = Answering

    def __init__(self, cfg: Any, sock: socket.socket, client: Any, server: Any) -> None:
        super().__init__(cfg, self.answers_by(fileno=sock.detach()), client, server)
        # Bytes in the kernel's buffer count as sent: a buffer without a limit would give a silent reader another minute.
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER)
        self.address = client[0] if isinstance(client, tuple) else ""
        self.early = b""
        self.refused = False
        self.renew()

    def renew(self) -> None:
        """Wait for the next request; bytes that were read beyond the last one are its beginning."""
        self.head = bytearray()
        self.body: SpooledTemporaryFile[bytes] | None = None
        self.missing = self.held = 0
        self.deadline = time.monotonic() + self.cfg.keepalive
        self.sock.setblocking(False)

    def receive(self) -> bool:
        """Read received bytes; return True once a request is whole. Raises RequestRefused, OSError if the connection ended."""
        data, self.early = self.early, b""
        try:
            data = data or self.sock.recv(PIECE)
        except BlockingIOError:
            return False
        if not data:
            raise ConnectionResetError(errno.ECONNRESET, "the client ended its request early")
        return not self.refused and self.add(data)

    def refuse(self, why: RequestRefused) -> None:
        """Answer, and read on for some seconds: closing at once could destroy the answer before the client reads it."""
        self.refused, self.held = True, 0
        self.deadline = time.monotonic() + LINGER_S
        util.write_error(self.sock, why.status, why.reason, str(why))
        self.sock.setblocking(False)
        self.sock.shutdown(socket.SHUT_WR)

    def add(self, data: bytes) -> bool:
        """Take bytes of a request; return True once it is whole. Raises RequestRefused."""
        if self.body is None:
            if not self.head:
                self.deadline = time.monotonic() + self.head_s
            seen = max(0, len(self.head) - 3)
            self.head += data
            end = self.head.find(b"\r\n\r\n", seen) + 4
            if max(end, 0 if end > 3 else len(self.head)) > HEAD_BYTES:
                raise RequestRefused(
                    431, "Request Header Fields Too Large", "the head of the request is too long"
                )
            if end < 4:
                return False
            data = bytes(self.head[end:])
            self.body = SpooledTemporaryFile(max_size=PIECE)  # noqa: SIM115  # closed with the request
            self._begin_body(bytes(self.head[:end]), self.body)
        return self._add_body(data, self.body)

    def _add_body(self, data: bytes, body: SpooledTemporaryFile[bytes]) -> bool:
        part, self.early = data[: self.missing], data[self.missing :]
        body.write(part)
        self.missing -= len(part)
        self.held += len(part)
        self.deadline += len(part) / PIECE
        if self.missing:
            return False
        body.seek(0)
        self.parser = RequestParser(self.cfg, iter(partial(body.read, 8192), b""), self.client)
        return True

    def _begin_body(self, head: bytes, body: SpooledTemporaryFile[bytes]) -> None:
        body.write(head)
        self.deadline = time.monotonic() + self.body_s
        try:
            request = next(RequestParser(self.cfg, [head], self.client))
        except Exception:  # gunicorn's thread parses it again, and answers with the error
            return
        if not isinstance(request.body.reader, LengthReader):
            raise RequestRefused(411, "Length Required", "a body needs a Content-Length")
        self.missing = request.body.reader.length
        if self.missing > BODY_BYTES:
            raise RequestRefused(413, "Content Too Large", f"a body has at most {BODY_BYTES} bytes")
        if self.missing and ("EXPECT", "100-continue") in request.headers:
            self.sock.send(b"HTTP/1.1 100 Continue\r\n\r\n")

    def close(self) -> None:
        """Close the connection and drop the received part of a request."""
        super().close()
        if self.body:
            self.body.close()


class PatientWorker(ThreadWorker):  # type: ignore[misc]  # the library has no types
    """gunicorn's worker with threads, in which clients that send or read slowly do not block others."""

    connection = Connection

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.worker_connections = min(self.cfg.worker_connections, CONNECTIONS)
        # In the order in which they began to wait.
        self._waiting: dict[Connection, None] = {}

    @classmethod
    def check_config(cls, cfg: Any, log: Any) -> None:
        """Raise ConfigError if gunicorn is configured for TLS: requests are collected as they come, before any decryption."""
        super().check_config(cfg, log)
        if cfg.is_ssl:
            raise ConfigError("the pages speak plain HTTP: put a proxy with the certificate in front")

    def accept(self, server: Any, listener: socket.socket) -> None:
        """Accept a client; if there are too many, first close the longest waiting one of the address with the most."""
        self._make_room()
        with suppress(BlockingIOError, ConnectionAbortedError):
            sock, client = listener.accept()
            with self._lock:
                self.nr_conns += 1
                self._wait_for(self.connection(self.cfg, sock, client, server))

    def _wait_for(self, conn: Connection) -> None:
        self._waiting[conn] = None
        self.poller.register(conn.sock, EVENT_READ, partial(self.on_client_socket_readable, conn))

    def on_client_socket_readable(self, conn: Connection, client: Any) -> None:
        """Read what was received; a whole request goes to a thread."""
        with self._lock:
            if conn in self._waiting:
                self._advance(conn)

    def _advance(self, conn: Connection) -> None:
        try:
            whole = conn.receive()
            if conn.held > PIECE and sum(other.held for other in self._waiting) > HELD_BYTES:
                raise RequestRefused(
                    503, "Service Unavailable", "too many large requests at once: try again in a minute"
                )
        except RequestRefused as exc:
            self._refuse(conn, exc)
        except OSError:
            self._drop(conn)
        else:
            if whole:
                del self._waiting[conn]
                self.poller.unregister(conn.sock)
                conn.sock.begin()
                self._wrap_future(self.tpool.submit(self.handle, conn), conn)

    def _refuse(self, conn: Connection, why: RequestRefused) -> None:
        try:
            conn.refuse(why)
        except OSError:
            self._drop(conn)

    def _drop(self, conn: Connection) -> None:
        del self._waiting[conn]
        self.poller.unregister(conn.sock)
        self._close(conn)

    def _close(self, conn: Connection) -> None:
        self.nr_conns -= 1
        conn.close()

    def _make_room(self) -> None:
        with self._lock:
            if self._waiting and self.nr_conns >= self.worker_connections - 1:
                crowd, _ = Counter(conn.address for conn in self._waiting).most_common(1)[0]
                self._drop(next(conn for conn in self._waiting if conn.address == crowd))

    def murder_keepalived(self) -> None:
        """Close connections past their deadline, and continue with requests that arrived together with the previous one."""
        self._make_room()
        now = time.monotonic()
        with self._lock:
            for conn in list(self._waiting):
                if conn.early:
                    self._advance(conn)
                elif conn.deadline < now and conn.head and not conn.refused:
                    self._refuse(
                        conn, RequestRefused(408, "Request Timeout", "the request arrived too slowly")
                    )
                elif conn.deadline < now:
                    self._drop(conn)

    def finish_request(self, fs: Any) -> None:
        """Wait for the next request if the connection stays open, else close it."""
        conn = fs.conn
        keep = not fs.cancelled() and not fs.exception() and fs.result()[0] and self.alive
        with self._lock:
            if conn.body:
                conn.body.close()
            try:
                if keep:
                    conn.renew()
                    self._wait_for(conn)
                    return
            except (OSError, ValueError, RuntimeError):
                self._waiting.pop(conn, None)
            self._close(conn)
