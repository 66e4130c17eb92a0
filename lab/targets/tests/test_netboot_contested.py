# SPDX-License-Identifier: GPL-2.0-or-later
"""A client that knows a machine's card, or sees its tokens, cannot read its boot without being noticed."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from lab.errors import NetbootClosed
from lab.models import Netboot, NetbootPiece, Target
from lab.targets.netboot.boots import Opening, netboot_progress, open_netboot
from lab.targets.netboot.machine import Handout, boot_for, file_of, hand_out, keep_piece
from lab.targets.tests.asking import ask

pytestmark = [pytest.mark.django_db, pytest.mark.hostile]

MAC = "52:54:00:6b:70:01"
MACHINE, OTHER = "10.0.2.15", "10.0.2.99"
NOTHING = "there is no such boot, or it is over"


@pytest.fixture
def metal(settings: Any, tmp_path: Path) -> Target:
    settings.HOME = tmp_path
    settings.NETBOOT_URL = "http://10.0.2.2:8000"
    kernel = tmp_path / "artifacts" / ("a" * 64)
    kernel.mkdir(parents=True)
    (kernel / "bzImage").write_bytes(b"the kernel")
    (tmp_path / "initrd").write_bytes(b"the initrd")
    return Target.objects.create(name="metal-1", driver="metal", access={"mac": MAC})


def opened(address: str = MACHINE) -> tuple[int, Handout]:
    boot = open_netboot(Opening("metal-1", "a" * 64, "initrd", "quiet", 600))
    handout = ask(MAC, address)
    assert handout is not None
    return boot, handout


def alarm(boot: int) -> str:
    return netboot_progress(boot).alarm


def test_a_machine_that_starts_again_is_no_alarm(metal: Target) -> None:
    boot, _ = opened()
    assert ask(MAC, MACHINE) is None
    assert (alarm(boot), netboot_progress(boot).fetches) == ("", 2)


@pytest.mark.parametrize("mac", [MAC, MAC.upper(), MAC.replace(":", "-")])
def test_a_script_that_two_ask_for_is_an_alarm(metal: Target, mac: str) -> None:
    boot, _ = opened()
    assert ask(mac, OTHER) is None
    assert alarm(boot) == f"its script concerned two addresses, {MACHINE} and {OTHER}"


def test_who_was_faster_than_the_machine_is_found_out_when_the_machine_asks(metal: Target) -> None:
    boot, _ = opened(OTHER)
    assert ask(MAC, MACHINE) is None
    assert alarm(boot) == f"its script concerned two addresses, {OTHER} and {MACHINE}"


def test_of_two_who_know_which_boot_waits_one_gets_it_and_the_other_is_an_alarm(metal: Target) -> None:
    boot = open_netboot(Opening("metal-1", "a" * 64, "initrd", "quiet", 600))
    assert boot_for(MAC, OTHER) == boot_for(MAC, MACHINE) == boot
    assert hand_out(MAC, boot, OTHER) is not None
    assert hand_out(MAC, boot, MACHINE) is None
    assert alarm(boot) == f"its script concerned two addresses, {OTHER} and {MACHINE}"


@pytest.mark.parametrize("part", ["kernel", "initrd"])
def test_files_go_to_who_fetched_the_script(metal: Target, part: Any) -> None:
    boot, handout = opened()
    with pytest.raises(NetbootClosed, match=NOTHING):
        file_of(handout.files_token, part, OTHER)
    assert alarm(boot) == f"its {part} concerned two addresses, {MACHINE} and {OTHER}"
    assert file_of(handout.files_token, part, MACHINE).read(0, 3) == b"the"


@pytest.mark.parametrize("stream", ["records", "console", "kexec"])
def test_pieces_come_from_one_address(metal: Target, stream: str) -> None:
    boot, handout = opened()
    assert keep_piece(handout.token, stream, 0, b"mine", MACHINE)
    with pytest.raises(NetbootClosed, match=NOTHING):
        keep_piece(handout.token, stream, 1, b"theirs", OTHER)
    assert alarm(boot) == f"pieces of its records concerned two addresses, {MACHINE} and {OTHER}"
    assert [bytes(piece.data) for piece in NetbootPiece.objects.all()] == [b"mine"]


def test_a_kernel_may_have_another_address_than_the_firmware_before_it(metal: Target) -> None:
    boot, handout = opened()
    assert keep_piece(handout.token, "records", 0, b"hello", OTHER)
    assert keep_piece(handout.token, "records", 1, b"bye", OTHER)
    assert alarm(boot) == ""


@pytest.mark.parametrize("asker", [OTHER, "10.0.2.151", "::1", "", "unknown"])
def test_a_target_with_an_address_gives_to_no_other_and_takes_from_no_other(
    metal: Target, asker: str, caplog: pytest.LogCaptureFixture
) -> None:
    metal.access["address"] = MACHINE
    metal.save()
    boot = open_netboot(Opening("metal-1", "a" * 64, "initrd", "quiet", 600))
    with caplog.at_level(logging.WARNING):
        assert ask(MAC, asker) is None
    assert netboot_progress(boot).fetches == 0
    assert f"asked as machine metal-1, which has {MACHINE}" in caplog.text
    handout = ask(MAC, MACHINE)
    assert handout is not None
    with pytest.raises(NetbootClosed, match=NOTHING):
        keep_piece(handout.token, "records", 0, b"theirs", asker)
    assert keep_piece(handout.token, "records", 0, b"mine", MACHINE)
    assert Netboot.objects.get(pk=boot).alarm == ""


def test_over_http_the_callers_address_counts(metal: Target, client: Client) -> None:
    boot = open_netboot(Opening("metal-1", "a" * 64, "initrd", "quiet", 600))
    script = client.get(f"/netboot/{MAC}/{boot}.ipxe", REMOTE_ADDR=MACHINE).content.decode()
    kernel = next(word for word in script.split() if word.endswith("/kernel")).removeprefix(
        "http://10.0.2.2:8000"
    )
    report = next(word for word in script.split() if "report=" in word).partition("=")[2]
    place = report.removeprefix("http://10.0.2.2:8000")
    assert client.get(kernel, REMOTE_ADDR=OTHER).status_code == 404
    assert client.get(kernel, REMOTE_ADDR=MACHINE).status_code == 200
    for number, (asker, status) in enumerate(((MACHINE, 201), (OTHER, 404))):
        posted = client.post(
            f"{place}/records/{number}", b"x", content_type="application/octet-stream", REMOTE_ADDR=asker
        )
        assert posted.status_code == status
    assert "two addresses" in alarm(boot)
