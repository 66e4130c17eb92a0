# SPDX-License-Identifier: GPL-2.0-or-later
"""The agent's way to the next kernel, with a lab of a few lines and a kexec that only says what it was asked."""

from __future__ import annotations

import hashlib
import os
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from workloads.guest.initramfs import AGENT

pytestmark = pytest.mark.process

KERNEL, INITRD = b"kernel" * 100_000, b"initrd" * 500_000
KEXEC_REBOOT = "reboot 45584543"
REPORT = "/lab/netboot/new"
CMDLINE = "quiet ip=dhcp isolcpus=1,2"
Answer = tuple[int, bytes]


def sum_of(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


@dataclass
class Lab:
    """Answers in turn to what a path's end asks; the last one again and again."""

    answers: dict[str, list[Answer]]
    asked: list[str] = field(default_factory=list)
    posted: dict[str, bytes] = field(default_factory=dict)
    port: int = 0

    def answer(self, path: str) -> Answer:
        self.asked.append(path)
        waiting = self.answers.get(path.rpartition("/")[2], [(404, b"")])
        return waiting.pop(0) if len(waiting) > 1 else waiting[0]

    def offer(self, kernel: bytes = KERNEL, initrd: bytes = INITRD) -> bytes:
        """Return the offer of the next kernel, with the checksums of these files."""
        lines = (
            f"kernel {sum_of(kernel)} /lab/netboot/1.a/kernel",
            f"initrd {sum_of(initrd)} /lab/netboot/1.a/initrd",
            f"report {REPORT}",
            f"cmdline {CMDLINE} kperflab.report=http://127.0.0.1:{self.port}{REPORT}",
        )
        return "".join(f"{line}\n" for line in lines).encode()


@pytest.fixture
def lab() -> Iterator[Lab]:
    lab = Lab({"kernel": [(200, KERNEL)], "initrd": [(200, INITRD)]})

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_told: object) -> None:
            pass

        def do_GET(self) -> None:
            self._say(*lab.answer(self.path))

        def do_POST(self) -> None:
            lab.posted[self.path] = self.rfile.read(int(self.headers["Content-Length"]))
            self._say(201, b"")

        def _say(self, status: int, body: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            # The agent reads no further than the status of what it posts.
            with suppress(OSError):
                self.wfile.write(body)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    lab.port = server.server_port
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    yield lab
    server.shutdown()
    server.server_close()


@pytest.fixture
def agent(lab: Lab, tmp_path: Path) -> Callable[..., list[str]]:
    """Runs it; returns what it did to the machine, line by line."""
    program, kexec = tmp_path / "agent", tmp_path / "bin" / "kexec"
    sources = [Path(__file__).with_name("agent_next.c"), AGENT / "http.c", AGENT / "next.c"]
    command = ["gcc", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", f'-DPLACE="{tmp_path}/"', f"-I{AGENT}"]
    subprocess.run([*command, "-o", program, *sources], check=True, timeout=60)
    kexec.parent.mkdir()

    def run(then: str = "kexec", kexec_says: str = "true") -> list[str]:
        kexec.write_text(
            f'#!/bin/sh\nfor word; do echo "$word"; done > {tmp_path}/kexec-was-asked\n{kexec_says}\n'
        )
        kexec.chmod(0o755)
        (tmp_path / "cmdline").write_text(
            f"quiet kperflab.then={then} kperflab.report=http://127.0.0.1:{lab.port}/lab/netboot/old kperflab.x=1\n"
        )
        environment = {"CMDLINE": str(tmp_path / "cmdline"), "THEN": then}
        environment["PATH"] = f"{kexec.parent}:{os.environ['PATH']}"
        done = subprocess.run(
            [program], env=environment, capture_output=True, text=True, timeout=60, check=True
        )
        return done.stdout.splitlines()

    return run


def test_it_asks_until_there_is_something_and_starts_that(
    lab: Lab, agent: Callable[..., list[str]], tmp_path: Path
) -> None:
    lab.answers["next"] = [(204, b""), (503, b""), (429, b""), (204, b""), (200, lab.offer())]
    assert agent()[0] == KEXEC_REBOOT
    assert lab.asked == [*["/lab/netboot/old/next"] * 5, "/lab/netboot/1.a/kernel", "/lab/netboot/1.a/initrd"]
    assert (tmp_path / "next-kernel").read_bytes() == KERNEL
    assert (tmp_path / "next-initrd").read_bytes() == INITRD
    assert (tmp_path / "kexec-was-asked").read_text().splitlines() == [
        *("-a", "-l", f"{tmp_path}/next-kernel", f"--initrd={tmp_path}/next-initrd"),
        f"--command-line={CMDLINE} kperflab.report=http://127.0.0.1:{lab.port}{REPORT}",
    ]


def test_a_machine_that_was_not_told_to_asks_nobody(lab: Lab, agent: Callable[..., list[str]]) -> None:
    assert agent(then="") == ["off"]
    assert lab.asked == []


def test_it_goes_once_nothing_follows(lab: Lab, agent: Callable[..., list[str]]) -> None:
    lab.answers["next"] = [(204, b""), (404, b"there is no such boot\n")]
    assert agent() == ["off"]
    assert len(lab.asked) == 2


@pytest.mark.parametrize(
    "spoilt",
    [
        lambda offer: offer[:-20],
        lambda offer: offer.replace(b"cmdline", b"cmdl"),
        lambda offer: offer.replace(b"kernel ", b"kernel zz"),
        lambda offer: offer.replace(b"quiet", b"quiet " * 400),
        lambda offer: b"",
        lambda offer: b"<html>" * 1000,
    ],
)
def test_half_an_answer_is_none(
    lab: Lab, agent: Callable[..., list[str]], spoilt: Callable[[bytes], bytes]
) -> None:
    lab.answers["next"] = [(200, spoilt(lab.offer()))]
    assert agent() == ["off"]
    assert len(lab.asked) == 1


@pytest.mark.parametrize(
    ("kernel", "initrd", "said"),
    [
        ((200, KERNEL), (200, INITRD[:-1]), b"kernel or initrd is not what the lab has"),
        ((200, KERNEL + b"x"), (200, INITRD), b"kernel or initrd is not what the lab has"),
        ((404, b"gone"), (200, INITRD), b"kernel and initrd could not be fetched: status 404 and 0"),
        ((200, KERNEL), (404, b"gone"), b"kernel and initrd could not be fetched: status 200 and 404"),
    ],
)
def test_what_is_not_the_labs_is_not_started_and_the_lab_is_told_why(
    lab: Lab, agent: Callable[..., list[str]], kernel: Answer, initrd: Answer, said: bytes, tmp_path: Path
) -> None:
    lab.answers |= {"next": [(200, lab.offer())], "kernel": [kernel], "initrd": [initrd]}
    assert agent() == ["off"]
    assert lab.posted[f"{REPORT}/kexec/0"].startswith(said)
    assert not (tmp_path / "kexec-was-asked").exists()


def test_a_kernel_that_refuses_is_quoted(lab: Lab, agent: Callable[..., list[str]]) -> None:
    lab.answers["next"] = [(200, lab.offer())]
    assert agent(kexec_says="echo 'kexec_load failed: Operation not permitted' >&2; exit 1") == ["off"]
    said = b"this kernel cannot load another: kexec_load failed: Operation not permitted"
    assert lab.posted == {f"{REPORT}/kexec/0": said}


def test_a_kernel_that_loads_but_does_not_start_is_told_too(
    lab: Lab, agent: Callable[..., list[str]]
) -> None:
    lab.answers["next"] = [(200, lab.offer())]
    assert agent() == [KEXEC_REBOOT, "off"]
    assert lab.posted[f"{REPORT}/kexec/0"].startswith(b"this kernel does not start what it has loaded: ")
