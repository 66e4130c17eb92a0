# SPDX-License-Identifier: GPL-2.0-or-later
"""Clients that send or read slowly, or lie about their request, against the pages' own server on the loopback address."""

from __future__ import annotations

import os
import selectors
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest

from web.slowclients import PatientWorker

pytestmark = [pytest.mark.hostile, pytest.mark.process]

CLIENTS = 64
DEADLINE_S = 60.0
# The pages' own settings, with one process and less patience.
HASTY = """
from web import slowclients
from web.serving import *
from web.slowclients import Answering, Connection

slowclients.HELD_BYTES = 16 << 20

class HastySocket(Answering):
    grace_s = 1.0

class Hasty(Connection):
    head_s = body_s = 1.5
    answers_by = HastySocket

class HastyWorker(PagesWorker):
    connection = Hasty

worker_class = HastyWorker
workers = 1
worker_connections = 100
"""
# An application with a large answer, and one that tells what it read.
SMALL = """
def application(environ, start_response):
    length = int(environ.get("CONTENT_LENGTH") or 0)
    body = environ["wsgi.input"].read(length)
    large = environ["PATH_INFO"] == "/large"
    if environ["PATH_INFO"] == "/file":
        file = open(__file__, "rb")
        file.seek(3)
        start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", "200")])
        return environ["wsgi.file_wrapper"](file)
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [bytes(1 << 20)] * 64 if large else [b"%d" % len(body)]
"""


def started(home: Path, application: str) -> Iterator[int]:
    """Run gunicorn as the service does, until the test ends; yield its port."""
    (home / "hasty.py").write_text(HASTY)
    (home / "small.py").write_text(SMALL)
    with socket.create_server(("127.0.0.1", 0), backlog=256) as listener:
        port = int(listener.getsockname()[1])
        gunicorn = str(Path(sys.executable).with_name("gunicorn"))
        command = [gunicorn, "-c", str(home / "hasty.py"), "--bind", f"fd://{listener.fileno()}", application]
        environment = os.environ | {"KPERFLAB_HOME": str(home), "PYTHONPATH": f"{Path.cwd()}:{home}"}
        with subprocess.Popen(
            command, env=environment, pass_fds=[listener.fileno()], stderr=subprocess.DEVNULL
        ) as process:
            try:
                yield port
            finally:
                process.send_signal(signal.SIGQUIT)
                process.wait(DEADLINE_S)


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """The port of the lab's pages."""
    for port in started(tmp_path_factory.mktemp("pages"), "web.wsgi"):
        assert httpx.get(f"http://127.0.0.1:{port}/health/", timeout=DEADLINE_S).is_success
        yield port


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """The port of the small application, behind the same worker."""
    yield from started(tmp_path_factory.mktemp("small"), "small:application")


def said(port: int, request: bytes, *, end: bool = False) -> bytes:
    """Return all that the server answers to bytes until it closes the connection."""
    with socket.create_connection(("127.0.0.1", port), DEADLINE_S) as client:
        client.sendall(request)
        if end:
            client.shutdown(socket.SHUT_WR)
        return b"".join(iter(lambda: client.recv(65536), b""))


def trickle(clients: list[socket.socket], beside: Callable[[], None]) -> list[bytes]:
    """Send a byte a second by each client until the server closed all; return what each was answered."""
    answers = dict.fromkeys(clients, b"")
    ends = time.monotonic() + DEADLINE_S
    with selectors.DefaultSelector() as selector:
        for client in clients:
            selector.register(client, selectors.EVENT_READ)
        while selector.get_map():
            assert time.monotonic() < ends, f"{len(selector.get_map())} slow connections are still open"
            beside()
            for client in [client for client in clients if client.fileno() in selector.get_map()]:
                try:
                    client.send(b"x")
                except OSError:
                    selector.unregister(client)
            for key, _ in selector.select(1.0):
                assert isinstance(key.fileobj, socket.socket)
                try:
                    data = key.fileobj.recv(65536)
                except OSError:
                    data = b""
                answers[key.fileobj] += data
                if not data:
                    selector.unregister(key.fileobj)
    return list(answers.values())


@pytest.mark.parametrize(
    "beginning",
    [
        b"GET",
        b"GET /health/ HTTP/1.1\r\nHost: lab\r\nX-Slow: ",
        b"POST /sign-in/ HTTP/1.1\r\nHost: lab\r\nContent-Length: 900\r\n\r\n",
        b"PUT /health/ HTTP/1.1\r\nHost: lab\r\nContent-Length: 70000\r\n\r\n" + b"x" * 66000,
    ],
    ids=["request line", "header", "body", "end of a body"],
)
def test_pages_answer_beside_slow_senders_who_are_closed_in_the_end(pages: int, beginning: bytes) -> None:
    def answered() -> None:
        assert httpx.get(f"http://127.0.0.1:{pages}/health/", timeout=DEADLINE_S).is_success

    with ExitStack() as stack:
        clients = [
            stack.enter_context(socket.create_connection(("127.0.0.1", pages), DEADLINE_S))
            for _ in range(CLIENTS)
        ]
        for client in clients:
            client.sendall(beginning)
        answers = trickle(clients, answered)
    assert {answer.split(b"\r\n")[0] for answer in answers} == {b"HTTP/1.1 408 Request Timeout"}


def test_more_silent_clients_than_the_pages_keep_shut_nobody_out(pages: int) -> None:
    with ExitStack() as stack:
        for _ in range(300):
            stack.enter_context(socket.create_connection(("127.0.0.1", pages), DEADLINE_S))
        assert httpx.get(f"http://127.0.0.1:{pages}/health/", timeout=DEADLINE_S).is_success


@pytest.mark.parametrize(("connections", "dropped"), [(98, []), (99, ["crowd 1"])])
def test_room_is_made_by_the_address_with_the_most_connections(connections: int, dropped: list[str]) -> None:
    class Waiting(NamedTuple):
        name: str
        address: str

    worker: Any = object.__new__(PatientWorker)
    gone: list[str] = []
    worker._lock, worker.worker_connections, worker.nr_conns = threading.RLock(), 100, connections
    waiting = ("alone", "192.0.2.1"), ("crowd 1", "192.0.2.9"), ("crowd 2", "192.0.2.9")
    worker._waiting = dict.fromkeys(Waiting(*each) for each in waiting)
    worker._drop = lambda conn: gone.append(conn.name)
    worker._make_room()
    assert gone == dropped


def test_clients_that_do_not_read_are_closed_in_the_end(small: int) -> None:
    ends = time.monotonic() + DEADLINE_S
    with ExitStack() as stack:
        for _ in range(8):
            client = stack.enter_context(socket.socket())
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            client.connect(("127.0.0.1", small))
            client.sendall(b"GET /large HTTP/1.1\r\nHost: lab\r\n\r\n")
        assert _open_connections(small) == 8
        # Twice as many as there are threads: nobody is answered before some of them were closed.
        assert httpx.get(f"http://127.0.0.1:{small}/", timeout=DEADLINE_S).text == "0"
        while _open_connections(small):
            assert time.monotonic() < ends, f"{_open_connections(small)} connections are still open"
            time.sleep(0.1)


def _open_connections(port: int) -> int:
    """Return how many connections the server holds: what its side of each says, see proc_net_tcp.rst of the kernel.

    The clients cannot tell: the kernel may drop what a closed socket still had to send without a word to them.
    """
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    established = "01"
    return sum(local.endswith(f":{port:04X}") and state == established for _, local, _, state, *_ in rows)


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (
            b"POST / HTTP/1.1\r\nHost: lab\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
            b"411 Length Required",
        ),
        (
            b"POST / HTTP/1.1\r\nHost: lab\r\nContent-Length: 67108865\r\n\r\n" + b"x" * 200_000,
            b"413 Content Too Large",
        ),
        (
            b"POST / HTTP/1.1\r\nHost: lab\r\nContent-Length: " + b"9" * 400 + b"\r\n\r\n",
            b"413 Content Too Large",
        ),
        (b"POST / HTTP/1.1\r\nHost: lab\r\nContent-Length: " + b"9" * 5000 + b"\r\n\r\n", b"400 Bad Request"),
        (b"POST / HTTP/1.1\r\nHost: lab\r\nContent-Length: -1\r\n\r\n", b"400 Bad Request"),
        (b"POST / HTTP/1.1\r\nHost: lab\r\nContent-Length: 0x5\r\n\r\nhello", b"400 Bad Request"),
        (
            b"POST / HTTP/1.1\r\nHost: lab\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
            b"400 Bad Request",
        ),
        (
            b"POST / HTTP/1.1\r\nHost: lab\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            b"400 Bad Request",
        ),
        (b"GET / HTTP/1.1\r\n" + b"X-A: b\r\n" * 101 + b"\r\n", b"431 Request Header Fields Too Large"),
        (
            b"GET / HTTP/1.1\r\n" + b"X-A: " + b"b" * 9000 + b"\r\n\r\n",
            b"431 Request Header Fields Too Large",
        ),
        (b"GET /" + b"a" * 5000 + b" HTTP/1.1\r\n\r\n", b"400 Bad Request"),
        (b"GET / HTTP/1.1\r\n" + b"X-A: bbbbbb\r\n" * 200_000, b"431 Request Header Fields Too Large"),
        (b"G" * 1_000_000, b"431 Request Header Fields Too Large"),
        (b"\r\n\r\n", b"400 Bad Request"),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", b"400 Bad Request"),
    ],
    ids=lambda value: (
        value.decode("latin-1")[:60].encode("unicode_escape").decode() if len(value) > 40 else None
    ),
)
def test_a_request_that_lies_or_floods_is_refused_unread(small: int, request_: bytes, status: bytes) -> None:
    try:
        answer = said(small, request_)
    except (ConnectionResetError, BrokenPipeError):
        # It sent more than the server reads after its answer.
        assert len(request_) > 100_000
    else:
        assert answer.split(b"\r\n")[0] == b"HTTP/1.1 " + status
    assert httpx.get(f"http://127.0.0.1:{small}/", timeout=DEADLINE_S).text == "0"


def test_a_body_shorter_than_it_says_reaches_no_application(small: int) -> None:
    assert said(small, b"POST / HTTP/1.1\r\nHost: lab\r\nContent-Length: 9\r\n\r\nshort", end=True) == b""


def test_what_follows_a_body_is_a_request_of_its_own(small: int) -> None:
    first = b"POST / HTTP/1.1\r\nHost: lab\r\nContent-Length: 5\r\n\r\nhello"
    answer = said(small, first + b"GET / HTTP/1.1\r\nHost: lab\r\nConnection: close\r\n\r\n", end=True)
    assert answer.count(b"HTTP/1.1 200 OK") == 2
    assert b"\r\n1\r\n5\r\n" in answer
    assert said(small, first + b"rubbish\r\n\r\n").count(b"HTTP/1.1 400 Bad Request") == 1


@pytest.mark.parametrize("length", [1, 65_535, 65_536, 5_000_000])
def test_a_body_arrives_whole_after_the_server_asked_for_it(small: int, length: int) -> None:
    head = f"POST / HTTP/1.1\r\nHost: lab\r\nConnection: close\r\nExpect: 100-continue\r\nContent-Length: {length}\r\n\r\n"
    with socket.create_connection(("127.0.0.1", small), DEADLINE_S) as client:
        client.sendall(head.encode())
        assert client.recv(65536).startswith(b"HTTP/1.1 100 Continue\r\n\r\n")
        client.sendall(bytes(length))
        answer = b"".join(iter(lambda: client.recv(65536), b""))
    assert f"\r\n{length:d}\r\n" in answer.decode()


def test_one_connection_serves_many_requests(small: int) -> None:
    with httpx.Client(timeout=DEADLINE_S) as client:
        for length in (0, 1, 100_000, 0, 3):
            assert client.post(f"http://127.0.0.1:{small}/", content=bytes(length)).text == str(length)


def test_a_part_of_a_file_arrives_as_it_is(small: int) -> None:
    with httpx.Client(timeout=DEADLINE_S) as client:
        for _ in range(3):
            assert client.get(f"http://127.0.0.1:{small}/file").text == SMALL[3:203]


def test_every_request_of_many_connections_at_once_is_answered(small: int) -> None:
    lengths = [*range(0, 200_000, 500)]
    limits = httpx.Limits(max_connections=40)
    with httpx.Client(timeout=DEADLINE_S, limits=limits) as client, ThreadPoolExecutor(40) as pool:
        answers = pool.map(
            lambda n: client.post(f"http://127.0.0.1:{small}/", content=bytes(n)).text, lengths
        )
        assert list(answers) == [str(length) for length in lengths]


def test_unfinished_bodies_hold_no_more_than_a_process_may(small: int) -> None:
    head = b"POST / HTTP/1.1\r\nHost: lab\r\nContent-Length: 60000000\r\n\r\n"
    with ExitStack() as stack:
        selector = stack.enter_context(selectors.DefaultSelector())
        for _ in range(4):
            client = stack.enter_context(socket.create_connection(("127.0.0.1", small), DEADLINE_S))
            selector.register(client, selectors.EVENT_READ)
            client.sendall(head + bytes(5 << 20))
        # The last of them, in the order in which the server reads.
        refused = selector.select(DEADLINE_S)[0][0].fileobj
        assert isinstance(refused, socket.socket)
        assert refused.recv(65536).startswith(b"HTTP/1.1 503 Service Unavailable\r\n")
        assert httpx.get(f"http://127.0.0.1:{small}/", timeout=DEADLINE_S).text == "0"
