# SPDX-License-Identifier: GPL-2.0-or-later
"""Compiled files from builder to builder through the store: signed by a machine of the lab, whole, or not taken."""

from __future__ import annotations

import hashlib
import io
import tarfile
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone

from kernels.artifacts.signature import Seal
from kernels.artifacts.store import KEYS
from kernels.builds.compiled_files import TRUSTED, CompiledFiles
from lab.operations.retention import expire, plan_expiry
from lab.storage import compiled_packs
from lab.storage.compiled_packs import fetch_packs, send_packs
from lab.storage.signing_keys import register_key, revoke_key
from lab.storage.store import Store
from lab.tests.at_once import at_once
from lab.tests.stores import directory_store
from lab.tests.stores import moto as moto
from lab.tests.stores import store as store

pytestmark = pytest.mark.django_db

NAMES = [f"{number:02x}/{number:060x}.{kind}" for number, kind in enumerate(("o", "k", "o"), 10)]


class Machine:
    """A builder's state root, with its key in the lab's database."""

    def __init__(self, home: Path, store: Store) -> None:
        self.home, self.store = home, store
        self.files = CompiledFiles(home / "objects" / "compiled")
        self.key = register_key(home).public

    def compiles(self, *names: str) -> None:
        """Take what a build of a trusted base wrote."""
        written = self.home / "out"
        for name in names:
            (written / name).parent.mkdir(parents=True, exist_ok=True)
            (written / name).write_bytes(whole(name.encode()))
        self.files.take(TRUSTED, written)

    def sends(self) -> int:
        return send_packs(self.store, self.home, self.files)

    def fetches(self) -> int:
        return fetch_packs(self.store, self.home, self.files, lambda: None)

    def has(self) -> list[str]:
        return [name for name in NAMES if self.files.read(TRUSTED, name) == whole(name.encode())]


def whole(data: bytes) -> bytes:
    """Return a file as the front keeps it."""
    return hashlib.blake2b(data, digest_size=32).digest() + data


@pytest.fixture
def one(tmp_path: Path, store: Store) -> Machine:
    return Machine(tmp_path / "one", store)


@pytest.fixture
def other(tmp_path: Path, store: Store) -> Machine:
    return Machine(tmp_path / "other", store)


def put(machine: Machine, members: dict[str, bytes]) -> str:
    """Put a pack of these members into the store, signed by the machine, and return its name."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        for name, data in members.items():
            about = tarfile.TarInfo(name)
            about.size = len(data)
            tar.addfile(about, io.BytesIO(data))
    digest = hashlib.sha256(packed.getvalue()).hexdigest()
    seal = Seal(machine.home / KEYS).sign(f"kperflab compiled files {digest}".encode())
    machine.store.put(f"compiled/{digest}", f"{seal.key}{seal.value}".encode() + packed.getvalue())
    return digest


def test_one_builders_files_come_to_another_once(one: Machine, other: Machine) -> None:
    one.compiles(*NAMES)
    assert one.sends() == len(NAMES)
    assert one.sends() == 0
    assert other.fetches() == len(NAMES)
    assert other.has() == NAMES
    assert other.fetches() == 0
    assert one.fetches() == 0


def test_a_pack_that_a_killed_builder_was_sending_keeps_nobody_from_the_others(
    settings: Any, tmp_path: Path
) -> None:
    store = directory_store(settings, tmp_path / "store")
    one, other = Machine(tmp_path / "one", store), Machine(tmp_path / "other", store)
    one.compiles(*NAMES)
    one.sends()
    (tmp_path / "store" / "compiled" / ".draft-0a1b2c3d").write_bytes(b"half")
    assert other.fetches() == len(NAMES)


def test_builders_of_one_machine_forget_no_pack_that_another_noted(tmp_path: Path) -> None:
    def note(builder: int) -> None:
        for number in range(20):
            compiled_packs._note(tmp_path, [f"{builder}-{number}"])

    at_once(*(partial(note, builder) for builder in range(6)))
    assert len(compiled_packs._seen(tmp_path)) == 6 * 20


def test_files_of_untrusted_bases_stay_where_they_are(one: Machine) -> None:
    written = one.home / "out"
    (written / NAMES[0]).parent.mkdir(parents=True)
    (written / NAMES[0]).write_bytes(whole(b"theirs"))
    one.files.take("base-0123", written)
    assert one.sends() == 0


def test_a_pack_from_before_a_withdrawal_of_trust_is_refused(
    one: Machine, other: Machine, caplog: pytest.LogCaptureFixture
) -> None:
    one.compiles(*NAMES)
    one.sends()
    other.files.withdrawal = "ab" * 8
    assert (other.fetches(), other.has()) == (0, [])
    assert "signature" in caplog.text


def test_builders_exchange_what_they_compile_after_a_withdrawal(one: Machine, other: Machine) -> None:
    one.files.withdrawal = other.files.withdrawal = "ab" * 8
    one.compiles(*NAMES)
    assert (one.sends(), other.fetches(), other.has()) == (len(NAMES), len(NAMES), NAMES)
    other.files.withdrawal = "cd" * 8
    assert other.has() == []


def test_a_pack_of_a_machine_whose_key_was_revoked_is_refused(
    one: Machine, other: Machine, caplog: pytest.LogCaptureFixture
) -> None:
    one.compiles(*NAMES)
    one.sends()
    revoke_key(one.key)
    assert (other.fetches(), other.has()) == (0, [])
    assert "which was revoked" in caplog.text


def test_a_pack_of_no_machine_of_this_lab_is_refused(
    one: Machine, other: Machine, caplog: pytest.LogCaptureFixture
) -> None:
    one.key = Seal(one.home / "strange").public()
    (one.home / "strange").rename(one.home / KEYS / "strange")
    (one.home / KEYS / "strange" / "artifacts.pem").rename(one.home / KEYS / "artifacts.pem")
    one.compiles(*NAMES)
    one.sends()
    assert (other.fetches(), other.has()) == (0, [])
    assert "which no machine of this lab has" in caplog.text


@pytest.mark.parametrize(("place", "reason"), [(-700, "other bytes"), (70, "signature")])
def test_a_changed_pack_is_refused(
    one: Machine, other: Machine, caplog: pytest.LogCaptureFixture, place: int, reason: str
) -> None:
    one.compiles(*NAMES)
    one.sends()
    (entry,) = one.store.entries("compiled")
    data = bytearray(one.store.read(entry.name, 1 << 20))
    data[place] ^= 1
    one.store.put(entry.name, bytes(data))
    assert (other.fetches(), other.has()) == (0, [])
    assert reason in caplog.text


@pytest.mark.parametrize(
    "name", ["../../keys/artifacts.pem", "/etc/passwd", "aa/plain.txt", f"{NAMES[0]}/more", "counts"]
)
def test_a_member_with_another_name_is_refused(one: Machine, other: Machine, name: str) -> None:
    put(one, {name: whole(b"x")})
    assert other.fetches() == 0
    assert not list(other.files.root.rglob("*.*"))


def test_a_damaged_member_is_refused(one: Machine, other: Machine, caplog: pytest.LogCaptureFixture) -> None:
    put(one, {NAMES[0]: whole(b"x")[:-1] + b"y"})
    assert (other.fetches(), other.has()) == (0, [])
    assert "none of the front's files" in caplog.text


def test_what_is_no_pack_is_refused_and_looked_at_once(
    one: Machine, other: Machine, caplog: pytest.LogCaptureFixture
) -> None:
    one.store.put(f"compiled/{'ab' * 32}", b"\xff" * 1000)
    assert other.fetches() == 0
    assert caplog.text.count("is refused") == 1
    assert other.fetches() == 0
    assert caplog.text.count("is refused") == 1


def test_the_newest_packs_come_first_within_the_bound(
    one: Machine, other: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in NAMES:
        one.compiles(name)
        one.sends()
    size = max(entry.size for entry in one.store.entries("compiled"))
    monkeypatch.setattr(compiled_packs, "MOST_AT_ONCE", 2 * size)
    assert other.fetches() == 2
    assert len(other.has()) == 2
    assert other.fetches() == len(NAMES) - 2, "packs that are here take none of the next build's room"


def test_retention_removes_old_packs(one: Machine, settings: Any) -> None:
    one.compiles(*NAMES)
    one.sends()
    assert expire(plan_expiry(home=one.home), home=one.home) == ()
    later = timezone.now() + timedelta(days=settings.KEEP_DAYS + 1)
    (went,) = expire(plan_expiry(now=later, home=one.home), home=one.home)
    assert went.kind == "compiled"
    assert list(one.store.entries("compiled")) == []
