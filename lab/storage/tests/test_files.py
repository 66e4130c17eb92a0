# SPDX-License-Identifier: GPL-2.0-or-later
"""Files of builds and runs: here first, then as another machine writes them, then in the store, else why not."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from django.core.cache import cache

from lab.errors import FileGone, StoreUnreachable
from lab.storage.artifacts import send_artifact
from lab.storage.files import TAIL_BYTES, KeptFile, Piece, drop_tail, name_of, put_tail
from lab.storage.signing_keys import register_key
from lab.storage.store import Store
from lab.tests.made import make_artifact
from lab.tests.stores import directory_store
from lab.tests.stores import moto as moto
from lab.tests.stores import store as store

NAME = "runs/7-1/console.log"


@pytest.fixture(autouse=True)
def home(settings: Any, tmp_path: Path) -> Path:
    settings.HOME = tmp_path / "home"
    settings.HOME.mkdir()
    cache.clear()
    return tmp_path / "home"


def write(home: Path, data: bytes) -> Path:
    path = home / NAME
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def test_a_file_of_this_machine_goes_before_the_stores(store: Store, home: Path) -> None:
    store.put(NAME, b"there")
    assert KeptFile(NAME).piece(0, 100) == Piece(b"there", 0, 5)
    write(home, b"here it is")
    assert KeptFile(NAME).piece(-4, 100) == Piece(b"t is", 6, 10)
    assert b"".join(KeptFile(NAME).pieces()) == b"here it is"


def test_a_large_file_comes_in_pieces_and_whole(store: Store) -> None:
    data = bytes(range(256)) * 12_000
    store.put(NAME, data)
    pieces = list(KeptFile(NAME).pieces())
    assert len(pieces) > 2
    assert b"".join(pieces) == data


def test_the_end_of_what_another_machine_writes_is_followed(
    settings: Any, tmp_path: Path, home: Path
) -> None:
    store = directory_store(settings, tmp_path / "store")
    there = tmp_path / "there.log"
    there.write_bytes(b"one\n")
    put_tail(NAME, there)
    assert KeptFile(NAME).piece(0, 100) == Piece(b"one\n", 0, 4)
    there.write_bytes(b"one\n" + b"x" * TAIL_BYTES + b"two\n")
    put_tail(NAME, there)
    size = 8 + TAIL_BYTES
    assert KeptFile(NAME).piece(4, 1 << 20) == Piece(b"x" * (TAIL_BYTES - 4) + b"two\n", 8, size)
    assert KeptFile(NAME).piece(size - 4, 100) == Piece(b"two\n", size - 4, size)
    assert KeptFile(NAME).piece(-3, 2) == Piece(b"wo", size - 3, size)
    store.put(NAME, there.read_bytes())
    drop_tail(NAME)
    assert KeptFile(NAME).piece(0, 5).data == b"one\nx"


@pytest.mark.process
@pytest.mark.django_db
def test_a_log_of_a_build_is_found_under_its_own_name_and_in_the_artifact(
    settings: Any, tmp_path: Path, home: Path
) -> None:
    store = directory_store(settings, tmp_path / "store")
    store.put("logs/abc.log", b"error: no\n")
    assert KeptFile("objects/logs/abc.log").piece(0, 100).data == b"error: no\n"
    made = make_artifact(tmp_path / "there", log="CC everything\n")
    register_key(tmp_path / "there")
    send_artifact(store, made)
    assert KeptFile(f"artifacts/{made.key}/build.log").piece(0, 100).data == b"CC everything\n"
    assert KeptFile(f"artifacts/{made.key}/reproducer.sh").piece(0, 1).data


def test_what_is_nowhere_says_why(settings: Any, tmp_path: Path) -> None:
    with pytest.raises(FileGone, match="No such file") as caught:
        KeptFile(NAME).piece(0, 1)
    assert not caught.value.removed
    directory_store(settings, tmp_path / "store")
    removed = KeptFile(NAME, datetime(2026, 11, 22, tzinfo=UTC))
    with pytest.raises(FileGone, match="removed on 2026-11-22 by the retention policy") as caught:
        removed.pieces()
    assert caught.value.removed
    with pytest.raises(FileGone):
        KeptFile("/nowhere/at/all").piece(0, 1)
    with pytest.raises(FileGone):
        KeptFile(f"artifacts/{'ab' * 32}/build.log").piece(0, 1)


def test_a_store_that_does_not_answer_is_told(
    settings: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory_store(settings, tmp_path / "store")

    def away(*_: object) -> None:
        raise StoreUnreachable("the store does not answer")

    monkeypatch.setattr(Store, "part", away)
    with pytest.raises(FileGone, match="cannot be read now: the store does not answer"):
        KeptFile(NAME).piece(0, 1)


def test_names_are_below_the_state_root(home: Path) -> None:
    assert name_of(home / NAME, home) == NAME
    assert name_of(Path("/elsewhere/x"), home) == "/elsewhere/x"
