# SPDX-License-Identifier: GPL-2.0-or-later
"""The lab as machines see it: a script, two files, a place to post pieces; and that no other client sees more."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from django.core.cache import cache
from django.test import Client

from lab.models import Netboot, NetbootPiece, Target
from lab.targets.netboot.boots import Opening, open_netboot, take_pieces
from lab.targets.netboot.machine import PIECE_BYTES

pytestmark = pytest.mark.django_db

MAC = "52:54:00:6b:70:01"
KEY = "a" * 64
KERNEL = bytes(range(256)) * 1000


@pytest.fixture
def boot(settings: Any, tmp_path: Path) -> int:
    settings.HOME = tmp_path
    settings.NETBOOT_URL = "http://10.0.2.2:8000"
    cache.clear()
    for name, data in ((f"artifacts/{KEY}/bzImage", KERNEL), ("runs/1-1/initrd", b"initrd")):
        path = tmp_path / name
        path.parent.mkdir(parents=True)
        path.write_bytes(data)
    Target.objects.create(name="metal-1", driver="metal", access={"mac": MAC})
    return open_netboot(Opening("metal-1", KEY, "runs/1-1/initrd", "quiet ip=dhcp", 600))


@pytest.fixture
def script(boot: int, client: Client) -> str:
    return client.get(f"/netboot/{MAC}/{boot}.ipxe").content.decode()


@pytest.fixture
def place(script: str) -> str:
    """The address below which the machine posts its records."""
    match = re.search(r"kperflab\.report=http://10\.0\.2\.2:8000(/netboot/[\w-]{43})", script)
    assert match
    return match[1]


@pytest.fixture
def files(script: str) -> str:
    """The address below which its kernel and initrd are."""
    match = re.search(r"kernel http://10\.0\.2\.2:8000(/netboot/\d+\.[0-9a-f]{64})/kernel ", script)
    assert match
    return match[1]


def test_a_machine_gets_its_script_once_and_then_its_own_disk(boot: int, client: Client) -> None:
    for _ in range(2):
        answer = client.get(f"/netboot/{MAC}.ipxe")
        chain = f"chain http://10.0.2.2:8000/netboot/{MAC}/{boot}.ipxe || exit 1"
        assert answer.content.decode().splitlines() == ["#!ipxe", chain, "exit"]
        assert (answer.status_code, answer["Cache-Control"]) == (200, "no-store")
    answer = client.get(f"/netboot/{MAC}/{boot}.ipxe")
    lines = answer.content.decode().splitlines()
    assert (answer.status_code, lines[0], answer["Cache-Control"]) == (200, "#!ipxe", "no-store")
    (kernel,) = [line for line in lines if line.startswith("kernel ")]
    assert re.fullmatch(
        r"kernel http://10\.0\.2\.2:8000/netboot/\d+\.[0-9a-f]{64}/kernel initrd=initrd quiet ip=dhcp "
        r"kperflab\.report=http://10\.0\.2\.2:8000/netboot/[\w-]{43} \|\| goto failed",
        kernel,
    )
    again = client.get(f"/netboot/{MAC}.ipxe").content.decode()
    assert again.splitlines()[-1] == "exit"
    assert "kernel" not in again
    again = client.get(f"/netboot/{MAC}/{boot}.ipxe").content.decode()
    assert again.splitlines()[-1] == "exit"
    assert Netboot.objects.get().fetches == 3


def test_a_strange_machine_goes_on_to_its_own_disk(boot: int, client: Client) -> None:
    strange = ("52:54:00:00:00:00", "nonsense", "%0a", "${mac}")
    for mac in (*strange, *(f"{mac}/{boot}" for mac in strange), f"{MAC}/{boot + 1}", f"{MAC}/{'9' * 100}"):
        answer = client.get(f"/netboot/{mac}.ipxe")
        assert answer.content.decode().splitlines()[-1] == "exit"
        assert mac not in answer.content.decode()
    assert Netboot.objects.get().fetches == 0


def test_asking_for_the_head_alone_is_no_fetch(boot: int, client: Client) -> None:
    assert client.head(f"/netboot/{MAC}.ipxe").status_code == 405
    assert client.head(f"/netboot/{MAC}/{boot}.ipxe").status_code == 405
    assert Netboot.objects.get().fetches == 0


def test_kernel_and_initrd_are_streamed_whole(files: str, client: Client) -> None:
    kernel = client.get(f"{files}/kernel")
    assert (kernel.streaming, kernel["Content-Length"]) == (True, str(len(KERNEL)))
    assert kernel.getvalue() == KERNEL
    assert client.get(f"{files}/initrd").getvalue() == b"initrd"


@pytest.mark.parametrize(
    ("asked", "status", "said", "got"),
    [
        ("bytes=0-9", 206, "bytes 0-9/256000", KERNEL[:10]),
        ("bytes=255990-", 206, "bytes 255990-255999/256000", KERNEL[-10:]),
        ("bytes=-10", 206, "bytes 255990-255999/256000", KERNEL[-10:]),
        ("bytes=0-999999999", 206, "bytes 0-255999/256000", KERNEL),
        ("bytes=256000-", 416, "bytes */256000", b""),
        ("bytes=9-3", 416, "bytes */256000", b""),
        ("bytes=0-1,5-6", 200, None, KERNEL),
        ("bytes=-", 200, None, KERNEL),
        ("bytes=" + "9" * 5000 + "-", 200, None, KERNEL),
        ("lines=1-2", 200, None, KERNEL),
    ],
)
def test_a_range_is_answered_as_the_standard_says(
    files: str, client: Client, asked: str, status: int, said: str | None, got: bytes
) -> None:
    answer = client.get(f"{files}/kernel", headers={"range": asked})
    assert (answer.status_code, answer.get("Content-Range")) == (status, said)
    assert (answer.getvalue() if answer.streaming else answer.content) == got


def test_pieces_are_kept_once(place: str, boot: int, client: Client) -> None:
    def post(number: int, data: bytes) -> int:
        return client.post(
            f"{place}/records/{number}", data, content_type="application/octet-stream"
        ).status_code

    assert [post(1, b"b"), post(0, b"a"), post(0, b"a"), post(0, b"other")] == [201, 201, 200, 200]
    assert take_pieces(boot, "records", 0) == [b"a", b"b"]
    assert post(999, b"early") == 409


def test_too_large_a_piece_is_refused_unread(place: str, client: Client) -> None:
    answer = client.post(
        f"{place}/records/0", bytes(PIECE_BYTES + 1), content_type="application/octet-stream"
    )
    assert answer.status_code == 413
    assert not NetbootPiece.objects.exists()


@pytest.mark.parametrize(
    "path", ["console.txt", "", "kernel/", "plan", "../../health", "records", "records/-1"]
)
def test_a_token_opens_nothing_else(place: str, client: Client, path: str) -> None:
    assert client.get(f"{place}/{path}").status_code in {301, 404}


def test_a_machine_cannot_read_what_it_handed_in(place: str, client: Client) -> None:
    client.post(f"{place}/records/0", b"x", content_type="application/octet-stream")
    assert client.get(f"{place}/records/0").status_code == 405


def test_tokens_are_not_to_be_guessed_at_leisure(files: str, client: Client, settings: Any) -> None:
    settings.API_RATES = settings.API_RATES | {"netboot": "5/min"}
    cache.clear()
    codes = [client.get(f"/netboot/{number}/kernel").status_code for number in range(7)]
    assert codes == [404] * 5 + [429] * 2
    # Who has one is not kept waiting by those who guess.
    assert client.get(f"{files}/kernel").status_code == 200


def test_no_cookie_is_asked_for_or_set(place: str, files: str, settings: Any) -> None:
    settings.ANONYMOUS_MAY_READ = False
    client = Client(enforce_csrf_checks=True)
    answer = client.post(f"{place}/records/0", b"x", content_type="application/octet-stream")
    assert (answer.status_code, len(answer.cookies)) == (201, 0)
    assert client.get(f"{files}/kernel").status_code == 404  # it has said something


def test_a_lab_without_an_address_for_machines_says_so_and_hands_out_nothing(
    boot: int, client: Client, settings: Any, caplog: pytest.LogCaptureFixture
) -> None:
    settings.NETBOOT_URL = "http://127.0.0.1:8000"
    assert client.get(f"/netboot/{MAC}.ipxe").status_code == 503
    assert client.get(f"/netboot/{MAC}/{boot}.ipxe").status_code == 503
    assert "KPERFLAB_NETBOOT_URL" in caplog.text
    assert Netboot.objects.get().fetches == 0


def test_a_kernel_that_was_removed_is_not_there(files: str, client: Client, settings: Any) -> None:
    (settings.HOME / "artifacts" / KEY / "bzImage").unlink()
    assert client.get(f"{files}/kernel").status_code == 404
