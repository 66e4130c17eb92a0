# SPDX-License-Identifier: GPL-2.0-or-later
"""Boot into the next kernel by kexec: the machine asks with its own token, the driver offers a boot, the lab hands it out once."""

from dataclasses import dataclass

from django.db import transaction
from django.db.models import Q

from lab.leases.prepared import after
from lab.models import Netboot
from lab.targets.netboot.boots import close_netboot, extend_netboot
from lab.targets.netboot.machine import Handout, boot_of, hand_over

ASKED_LATELY_S = 15.0
"""A machine that waits asks every few seconds."""
# The resolution of `asked_at`: a request is held for several looks, and not each of them need write.
NOTED_S = 1.0


@dataclass(frozen=True, slots=True)
class Following:
    """The next kernel that a machine starts by kexec, with the SHA-256 of both files."""

    handout: Handout
    kernel_sha256: str
    initrd_sha256: str


def leave_waiting(boot_id: int, seconds: float) -> None:
    """Record a successful boot: its machine stays on for this long, and may be offered the next boot."""
    extend_netboot(boot_id, seconds)
    Netboot.objects.filter(pk=boot_id, closed_at=None).update(waits=True)


def is_left_waiting(target: str) -> bool:
    """Return whether a machine was left on to be offered something; it may not have asked yet."""
    return _waiting(target) is not None


def waiting_boot(target: str) -> int | None:
    """Return the boot whose machine asks for the next one; None if it does not ask, or was restarted meanwhile."""
    boot = _waiting(target)
    if boot is None or boot.fetches != 1:
        return None
    asks = Netboot.objects.filter(pk=boot.pk, asked_at__gt=after(-ASKED_LATELY_S))
    return boot.pk if asks.exists() else None


def next_boot(token: str, address: str) -> Following | None:
    """Return the next boot for the machine of a token; None if nothing is offered yet.

    The answer invalidates the token. Raises NetbootClosed: there is no next boot, the machine may switch off.
    """
    boot = boot_of(token, address)
    not_noted = Q(asked_at=None) | Q(asked_at__lt=after(-NOTED_S))
    Netboot.objects.filter(not_noted, pk=boot.pk).update(asked_at=after(0.0))
    offers = Netboot.objects.filter(follows=boot, way="kexec", closed_at=None, expires_at__gt=after(0.0))
    offer = offers.filter(target=boot.target_id, fetches=0).order_by("pk").last()
    if offer is None:
        return None
    with transaction.atomic():
        handout = hand_over(offer, address)
        if handout is not None:
            close_netboot(boot.pk)
    return Following(handout, offer.kernel_sha256, offer.initrd_sha256) if handout else None


def _waiting(target: str) -> Netboot | None:
    boots = Netboot.objects.filter(target__name=target, waits=True, closed_at=None)
    return boots.filter(expires_at__gt=after(0.0)).order_by("pk").last()
