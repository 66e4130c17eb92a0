# SPDX-License-Identifier: GPL-2.0-or-later
"""Builders of one lab answer each other's compilations of trusted bases, and none waits for a store that is down."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kernels.builds.builder import Builder, Limits
from kernels.builds.front_program import compile_front
from kernels.tests.kept import kept
from kernels.tests.pretend import PretendKernel
from lab.storage.signing_keys import register_key
from lab.tests.stores import directory_store
from workers.compiled_transfer import bring_compiled_files, send_compiled_files

pytestmark = [pytest.mark.django_db, pytest.mark.process]


@pytest.fixture(scope="module")
def pretend(tmp_path_factory: pytest.TempPathFactory) -> PretendKernel:
    return PretendKernel(tmp_path_factory.mktemp("pretend"))


def builder(home: Path, monkeypatch: pytest.MonkeyPatch, *, front: bool = True) -> Builder:
    """Return a builder of another machine of the lab."""
    program = compile_front(kept("front"))
    monkeypatch.setattr("kernels.builds.front_build.compile_front", lambda root: program)
    home.mkdir()
    register_key(home)
    return Builder(home, Limits(seconds=120, cores=2), front=front)


@pytest.mark.parametrize(("trusted", "answered"), [(True, (4, 0)), (False, (0, 4))])
def test_a_base_that_another_builder_compiled_is_answered_if_it_is_trusted(
    pretend: PretendKernel,
    settings: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    trusted: bool,
    answered: tuple[int, int],
) -> None:
    directory_store(settings, tmp_path / "store")
    request = replace(pretend.request(), trusted=trusted)
    sender = builder(tmp_path / "one", monkeypatch)
    made = sender.build(request)
    send_compiled_files(sender)
    other = builder(tmp_path / "other", monkeypatch)
    bring_compiled_files(other, lambda: None)
    again = other.build(request)
    assert (other.front_events["hit"], other.front_events["miss"]) == answered
    assert again.vmlinux.read_bytes() == made.vmlinux.read_bytes()


def test_a_store_that_is_away_costs_no_build(
    pretend: PretendKernel, settings: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory_store(settings, tmp_path / "store")
    own = builder(tmp_path / "one", monkeypatch)
    shutil.rmtree(tmp_path / "store")
    (tmp_path / "store").write_text("no folder")
    bring_compiled_files(own, lambda: None)
    own.build(replace(pretend.request(), trusted=True))
    send_compiled_files(own)
    # Fetching before the build and sending after it.
    assert own.front_events["unreachable"] == 2


def test_without_the_front_nothing_is_exchanged(
    settings: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = directory_store(settings, tmp_path / "store")
    plain = builder(tmp_path / "one", monkeypatch, front=False)
    bring_compiled_files(plain, lambda: None)
    send_compiled_files(plain)
    assert list(store.entries()) == []
