# SPDX-License-Identifier: GPL-2.0-or-later
"""The lab as a machine that waits for its next boot sees it."""

from __future__ import annotations

import re
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from django.core.cache import cache
from django.db import connections
from django.test import Client

from lab.models import Netboot, Target
from lab.targets.netboot.boots import Opening, open_netboot
from lab.targets.netboot.next_boot import leave_waiting
from lab.targets.tests.asking import ask
from web.views import netboot

MAC = "52:54:00:6b:70:01"
SUMS = ("1" * 64, "2" * 64)


def opened(follows: int | None = None) -> int:
    sums = SUMS if follows else ("", "")
    return open_netboot(Opening("metal-1", "a" * 64, "runs/1-1/initrd", "quiet ip=dhcp", 600, follows, *sums))


@pytest.fixture
def waiting(settings: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, db: None) -> tuple[int, str]:
    """A boot that went well, and the address under which its machine asks."""
    settings.HOME = tmp_path
    settings.NETBOOT_URL = "http://10.0.2.2:8000/lab"
    cache.clear()
    monkeypatch.setattr(netboot, "HOLD_S", 0.0)
    path = tmp_path / "runs/1-1/initrd"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"initrd")
    Target.objects.create(name="metal-1", driver="metal", access={"mac": MAC})
    boot = opened()
    handout = ask(MAC, "10.0.2.15")
    assert handout is not None
    leave_waiting(boot, 300)
    return boot, f"/netboot/{handout.token}/next"


def test_a_machine_is_told_files_their_sums_where_to_report_and_the_command_line(
    waiting: tuple[int, str], client: Client
) -> None:
    boot, place = waiting
    assert client.get(place).status_code == 204
    opened(follows=boot)
    answer = client.get(place)
    assert (answer.status_code, answer["Cache-Control"]) == (200, "no-store")
    match = re.fullmatch(
        r"kernel 1{64} /lab/netboot/(\d+\.[0-9a-f]{64})/kernel\n"
        r"initrd 2{64} /lab/netboot/\1/initrd\n"
        r"report /lab/netboot/([\w-]{43})\n"
        r"cmdline quiet ip=dhcp kperflab\.report=http://10\.0\.2\.2:8000/lab/netboot/\2\n",
        answer.content.decode(),
    )
    assert match
    assert client.get(f"/netboot/{match[1]}/initrd").getvalue() == b"initrd"
    assert client.post(f"/netboot/{match[2]}/kexec/0", b"no", content_type="text/plain").status_code == 201


def test_it_is_told_once(waiting: tuple[int, str], client: Client) -> None:
    boot, place = waiting
    opened(follows=boot)
    assert [client.get(place).status_code for _ in range(2)] == [200, 404]


def test_it_is_sent_away_when_its_time_is_over_or_it_boots_by_power(
    waiting: tuple[int, str], client: Client
) -> None:
    boot, place = waiting
    leave_waiting(boot, -1)
    assert client.get(place).status_code == 404
    leave_waiting(boot, 300)
    opened()
    assert client.get(place).status_code == 404


def test_only_asking_is_possible(waiting: tuple[int, str], client: Client) -> None:
    assert client.post(waiting[1]).status_code == 405


def test_tokens_cannot_be_tried_out_there_at_leisure(
    waiting: tuple[int, str], client: Client, settings: Any
) -> None:
    settings.API_RATES = settings.API_RATES | {"netboot": "5/min"}
    cache.clear()
    codes = [client.get(f"/netboot/{'x' * 40}{number}/next").status_code for number in range(7)]
    assert codes == [404] * 5 + [429] * 2
    assert client.get(waiting[1]).status_code == 204


def test_more_machines_than_may_be_held_are_answered_at_once(
    waiting: tuple[int, str], client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(netboot, "HOLD_S", 60.0)
    monkeypatch.setattr(netboot, "_holding", threading.BoundedSemaphore(1))
    netboot._holding.acquire()
    assert client.get(waiting[1]).status_code == 204


@pytest.mark.django_db(transaction=True)
def test_who_is_held_hears_of_an_offer_that_is_made_meanwhile(
    waiting: tuple[int, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(netboot, "HOLD_S", 20.0)
    boot, place = waiting
    codes: list[int] = []

    def ask() -> None:
        try:
            codes.append(Client().get(place).status_code)
        finally:
            connections.close_all()

    asking = threading.Thread(target=ask)
    asking.start()
    end = time.monotonic() + 60
    while not Netboot.objects.filter(asked_at__isnull=False).exists() and time.monotonic() < end:
        time.sleep(0.02)
    opened(follows=boot)
    asking.join(60)
    assert codes == [200]
