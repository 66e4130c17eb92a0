# SPDX-License-Identifier: GPL-2.0-or-later
"""Boots over the network in the tables: who gets what, once, within bounds; and what is left behind."""

from __future__ import annotations

import os
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from kernels.artifacts.store import ArtifactStore
from lab.errors import NetbootClosed, PieceRefused, SettingWrong, StoreLacks, UnknownRow
from lab.models import Netboot, NetbootPiece, Target
from lab.storage.artifacts import send_artifact
from lab.storage.directory import DirectoryStorage
from lab.storage.signing_keys import register_key
from lab.storage.store import Store
from lab.targets.netboot import machine
from lab.targets.netboot.address import netboot_url
from lab.targets.netboot.boots import (
    Opening,
    close_netboot,
    extend_netboot,
    forget_old_netboots,
    left_on,
    netboot_progress,
    open_netboot,
    take_pieces,
)
from lab.targets.netboot.files import initrd_file, kernel_file, offer_initrd, withdraw_initrd
from lab.targets.netboot.machine import AHEAD, Handout, boot_for, file_of, hand_out, keep_piece
from lab.targets.tests.asking import ask
from lab.tests.made import make_artifact

pytestmark = pytest.mark.django_db

MAC = "52:54:00:6b:70:01"


@pytest.fixture
def metal() -> Target:
    return Target.objects.create(name="metal-1", driver="metal", access={"mac": MAC})


def opened(lifetime_s: float = 600) -> int:
    return open_netboot(Opening("metal-1", "a" * 64, "runs/1-1/initrd", "quiet ip=dhcp", lifetime_s))


def handed(mac: str = MAC) -> Handout:
    handout = ask(mac, "10.0.2.15")
    assert handout is not None
    return handout


def test_a_script_is_handed_out_once_and_further_asking_is_counted(metal: Target) -> None:
    boot = opened()
    first = handed("52-54-00-6B-70-01")
    assert (first.boot_id, first.cmdline) == (boot, "quiet ip=dhcp")
    assert ask(MAC, "10.0.2.15") is None
    assert ask(MAC, "10.0.2.99") is None
    progress = netboot_progress(boot)
    assert (progress.fetches, progress.fetched_from, progress.loaded) == (3, "10.0.2.15", False)


def test_an_answer_that_nobody_got_uses_nothing_up(metal: Target) -> None:
    boot = opened()
    assert boot_for(MAC, "10.0.2.15") == boot_for(MAC, "10.0.2.15") == boot
    assert netboot_progress(boot).fetches == 0
    assert handed().boot_id == boot


def test_an_answer_about_the_boot_before_opens_nothing_of_the_next(metal: Target) -> None:
    before = boot_for(MAC, "10.0.2.15") or opened()
    boot = opened()
    assert hand_out(MAC, before, "10.0.2.15") is None
    assert netboot_progress(boot).fetches == 0
    assert hand_out("52:54:00:6b:70:02", boot, "10.0.2.15") is None
    assert handed().boot_id == boot


def test_the_token_is_known_to_the_machine_alone(metal: Target) -> None:
    before = Netboot.objects.get(pk=opened()).token_sha256
    token = handed().token
    row = Netboot.objects.get()
    assert row.token_sha256 != before
    assert token not in str(vars(row))
    assert len(token) >= 43  # 256 bits


@pytest.mark.parametrize("mac", ["52:54:00:6b:70:02", "", "x" * 5000, "52:54:00:6b:70:01' OR 1=1", "%"])
def test_other_cards_get_nothing(metal: Target, mac: str) -> None:
    opened()
    assert ask(mac, "10.0.2.15") is None
    assert netboot_progress(Netboot.objects.get().pk).fetches == 0


def test_an_address_that_is_none_is_not_kept(metal: Target) -> None:
    opened()
    assert ask(MAC, "unknown") is not None
    assert Netboot.objects.get().fetched_from is None


def test_a_target_that_is_not_metal_is_never_booted_so(metal: Target) -> None:
    opened()
    Target.objects.filter(pk=metal.pk).update(driver="libvirt")
    assert ask(MAC, "") is None


def test_nothing_goes_on_after_a_boot_is_over(metal: Target) -> None:
    boot = opened()
    handout = handed()
    token = handout.token
    assert keep_piece(token, "records", 0, b"x")
    close_netboot(boot)
    for refused in (
        lambda: file_of(handout.files_token, "kernel"),
        lambda: keep_piece(token, "records", 1, b"y"),
    ):
        with pytest.raises(NetbootClosed):
            refused()
    assert not NetbootPiece.objects.exists()
    assert ask(MAC, "") is None


def test_a_boot_expires_unless_it_is_extended(metal: Target) -> None:
    boot = opened(lifetime_s=-1)
    assert ask(MAC, "") is None
    extend_netboot(boot, 60)
    token = handed().token
    assert keep_piece(token, "records", 0, b"x")
    extend_netboot(boot, -1)
    with pytest.raises(NetbootClosed):
        keep_piece(token, "records", 1, b"y")


def test_a_new_boot_ends_the_one_before(metal: Target) -> None:
    opened()
    token = handed().token
    opened()
    with pytest.raises(NetbootClosed):
        keep_piece(token, "records", 0, b"late")
    assert handed().token != token


@pytest.fixture
def files(settings: Any, tmp_path: Path) -> Path:
    settings.HOME = tmp_path
    for name, data in ((f"artifacts/{'a' * 64}/bzImage", b"kernel"), ("runs/1-1/initrd", b"the initrd")):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_bytes(data)
    return tmp_path


def test_files_are_those_of_the_boot_and_fetching_the_initrd_is_noticed(metal: Target, files: Path) -> None:
    boot = opened()
    token = handed().files_token
    kernel = file_of(token, "kernel")
    assert (kernel.size, kernel.read(2, 3)) == (6, b"rne")
    assert not netboot_progress(boot).loaded
    assert file_of(token, "initrd").read(0, 100) == b"the initrd"
    assert netboot_progress(boot).loaded


def test_files_are_closed_once_the_machine_has_said_something(metal: Target, files: Path) -> None:
    opened()
    handout = handed()
    keep_piece(handout.token, "records", 0, b"hello")
    with pytest.raises(NetbootClosed):
        file_of(handout.files_token, "kernel")


def test_neither_token_does_what_the_other_does(metal: Target, files: Path) -> None:
    opened()
    handout = handed()
    with pytest.raises(NetbootClosed):
        file_of(handout.token, "kernel")
    with pytest.raises(NetbootClosed):
        keep_piece(handout.files_token, "records", 0, b"x")


@pytest.mark.process
def test_the_files_come_from_the_store_where_the_host_has_none(
    metal: Target, settings: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker, web = tmp_path / "worker", tmp_path / "web"
    settings.HOME = worker
    key = make_artifact(worker).key
    register_key(worker)
    (worker / "runs/1-1").mkdir(parents=True)
    (worker / "runs/1-1/initrd").write_bytes(b"the initrd")
    (tmp_path / "store").mkdir()
    store = Store(DirectoryStorage(str(tmp_path / "store")))
    monkeypatch.setattr("lab.targets.netboot.files.lab_store", lambda: store)
    send_artifact(store, ArtifactStore(worker / "artifacts").get(key))
    offer_initrd("runs/1-1/initrd")
    settings.HOME = web
    kernel, initrd = kernel_file(key), initrd_file("runs/1-1/initrd")
    whole = (worker / "artifacts" / key / "bzImage").read_bytes()
    assert (kernel.size, kernel.read(0, kernel.size)) == (len(whole), whole)
    assert (initrd.size, initrd.read(4, 3)) == (10, b"ini")
    withdraw_initrd("runs/1-1/initrd")
    with pytest.raises(StoreLacks):
        initrd_file("runs/1-1/initrd")


@pytest.mark.parametrize(
    "token", ["", "x", "a" * 64, "../../etc/passwd", "\0", "1.", "1." + "0" * 64, "9" * 5000 + ".x"]
)
def test_a_token_that_is_none_opens_nothing(metal: Target, token: str) -> None:
    opened()
    handed()
    with pytest.raises(NetbootClosed):
        file_of(token, "initrd")


def test_the_hash_that_stands_in_before_the_fetch_is_no_token(metal: Target) -> None:
    row = Netboot.objects.get(pk=opened())
    with pytest.raises(NetbootClosed):
        file_of(row.token_sha256, "kernel")


def test_a_late_piece_costs_no_more_than_an_early_one(metal: Target) -> None:
    """A day of heartbeats has 86,400 of them."""
    opened()
    token = handed().token
    for number in range(AHEAD + 2):
        with CaptureQueriesContext(connection) as asked:
            keep_piece(token, "records", number, b"")
        assert not [query["sql"] for query in asked if "COUNT(" in query["sql"]]
    assert NetbootPiece.objects.count() == AHEAD + 2


def test_pieces_are_read_in_order_once_each_whatever_order_they_came_in(metal: Target) -> None:
    boot = opened()
    token = handed().token
    assert [
        keep_piece(token, "records", number, data) for number, data in ((1, b"b"), (0, b"a"), (3, b"d"))
    ] == [True] * 3
    assert take_pieces(boot, "records", 0) == [b"a", b"b"]
    assert keep_piece(token, "records", 1, b"b") is False
    assert take_pieces(boot, "records", 2) == []
    assert keep_piece(token, "records", 2, b"c")
    assert take_pieces(boot, "records", 2) == [b"c", b"d"]
    assert not NetbootPiece.objects.exclude(data=b"").exists()
    assert netboot_progress(boot).received == 4


def test_streams_are_numbered_apart(metal: Target) -> None:
    boot = opened()
    token = handed().token
    keep_piece(token, "records", 0, b"r")
    keep_piece(token, "console", 0, b"c")
    assert (take_pieces(boot, "records", 0), take_pieces(boot, "console", 0)) == ([b"r"], [b"c"])


def test_what_a_machine_may_send_is_bounded(metal: Target, monkeypatch: pytest.MonkeyPatch) -> None:
    opened()
    token = handed().token
    with pytest.raises(PieceRefused, match="long before its time"):
        keep_piece(token, "records", AHEAD, b"")
    with pytest.raises(PieceRefused, match="no stream"):
        keep_piece(token, "passwords", 0, b"")
    monkeypatch.setattr(machine, "PIECE_BYTES", 10)
    monkeypatch.setattr(machine, "BOOT_BYTES", 15)
    monkeypatch.setattr(machine, "MOST_PIECES", 4)
    with pytest.raises(PieceRefused, match="too large"):
        keep_piece(token, "records", 0, bytes(11))
    keep_piece(token, "records", 0, bytes(10))
    with pytest.raises(PieceRefused, match="all that it may") as refused:
        keep_piece(token, "records", 1, bytes(6))
    assert refused.value.too_much
    assert keep_piece(token, "records", 1, bytes(5))
    with pytest.raises(PieceRefused, match="too many"):
        keep_piece(token, "records", 4, b"")


def test_a_boot_whose_process_is_gone_or_that_expired_may_have_left_its_machine_on(metal: Target) -> None:
    boot = opened()
    assert left_on() == []
    Netboot.objects.filter(pk=boot).update(owner=f"{os.uname().nodename}:4194305:1")
    assert [(netboot.id, netboot.target) for netboot in left_on()] == [(boot, "metal-1")]
    close_netboot(boot)
    assert left_on() == []
    late = opened(lifetime_s=-1)
    assert [netboot.id for netboot in left_on()] == [late]


def test_old_boots_are_forgotten(metal: Target) -> None:
    opened()
    boot = opened()
    assert forget_old_netboots() == 0
    Netboot.objects.exclude(pk=boot).update(closed_at=timezone.now() - timedelta(days=8))
    assert forget_old_netboots() == 1
    assert Netboot.objects.get().pk == boot


def test_a_boot_needs_a_target_that_is_there() -> None:
    with pytest.raises(UnknownRow, match="metal-1"):
        opened()


@pytest.mark.parametrize(
    "url",
    ["http://127.0.0.1:8000", "https://10.0.0.1", "http://lab:8000", "", "ftp://10.0.0.1", "http://[::1]"],
)
def test_an_address_no_machine_can_use_is_refused_with_the_setting(settings: Any, url: str) -> None:
    settings.NETBOOT_URL = url
    with pytest.raises(SettingWrong, match="KPERFLAB_NETBOOT_URL"):
        netboot_url()


def test_an_ipv4_address_with_a_path_is_fine(settings: Any) -> None:
    settings.NETBOOT_URL = "http://10.0.2.2:8000/lab/"
    assert netboot_url() == "http://10.0.2.2:8000/lab"
