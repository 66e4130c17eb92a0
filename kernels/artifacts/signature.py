# SPDX-License-Identifier: GPL-2.0-or-later
"""Sign artifacts: each machine has an Ed25519 key of its own, made at its first build.

The private key is `artifacts.pem` in the keys' folder of the state root, readable by its owner only. The caller decides whose
signatures count besides the machine's own: a lab asks its database.
"""

from __future__ import annotations

import os
import re
import stat
import tempfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
)

from kernels.errors import HostUnfit

KEY_FILE = "artifacts.pem"
_PUBLIC = re.compile(r"[0-9a-f]{64}")
_SIGNATURE = re.compile(r"[0-9a-f]{128}")
_LARGEST = 4096


@dataclass(frozen=True, slots=True)
class Signature:
    """A signature, and the public key that checks it: both in hex."""

    key: str
    value: str


class Seal:
    """The signing key in a folder, and the keys whose signatures count.

    known: returns the lab's verdict on another machine's public key: True for one of the lab's, False for a revoked one,
    None for an unknown one. A machine trusts its own key for as long as it has it; without a lab it trusts no other.
    """

    def __init__(self, folder: Path, known: Callable[[str], bool | None] = lambda public: None) -> None:
        self.folder = folder
        self._known = known

    def public(self) -> str:
        """Return this machine's public key in hex; the first call makes the key. Raises HostUnfit."""
        return _public_of(self._private())

    def sign(self, message: bytes) -> Signature:
        """Return this machine's signature. Raises HostUnfit."""
        private = self._private()
        return Signature(_public_of(private), private.sign(message).hex())

    def check(self, message: bytes, signature: Signature) -> None:
        """Check that a trusted machine signed the message. Raises ValueError with the reason if not."""
        if not _PUBLIC.fullmatch(signature.key) or not _SIGNATURE.fullmatch(signature.value):
            raise ValueError("its signature is malformed")
        try:
            public = Ed25519PublicKey.from_public_bytes(bytes.fromhex(signature.key))
            public.verify(bytes.fromhex(signature.value), message)
        except (InvalidSignature, ValueError) as exc:
            raise ValueError("its signature does not match its content") from exc
        known = signature.key == self.own() or self._known(signature.key)
        if known is False:
            raise ValueError(f"it is signed with key {signature.key[:12]}, which was revoked")
        if known is None:
            raise ValueError(f"it is signed with key {signature.key[:12]}, which no machine of this lab has")

    def retire(self, public: str) -> None:
        """Put this machine's key aside if it is the given one, such as after its revocation; the next signature uses a new key."""
        if self.own() == public:
            with suppress(FileNotFoundError):
                (self.folder / KEY_FILE).rename(self.folder / f"retired-{public[:12]}.pem")

    def own(self) -> str:
        """Return this machine's public key, "" where it has none yet or only another user may read it."""
        try:
            return _public_of(self._read())
        except (FileNotFoundError, PermissionError):
            return ""

    def _private(self) -> Ed25519PrivateKey:
        try:
            return self._read()
        except FileNotFoundError:
            self._make()
            return self._read()
        except PermissionError as exc:
            raise HostUnfit(f"{self.folder / KEY_FILE} belongs to another user: run as that user") from exc

    def _read(self) -> Ed25519PrivateKey:
        path = self.folder / KEY_FILE
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
        except (FileNotFoundError, PermissionError):
            raise
        except OSError as exc:
            raise HostUnfit(f"{path} is not a regular file: remove it, and a new key is made") from exc
        try:
            mode = os.fstat(descriptor).st_mode
            if not stat.S_ISREG(mode):
                raise HostUnfit(f"{path} is not a regular file: remove it, and a new key is made")
            if mode & 0o077:
                raise HostUnfit(
                    f"other users may read {path}: remove it, a new key is made, and revoke the old one"
                )
            data = os.read(descriptor, _LARGEST)
        finally:
            os.close(descriptor)
        try:
            key = load_pem_private_key(data, password=None)
        except (ValueError, TypeError) as exc:
            raise HostUnfit(f"{path} holds no key: remove it, and a new one is made") from exc
        if not isinstance(key, Ed25519PrivateKey):
            raise HostUnfit(f"{path} holds no Ed25519 key: remove it, a new one is made")
        return key

    def _make(self) -> None:
        """Make a key, unless another process was first: it appears whole, or not at all."""
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        pem = Ed25519PrivateKey.generate().private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        # A temporary file is readable only by its owner from the start.
        with tempfile.NamedTemporaryFile(dir=self.folder) as file:
            file.write(pem)
            file.flush()
            os.fsync(file.fileno())
            with suppress(FileExistsError):
                os.link(file.name, self.folder / KEY_FILE)


def _public_of(private: Ed25519PrivateKey) -> str:
    return private.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw).hex()
