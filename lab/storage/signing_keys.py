# SPDX-License-Identifier: GPL-2.0-or-later
"""Public keys of the machines whose signatures of artifacts this lab accepts, as rows.

A worker writes its own key down before it builds. An operator revokes one; what was signed with it is then built again,
and the machine that had it makes a new one at its next build.
"""

import socket
from pathlib import Path

from django.utils import timezone

from kernels.artifacts.signature import Seal
from kernels.artifacts.store import KEYS
from lab.errors import FieldRefused
from lab.models import SigningKey

FEWEST_DIGITS = 8


def is_ours(public: str) -> bool | None:
    """Return True for a key of a machine of this lab, False for one that was revoked, None for any other."""
    revoked = SigningKey.objects.filter(public=public).values_list("revoked_at", flat=True)
    return next((at is None for at in revoked), None)


def register_key(home: Path) -> SigningKey:
    """Write down this machine's key, a new one where the old one was revoked. Raises HostUnfit."""
    heed_revocation(home)
    made = {"machine": socket.gethostname()[:255]}
    return SigningKey.objects.get_or_create(public=Seal(home / KEYS).public(), defaults=made)[0]


def heed_revocation(home: Path) -> None:
    """Put this machine's key aside where an operator revoked it. Raises HostUnfit."""
    seal = Seal(home / KEYS)
    own = seal.own()
    if own and is_ours(own) is False:
        seal.retire(own)


def revoke_key(digits: str) -> SigningKey:
    """Make signatures of a key count no more. digits: the first of the public key. Raises FieldRefused."""
    keys = (
        list(SigningKey.objects.filter(public__startswith=digits)[:2]) if len(digits) >= FEWEST_DIGITS else []
    )
    if len(keys) != 1:
        raise FieldRefused(
            "key",
            f"give at least {FEWEST_DIGITS} digits that one key alone begins with; manage.py signing_keys lists them",
        )
    (key,) = keys
    if key.revoked_at is None:
        key.revoked_at = timezone.now()
        key.save(update_fields=["revoked_at"])
    return key
