# SPDX-License-Identifier: GPL-2.0-or-later
from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from workers.drivers.leftovers import BootId, Traces, process_alive, process_started


def test_a_boots_id_is_read_back_from_a_domains_name(tmp_path: Path) -> None:
    boot = BootId.new()
    assert BootId.read(f"{Traces(tmp_path).prefix}{boot}") == boot


@pytest.mark.parametrize("name", ["debian12", "kperflab-deadbeef-", "12-x-deadbeef"])
def test_a_name_without_an_id_is_none_of_ours(name: str) -> None:
    with pytest.raises(ValueError, match="does not end"):
        BootId.read(name)


def test_two_boots_of_one_process_differ_but_share_their_owner() -> None:
    first, other = BootId.new(), BootId.new()
    assert first != other
    assert (
        (first.pid, first.started)
        == (other.pid, other.started)
        == (os.getpid(), process_started(os.getpid()))
    )


def test_homes_on_one_host_have_domains_of_different_names(tmp_path: Path) -> None:
    assert Traces(tmp_path / "a").prefix != Traces(tmp_path / "b").prefix


def test_a_socket_fits_its_path_however_long_the_homes_is(tmp_path: Path) -> None:
    traces = Traces(tmp_path / ("x" * 200))
    assert len(bytes(traces.sockets / str(BootId.new()) / "records")) < 108


@pytest.mark.process
def test_this_process_lives_and_one_that_ended_does_not() -> None:
    started = process_started(os.getpid())
    assert process_alive(os.getpid(), started)
    ended = subprocess.Popen(["true"])
    ended.wait()
    assert not process_alive(ended.pid, started)


def test_a_later_process_of_the_same_number_is_another_one() -> None:
    assert not process_alive(os.getpid(), process_started(os.getpid()) - 1)


def test_what_a_boot_left_in_files_is_found_and_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Traces, "sockets", tmp_path / "run")
    traces, boot = Traces(tmp_path), BootId.new()
    for directory in (traces.sockets, traces.overlays):
        (directory / str(boot)).mkdir(parents=True)
        (directory / str(boot) / "file").touch()
    (traces.overlays / "lost+found").mkdir()
    assert traces.boots() == {boot}
    traces.remove(boot)
    assert traces.boots() == set()
    assert (traces.overlays / "lost+found").exists()
    traces.remove(boot)  # nothing left is fine too
