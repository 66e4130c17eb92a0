# SPDX-License-Identifier: GPL-2.0-or-later
"""Boots over the network as the driver sees them: open, watch, close, and find those that were abandoned.

The machine's side of it is machine.py. Worker and web server may be on hosts whose clocks differ: the database's counts.
"""

import secrets
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from lab.errors import one_row
from lab.from_attributes import attributes
from lab.leases.prepared import after
from lab.leases.process import is_alive, worker_identity
from lab.models import Netboot, NetbootPiece, Target

# How long a closed boot is kept: long enough to look into what happened.
KEPT = timedelta(days=7)
# Pieces read at once.
MOST_PIECES = 64


@dataclass(frozen=True, slots=True)
class Opening:
    """A boot offered to a machine. initrd: a file's name below the state root. cmdline: without the address to report to.

    follows: by kexec, the boot whose machine waits; kernel_sha256, initrd_sha256: of its two files.
    """

    target: str
    artifact_key: str
    initrd: str
    cmdline: str
    lifetime_s: float
    follows: int | None = None
    kernel_sha256: str = ""
    initrd_sha256: str = ""


@dataclass(frozen=True, slots=True)
class NetbootProgress:
    """The progress of a boot. fetches: how often the machine asked for its script; and from which address first.

    alarm: a sign of interference by another machine, "" if there is none.
    """

    fetches: int
    fetched_from: str
    loaded: bool
    received: int
    alarm: str = ""


@dataclass(frozen=True, slots=True)
class LeftOn:
    """A boot whose process is gone: its machine may be on."""

    id: int
    target: str
    owner: str
    since: datetime


def open_netboot(opening: Opening) -> int:
    """Let a machine boot once; its earlier boots are closed, except the one that this one follows, which ends when this
    one is handed out. Returns the boot's id. Raises UnknownRow.
    """
    target = one_row(Target.objects.filter(name=opening.target), f'target "{opening.target}"')
    with transaction.atomic():
        before = Netboot.objects.filter(target=target, closed_at=None).exclude(pk=opening.follows or 0)
        for boot_id in before.values_list("pk", flat=True):
            close_netboot(boot_id)
        boot = Netboot.objects.create(
            target=target,
            owner=worker_identity(),
            token_sha256=secrets.token_hex(32),
            way="kexec" if opening.follows else "power",
            follows_id=opening.follows,
            expires_at=after(opening.lifetime_s),
            **attributes(opening, ("artifact_key", "initrd", "cmdline", "kernel_sha256", "initrd_sha256")),
        )
    return boot.pk


def forget_fetches(boot_id: int) -> None:
    """Let the script be fetched once more: the machine that fetched it was still on, and is off now. Its token becomes invalid."""
    NetbootPiece.objects.filter(netboot=boot_id).delete()
    Netboot.objects.filter(pk=boot_id, closed_at=None).exclude(fetches=0).update(
        token_sha256=secrets.token_hex(32),
        fetches=0,
        fetched_at=None,
        fetched_from=None,
        loaded_at=None,
        reported_from=None,
        alarm="",
        received=0,
    )


def extend_netboot(boot_id: int, lifetime_s: float) -> None:
    """Let an open boot expire `lifetime_s` seconds from now."""
    Netboot.objects.filter(pk=boot_id, closed_at=None).update(expires_at=after(lifetime_s))


def netboot_progress(boot_id: int) -> NetbootProgress:
    """Return how far a boot is. Raises UnknownRow."""
    boot = one_row(Netboot.objects.filter(pk=boot_id), f"network boot {boot_id}")
    return NetbootProgress(
        boot.fetches, boot.fetched_from or "", boot.loaded_at is not None, boot.received, boot.alarm
    )


def take_pieces(boot_id: int, stream: str, first: int) -> list[bytes]:
    """Return the pieces of a stream from number `first` up to the first gap, and delete their bytes.

    Their rows are kept, so that a piece that is sent again is recognised.
    """
    rows = NetbootPiece.objects.filter(netboot=boot_id, stream=stream, number__gte=first)
    pieces: list[bytes] = []
    taken: list[int] = []
    for piece in rows.order_by("number")[:MOST_PIECES]:
        if piece.number != first + len(pieces):
            break
        pieces.append(bytes(piece.data))
        taken.append(piece.pk)
    NetbootPiece.objects.filter(pk__in=taken).update(data=b"")
    return pieces


def close_netboot(boot_id: int) -> None:
    """End a boot: its files can no longer be fetched, and no pieces are accepted."""
    Netboot.objects.filter(pk=boot_id, closed_at=None).update(closed_at=timezone.now())
    NetbootPiece.objects.filter(netboot=boot_id).delete()


def left_on() -> list[LeftOn]:
    """Boots that nobody watches any more: their process is gone, or has let them expire."""
    boots = Netboot.objects.filter(closed_at=None).annotate(over=Q(expires_at__lte=after(0.0)))
    return [
        LeftOn(boot.pk, boot.target.name, boot.owner, boot.created_at)
        for boot in boots.select_related("target").order_by("pk")
        if boot.over or not is_alive(boot.owner)
    ]


def forget_old_netboots() -> int:
    """Remove boots that were closed long ago; returns how many."""
    old = Netboot.objects.filter(closed_at__lt=timezone.now() - KEPT)
    count = old.count()
    old.delete()
    return count
