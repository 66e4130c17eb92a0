# SPDX-License-Identifier: GPL-2.0-or-later
"""Repositories over http, as git's own server program answers, and servers that behave badly; on the loopback address."""

from __future__ import annotations

import os
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path


@contextmanager
def served(root: Path) -> Iterator[str]:
    """The address under which every repository below `root` is served for as long as the block runs."""

    class Backend(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            path, _, query = self.path.partition("?")
            environment = os.environ | {
                "GIT_PROJECT_ROOT": str(root),
                "GIT_HTTP_EXPORT_ALL": "1",
                "GIT_CONFIG_COUNT": "1",
                "GIT_CONFIG_KEY_0": "safe.directory",
                "GIT_CONFIG_VALUE_0": "*",
                "PATH_INFO": path,
                "QUERY_STRING": query,
                "REQUEST_METHOD": self.command,
                "CONTENT_TYPE": self.headers.get("Content-Type", ""),
                "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
                "HTTP_GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
            }
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            done = subprocess.run(
                ["git", "http-backend"], input=body, env=environment, capture_output=True, check=False
            )
            head, _, content = done.stdout.partition(b"\r\n\r\n")
            lines = dict(line.split(": ", 1) for line in head.decode().splitlines())
            self.send_response(int(lines.pop("Status", "200").split()[0]))
            for name, value in lines.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_POST = do_GET

        def log_message(self, *_: object) -> None:
            pass

    with running(Backend) as url:
        yield url


class Inside:
    """A server that only this machine can reach; it records its requests."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.url = ""


@contextmanager
def internal_server() -> Iterator[Inside]:
    """Serve nothing, and note every request, for as long as the block runs."""
    inside = Inside()

    class Handler(_Quiet):
        def do_GET(self) -> None:
            inside.asked.append(self.path)
            self.send_error(404)

        do_POST = do_GET

    with running(Handler) as url:
        inside.url = url
        yield inside


@contextmanager
def redirecting(to: str, status: int) -> Iterator[str]:
    """Redirect every request to the same path elsewhere, for as long as the block runs."""

    class Handler(_Quiet):
        def do_GET(self) -> None:
            self.send_response(status)
            self.send_header("Location", to + self.path)
            self.send_header("Content-Length", "0")
            self.end_headers()

        do_POST = do_GET

    with running(Handler) as url:
        yield url


@contextmanager
def running(handler: type[BaseHTTPRequestHandler]) -> Iterator[str]:
    """Run a server on the loopback address for as long as the block runs; yield its URL."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()


class _Quiet(BaseHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass
