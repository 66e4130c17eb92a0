# SPDX-License-Identifier: GPL-2.0-or-later
"""A machine's signing key is its own secret, and only signatures of machines that count are believed."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from kernels.artifacts.signature import KEY_FILE, Seal, Signature
from kernels.errors import HostUnfit

pytestmark = pytest.mark.hostile

_MESSAGE = b"what was built"


@pytest.fixture
def seal(tmp_path: Path) -> Seal:
    return Seal(tmp_path / "keys")


def test_the_key_is_made_once_and_only_its_owner_may_read_it(seal: Seal) -> None:
    previous = os.umask(0)
    try:
        public = seal.public()
    finally:
        os.umask(previous)
    path = seal.folder / KEY_FILE
    assert (path.stat().st_mode & 0o777, seal.folder.stat().st_mode & 0o777) == (0o600, 0o700)
    assert Seal(seal.folder).public() == public == seal.own()
    assert [each.name for each in seal.folder.iterdir()] == [KEY_FILE]


def test_many_who_need_a_key_at_once_have_one_and_the_same(seal: Seal) -> None:
    with ThreadPoolExecutor(8) as pool:
        assert len(set(pool.map(lambda _: Seal(seal.folder).public(), range(32)))) == 1


def test_what_was_signed_here_counts_here(seal: Seal) -> None:
    seal.check(_MESSAGE, seal.sign(_MESSAGE))


def test_looking_at_signatures_makes_no_key(seal: Seal, tmp_path: Path) -> None:
    signature = Seal(tmp_path / "other").sign(_MESSAGE)
    with pytest.raises(ValueError, match="which no machine of this lab has"):
        seal.check(_MESSAGE, signature)
    assert not seal.folder.exists()


@pytest.mark.parametrize(
    ("known", "said"),
    [(None, "which no machine of this lab has"), (False, "which was revoked"), (True, "")],
)
def test_the_lab_says_whose_signature_counts(tmp_path: Path, known: bool | None, said: str) -> None:
    other = Seal(tmp_path / "other")
    seal = Seal(tmp_path / "keys", lambda public: known if public == other.public() else None)
    signature = other.sign(_MESSAGE)
    if not said:
        seal.check(_MESSAGE, signature)
        return
    with pytest.raises(ValueError, match=said) as caught:
        seal.check(_MESSAGE, signature)
    assert other.public()[:12] in str(caught.value)
    assert other.public() not in str(caught.value)


@pytest.mark.parametrize("message", [b"", b"what was built.", b"What was built", _MESSAGE + b"\0"])
def test_a_signature_is_of_one_message(seal: Seal, message: bytes) -> None:
    with pytest.raises(ValueError, match="does not match its content"):
        seal.check(message, seal.sign(_MESSAGE))


_BAD: dict[str, Callable[[Signature], Signature]] = {
    "no key": lambda s: Signature("", s.value),
    "no value": lambda s: Signature(s.key, ""),
    "a short key": lambda s: Signature(s.key[:-2], s.value),
    "a long value": lambda s: Signature(s.key, s.value + "00"),
    "upper case": lambda s: Signature(s.key.upper(), s.value.upper()),
    "no hex": lambda s: Signature("x" * 64, s.value),
    "a line end": lambda s: Signature(s.key + "\n", s.value),
    "zeros": lambda s: Signature(s.key, "0" * 128),
    "the key of nobody": lambda s: Signature("f" * 64, s.value),
    "the neutral point": lambda s: Signature("01" + "0" * 62, "01" + "0" * 126),
    "halves swapped": lambda s: Signature(s.key, s.value[64:] + s.value[:64]),
    "one bit": lambda s: Signature(s.key, f"{int(s.value[0], 16) ^ 1:x}" + s.value[1:]),
}


@pytest.mark.parametrize("what", _BAD)
def test_a_signature_that_is_none_is_refused(seal: Seal, what: str) -> None:
    with pytest.raises(ValueError, match=r"^its signature |^it is signed with key"):
        seal.check(_MESSAGE, _BAD[what](seal.sign(_MESSAGE)))


def _readable(path: Path) -> None:
    path.chmod(0o640)


def _link(path: Path) -> None:
    path.rename(path.with_name("elsewhere"))
    path.symlink_to("elsewhere")


def _folder(path: Path) -> None:
    path.unlink()
    path.mkdir(0o700)


def _pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path, 0o600)


def _garbage(path: Path) -> None:
    path.write_bytes(b"\0" * 100)


def _empty(path: Path) -> None:
    path.write_bytes(b"")


def _another_kind(path: Path) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    path.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (_readable, "other users may read"),
        (_link, "is not a regular file"),
        (_folder, "is not a regular file"),
        (_pipe, "is not a regular file"),
        (_garbage, "holds no key"),
        (_empty, "holds no key"),
        (_another_kind, "holds no Ed25519 key"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_a_key_that_is_no_secret_or_no_key_signs_nothing(
    seal: Seal, spoil: Callable[[Path], None], said: str
) -> None:
    seal.public()
    spoil(seal.folder / KEY_FILE)
    with pytest.raises(HostUnfit, match=said) as caught:
        seal.sign(_MESSAGE)
    assert (caught.value.blame, caught.value.retry) == ("lab", False)
    assert "remove it" in str(caught.value)


def test_a_key_put_aside_signs_no_more_and_does_not_count_where_it_was_revoked(seal: Seal) -> None:
    old, signature = seal.public(), seal.sign(_MESSAGE)
    seal.retire("0" * 64)
    assert seal.public() == old
    seal.retire(old)
    assert seal.own() == ""
    assert seal.public() != old
    with pytest.raises(ValueError, match="which no machine of this lab has"):
        seal.check(_MESSAGE, signature)
    with pytest.raises(ValueError, match="which was revoked"):
        Seal(seal.folder, lambda public: False).check(_MESSAGE, signature)
