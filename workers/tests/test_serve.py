# SPDX-License-Identifier: GPL-2.0-or-later
from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from workers.serve import serve, sign_in_line

pytestmark = pytest.mark.process

DEADLINE_S = 60.0


@pytest.fixture
def port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture
def served(tmp_path: Path, port: int) -> Iterator[subprocess.Popen[str]]:
    """`labctl serve --local` on a home of its own."""
    command = [sys.executable, "-m", "workers.labctl", "serve", "--local", "--port", str(port)]
    environment = os.environ | {"KPERFLAB_HOME": str(tmp_path)}
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        yield process
        process.kill()


def children_of(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


@pytest.mark.real
@pytest.mark.campaign
def test_the_link_that_serve_prints_signs_in_and_its_end_ends_both(
    served: subprocess.Popen[str], port: int
) -> None:
    assert served.stdout
    said = served.stdout.readline() + served.stdout.readline()
    link = re.search(rf"http://127\.0\.0\.1:{port}/sign-in/here/\S+$", said.strip())
    assert link, said
    _wait_for(f"http://127.0.0.1:{port}/health")
    with httpx.Client(follow_redirects=True, timeout=DEADLINE_S) as client:
        assert "Your work: </span>local" in client.get(link[0]).text
        assert httpx.get(link[0], timeout=DEADLINE_S).status_code == 403
    children = children_of(served.pid)
    assert len(children) >= 1
    served.send_signal(signal.SIGTERM)
    assert served.wait(DEADLINE_S) == 0
    assert not any(Path(f"/proc/{child}").exists() for child in children)


def _wait_for(address: str) -> None:
    ends = time.monotonic() + DEADLINE_S
    while True:
        try:
            assert httpx.get(address, timeout=DEADLINE_S).text == "ok\n"
        except httpx.ConnectError:
            assert time.monotonic() < ends, "the pages did not start"
            time.sleep(0.1)
        else:
            return


@pytest.mark.django_db
def test_a_port_that_is_taken_ends_it_with_the_servers_own_code(
    port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = signal.getsignal(signal.SIGTERM)
    started: list[list[str]] = []

    def start(command: list[str], **_: object) -> subprocess.Popen[bytes]:
        started.append(command)
        code = "raise SystemExit(3)" if "gunicorn" in command[0] else "import time; time.sleep(60)"
        return original([sys.executable, "-c", code])

    original = subprocess.Popen
    monkeypatch.setattr("workers.serve.subprocess.Popen", start)
    try:
        assert serve(port, say=lambda _: None) == 3
    finally:
        signal.signal(signal.SIGTERM, before)
    assert [("work" in command) for command in started] == [True, False]


@pytest.mark.django_db
def test_every_line_holds_a_link_of_its_own(port: int) -> None:
    assert f"http://127.0.0.1:{port}/sign-in/here/" in sign_in_line(port)
