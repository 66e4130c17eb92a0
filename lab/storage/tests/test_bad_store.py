# SPDX-License-Identifier: GPL-2.0-or-later
"""A store that answers slowly, in part, wrongly or not at all: each is an error with a name, and nothing half-fetched is used."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kernels.artifacts.signature import Seal
from kernels.artifacts.store import KEYS, ArtifactStore
from kernels.errors import ArtifactCorrupt, ArtifactMissing
from lab.errors import StoreLacks, StoreUnreachable
from lab.storage import bucket
from lab.storage.artifacts import fetch_artifact, send_artifact
from lab.storage.store import Store
from lab.tests.bad_store import BadStore, Behaviour, bad_store, spoilt
from lab.tests.made import files_of, key_of, make_artifact
from lab.tests.stores import bucket_store
from lab.tests.stores import moto as moto

KEY = key_of(1)


@pytest.fixture
def server(moto: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[BadStore]:
    """A server that can be made to answer badly, asked once each time."""
    monkeypatch.setattr(bucket, "TRIES", 1)
    monkeypatch.setattr(BadStore, "slow_s", 0.05)
    (tmp_path / "server").mkdir()
    with bad_store("127.0.0.1", moto, tmp_path / "server") as bad_server:
        yield bad_server


@pytest.fixture
def store(settings: Any, server: BadStore) -> Store:
    return bucket_store(settings, server.address)


@pytest.fixture
def here(tmp_path: Path) -> Path:
    return tmp_path / "here"


@pytest.fixture
def there(tmp_path: Path) -> ArtifactStore:
    """Another machine of the same lab."""
    return ArtifactStore(tmp_path / "there" / "artifacts", Seal(tmp_path / "here" / KEYS))


@pytest.mark.parametrize(
    ("how", "error"),
    [("partial", StoreUnreachable), ("refuses", StoreUnreachable), ("lacks", StoreLacks)],
)
def test_a_bad_answer_is_an_error_of_one_line_that_names_the_store(
    store: Store, server: BadStore, how: Behaviour, error: type[Exception]
) -> None:
    store.put("runs/1-1/console.log", io.BytesIO(b"x" * 10_000))
    server.behave(how)
    with pytest.raises(error) as raised:
        store.read("runs/1-1/console.log", 20_000)
    assert store.address in str(raised.value)
    assert "\n" not in str(raised.value)
    server.behave("well")
    assert store.read("runs/1-1/console.log", 20_000) == b"x" * 10_000


def test_a_slow_answer_is_waited_for(store: Store, server: BadStore) -> None:
    server.behave("slow")
    store.put("runs/1-1/console.log", io.BytesIO(b"late"))
    assert store.read("runs/1-1/console.log", 100) == b"late"
    assert spoilt(server.folder) >= 2


@pytest.mark.process
@pytest.mark.parametrize(
    ("how", "error"),
    [
        ("partial", StoreUnreachable),
        ("wrong", ArtifactCorrupt),
        ("refuses", StoreUnreachable),
        ("lacks", ArtifactMissing),
    ],
)
def test_an_artifact_that_the_store_spoils_is_not_taken_and_is_whole_once_the_store_is_well(
    store: Store, server: BadStore, here: Path, there: ArtifactStore, how: Behaviour, error: type[Exception]
) -> None:
    made = make_artifact(here)
    send_artifact(store, made)
    server.behave(how)
    with pytest.raises(error):
        fetch_artifact(store, there, KEY)
    assert [path for path in there.root.rglob("*") if path.is_file()] == []
    server.behave("well")
    assert files_of(fetch_artifact(store, there, KEY)) == files_of(made)


@pytest.mark.process
@pytest.mark.parametrize("how", ["refuses", "lacks"])
def test_an_artifact_that_the_store_does_not_take_is_not_said_to_be_there(
    store: Store, server: BadStore, here: Path, how: Behaviour
) -> None:
    made = make_artifact(here)
    server.behave(how)
    with pytest.raises((StoreUnreachable, StoreLacks)):
        send_artifact(store, made)
    server.behave("well")
    assert not store.has(f"artifacts/{KEY}/metadata.json")
    assert send_artifact(store, made) > 0
