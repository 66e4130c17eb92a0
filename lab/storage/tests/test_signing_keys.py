# SPDX-License-Identifier: GPL-2.0-or-later
"""The machines' public keys are rows of the lab, and an operator ends one's word."""

from __future__ import annotations

import shutil
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from kernels.artifacts.signature import Seal
from kernels.artifacts.store import KEYS, METADATA
from kernels.errors import ArtifactCorrupt, ArtifactMissing
from lab.errors import StoreLacks
from lab.models import SigningKey
from lab.storage.artifacts import artifacts_of, fetch_artifact, fetch_papers, in_store, send_artifact
from lab.storage.signing_keys import heed_revocation, is_ours, register_key
from lab.storage.store import Store
from lab.targets.netboot.files import kernel_file
from lab.tests.made import files_of, key_of, make_artifact
from lab.tests.stores import directory_store

pytestmark = [pytest.mark.hostile, pytest.mark.django_db]

KEY = key_of(1)


@pytest.fixture
def folder(settings: Any, tmp_path: Path) -> Store:
    return directory_store(settings, tmp_path / "store")


@pytest.fixture
def builder(tmp_path: Path) -> Path:
    """The state root of a machine that builds."""
    home = tmp_path / "builder"
    register_key(home)
    return home


@pytest.fixture
def booter(tmp_path: Path) -> Path:
    """The state root of one that boots."""
    return tmp_path / "booter"


def listed() -> str:
    out = StringIO()
    call_command("signing_keys", stdout=out)
    return out.getvalue()


def revoke(digits: str) -> None:
    call_command("signing_keys", "--revoke", digits, stdout=StringIO())


def test_a_machine_is_written_down_once(builder: Path) -> None:
    first = register_key(builder)
    assert register_key(builder) == first == SigningKey.objects.get()
    assert first.public == Seal(builder / KEYS).public()
    assert is_ours(first.public) is True
    assert is_ours("f" * 64) is None
    assert f"{first.public}  {first.machine}, since " in listed()


@pytest.mark.process
def test_what_a_machine_of_the_lab_signed_is_taken(folder: Store, builder: Path, booter: Path) -> None:
    made = make_artifact(builder)
    send_artifact(folder, made)
    fetched = fetch_artifact(folder, artifacts_of(booter), KEY)
    assert files_of(fetched) == files_of(made)
    assert artifacts_of(booter).verify(KEY).metadata == made.metadata
    assert not (booter / KEYS).exists()


def test_what_a_stranger_put_into_the_store_is_refused(folder: Store, tmp_path: Path, booter: Path) -> None:
    """A client that may write to the bucket has no machine's key."""
    send_artifact(folder, make_artifact(tmp_path / "stranger"))
    with pytest.raises(ArtifactCorrupt, match="which no machine of this lab has"):
        fetch_artifact(folder, artifacts_of(booter), KEY)
    with pytest.raises(ArtifactCorrupt, match="which no machine of this lab has"):
        fetch_papers(folder, booter / "papers", KEY)
    assert [path for path in booter.rglob("*") if path.is_file()] == []


@pytest.mark.process
def test_a_kernel_in_another_ones_place_in_the_store_is_refused(
    folder: Store, builder: Path, booter: Path
) -> None:
    """Both were signed; their files were swapped."""
    for number in (1, 2):
        send_artifact(folder, make_artifact(builder, number))
    top = Path(folder.storage.location) / "artifacts"
    shutil.rmtree(top / key_of(2))
    shutil.copytree(top / KEY, top / key_of(2))
    assert in_store(key_of(2))
    with pytest.raises(ArtifactCorrupt, match=f"it was signed for artifact '{KEY[:12]}'"):
        fetch_artifact(folder, artifacts_of(booter), key_of(2))
    assert fetch_artifact(folder, artifacts_of(booter), KEY)


@pytest.mark.process
def test_what_a_revoked_key_signed_counts_nowhere(folder: Store, builder: Path, booter: Path) -> None:
    made = make_artifact(builder)
    send_artifact(folder, made)
    fetch_artifact(folder, artifacts_of(booter), KEY)
    old = Seal(builder / KEYS).public()
    revoke(old[:8])
    assert "revoked " in listed()
    heed_revocation(builder)
    for home in (builder, booter):
        with pytest.raises(ArtifactCorrupt, match="which was revoked"):
            artifacts_of(home).get(KEY)
    artifacts_of(booter).remove(KEY)
    with pytest.raises(ArtifactCorrupt, match="which was revoked"):
        fetch_artifact(folder, artifacts_of(booter), KEY)


def test_a_machine_whose_key_was_revoked_makes_a_new_one_at_its_next_build(builder: Path) -> None:
    old = register_key(builder)
    revoke(old.public)
    new = register_key(builder)
    assert (new.revoked_at, new.public == old.public) == (None, False)
    assert (builder / KEYS / f"retired-{old.public[:12]}.pem").stat().st_mode & 0o777 == 0o600
    assert register_key(builder) == new
    made = make_artifact(builder)
    assert artifacts_of(builder).verify(made.key)


@pytest.mark.parametrize("digits", ["", "a", "abcdefg", "f" * 64, "%", "________", "' OR 1=1 --"])
def test_a_key_that_is_not_named_clearly_is_not_revoked(builder: Path, digits: str) -> None:
    with pytest.raises(CommandError, match="give at least 8 digits that one key alone begins with"):
        call_command("signing_keys", f"--revoke={digits or 'x'}")
    assert SigningKey.objects.get().revoked_at is None


def test_digits_that_two_keys_begin_with_revoke_neither() -> None:
    for end in "ab":
        SigningKey.objects.create(public="0" * 63 + end, machine="m")
    with pytest.raises(CommandError, match="one key alone"):
        revoke("0" * 63)
    assert not SigningKey.objects.exclude(revoked_at=None).exists()


def test_revoking_twice_keeps_the_first_time(builder: Path) -> None:
    key = register_key(builder)
    revoke(key.public)
    first = SigningKey.objects.get().revoked_at
    revoke(key.public)
    assert SigningKey.objects.get().revoked_at == first


@pytest.mark.process
def test_a_machine_boots_no_kernel_that_was_changed_in_the_store(
    folder: Store, builder: Path, booter: Path, settings: Any
) -> None:
    """The web server's host hands it out, and may not have built it."""
    made = make_artifact(builder)
    send_artifact(folder, made)
    settings.HOME = booter
    record = artifacts_of(builder).record(KEY)
    stored = Path(folder.storage.location) / "artifacts" / KEY / record.files["bzImage"][1]
    whole = stored.read_bytes()
    stored.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    with pytest.raises(ArtifactCorrupt, match="bzImage differs from what was built"):
        kernel_file(KEY)
    stored.write_bytes(whole)
    for _ in range(2):
        kernel = kernel_file(KEY)
        assert kernel.read(0, kernel.size) == made.image.read_bytes()
    with pytest.raises((StoreLacks, ArtifactMissing)):
        kernel_file(key_of(9))


def test_metadata_of_a_stranger_is_not_handed_to_a_machine(
    folder: Store, tmp_path: Path, booter: Path, settings: Any
) -> None:
    send_artifact(folder, make_artifact(tmp_path / "stranger"))
    settings.HOME = booter
    with pytest.raises(ArtifactCorrupt, match="which no machine of this lab has"):
        kernel_file(KEY)
    assert not list(booter.rglob(METADATA))
