# SPDX-License-Identifier: GPL-2.0-or-later
"""Boots over the network as the machine sees them: a script once, two files, and pieces of two streams to send.

There is no sign-in here: the script goes to any client that knows the card's address while a boot waits, and first
asks which boot that is; all else needs the tokens that are in the script. So nothing is trusted: everything is bounded, and for
one boot only. The client that fetched the script fetches the files, and pieces come from one address; if the target's access
names the machine's address, only that one counts. A request from elsewhere gets nothing and leaves an alarm, upon which the driver
discards the boot.
"""

import hashlib
import hmac
import ipaddress
import logging
import re
import secrets
from dataclasses import dataclass
from typing import Literal

from django.db import IntegrityError, transaction
from django.db.models import F
from django.utils import timezone
from django.utils.crypto import constant_time_compare, salted_hmac

from lab.audit.log import note_refusal
from lab.errors import NetbootClosed, PieceRefused
from lab.leases.prepared import after
from lab.models import Netboot, NetbootPiece
from lab.targets.drivers import MACHINES
from lab.targets.netboot.files import BootFile, initrd_file, kernel_file

log = logging.getLogger(__name__)

MAC = re.compile(r"([0-9a-f]{2}[:-]){5}[0-9a-f]{2}", re.IGNORECASE)
STREAMS = frozenset({"records", "console", "kexec"})
"""kexec: why a machine could not start what it was handed."""
PIECE_BYTES = 1 << 20
"""Of one piece; the agent's have a quarter of it."""
BOOT_BYTES = 512 << 20
"""Of all pieces of one boot: a profile of a long run has some 100 MiB."""
MOST_PIECES = 100_000
"""Of one stream: a day of heartbeats."""
AHEAD = 32
"""How far before its time a piece may come."""

_CLOSED = "there is no such boot, or it is over"

Part = Literal["kernel", "initrd"]


@dataclass(frozen=True, slots=True)
class Handout:
    """The answer to a machine's only fetch: two tokens, and the kernel's arguments without the address to report to.

    token: to post pieces. files_token: for kernel and initrd alone, since firmware prints the addresses it fetches on a
    console that others may read.
    """

    boot_id: int
    token: str
    files_token: str
    cmdline: str


def boot_for(mac: str, address: str) -> int | None:
    """Return the boot that waits for the card with this MAC address; None if there is none, or its script was fetched before.

    address: the client's IP address. The script can still be fetched after this answer, because the client may no longer be there:
    a request may have waited in the socket while the server was down. A request after the script was fetched is counted, for then
    the machine has started again.
    """
    boot = _open_boot(mac, address)
    if boot is None:
        return None
    rows = Netboot.objects.filter(pk=boot.pk)
    if boot.way != "power":
        # Its firmware asks, so it left the kernel that was to start this boot: counted as a machine that started again.
        rows.update(fetches=F("fetches") + 2)
        return None
    if rows.filter(fetches__gt=0).update(fetches=F("fetches") + 1):
        _note_another(boot.pk, address)
        return None
    return boot.pk


def hand_out(mac: str, boot_id: int, address: str) -> Handout | None:
    """Hand out the boot that `boot_for` answered to the same card; None if that is over, or was handed out before.

    address: as in boot_for, stored if it is valid. Only a client that got that answer since the machine was turned off knows the
    boot, so it is there to boot it. The token is made here, so that it is known to the machine alone.
    """
    boot = _open_boot(mac, address)
    if boot is None or boot.pk != boot_id or boot.way != "power":
        return None
    handout = hand_over(boot, address)
    if handout is None:
        Netboot.objects.filter(pk=boot.pk).update(fetches=F("fetches") + 1)
        _note_another(boot.pk, address)
    return handout


def hand_over(boot: Netboot, address: str) -> Handout | None:
    """Make a boot's tokens, once; None if that was done before."""
    token = secrets.token_urlsafe(32)
    hashed = _hash(token)
    first = Netboot.objects.filter(pk=boot.pk, fetches=0).update(
        fetches=1, fetched_at=timezone.now(), fetched_from=_address(address), token_sha256=hashed
    )
    return Handout(boot.pk, token, f"{boot.pk}.{_proof(hashed)}", boot.cmdline) if first else None


def file_of(token: str, part: Part, address: str = "") -> BootFile:
    """Return a file a machine boots from, until it has posted a piece. Raises NetbootClosed, and as files.py.

    address: of the caller, which must be the one that the script went to.
    """
    boot = _boot_of_files(token)
    if not _is_same(boot.pk, boot.fetched_from, address, f"its {part}"):
        raise NetbootClosed(_CLOSED)
    if part == "kernel":
        return kernel_file(boot.artifact_key)
    initrd = initrd_file(boot.initrd)
    Netboot.objects.filter(pk=boot.pk, loaded_at=None).update(loaded_at=timezone.now())
    return initrd


def keep_piece(token: str, stream: str, number: int, data: bytes, address: str = "") -> bool:
    """Keep a piece of a stream; False if it was there already. Raises NetbootClosed, PieceRefused.

    address: of the caller, which must be the one that the boot's first piece came from.
    """
    boot = boot_of(token, address)
    if not _is_reporter(boot, address):
        raise NetbootClosed(_CLOSED)
    if stream not in STREAMS:
        raise PieceRefused(f'there is no stream "{stream[:20]}"', too_much=False)
    if len(data) > PIECE_BYTES or number >= MOST_PIECES:
        raise PieceRefused("a piece is too large, or there are too many", too_much=True)
    pieces = NetbootPiece.objects.filter(netboot=boot, stream=stream)
    if pieces.filter(number=number).exists():
        return False
    if number >= AHEAD and not pieces.filter(number=number - AHEAD).exists():
        raise PieceRefused(f"piece {number} comes long before its time", too_much=False)
    room = Netboot.objects.filter(pk=boot.pk, closed_at=None, received__lte=BOOT_BYTES - len(data))
    try:
        with transaction.atomic():
            if not room.update(received=F("received") + len(data)):
                raise PieceRefused("this boot has sent all that it may", too_much=True)
            NetbootPiece.objects.create(netboot=boot, stream=stream, number=number, data=data)
    except IntegrityError:
        return False
    return True


def boot_of(token: str, address: str) -> Netboot:
    """The open boot of a token, if the caller may be its machine. Raises NetbootClosed, which does not say why."""
    hashed = _hash(token)
    boot = Netboot.objects.filter(token_sha256=hashed, closed_at=None, expires_at__gt=after(0.0)).first()
    if boot is None or not boot.fetches or not hmac.compare_digest(boot.token_sha256, hashed):
        raise NetbootClosed(_CLOSED)
    if not _is_expected(boot, address):
        raise NetbootClosed(_CLOSED)
    return boot


def _open_boot(mac: str, address: str) -> Netboot | None:
    """The newest open boot of a card, if the caller may be its machine."""
    if not MAC.fullmatch(mac):
        return None
    boots = Netboot.objects.filter(closed_at=None, expires_at__gt=after(0.0), target__driver__in=MACHINES)
    boot = boots.filter(target__access__mac__iexact=mac.replace("-", ":")).order_by("pk").last()
    return boot if boot and _is_expected(boot, address) else None


def _note_another(boot_id: int, address: str) -> None:
    """Note an alarm if a script is requested again from an address other than the one that it went to."""
    first = Netboot.objects.values_list("fetched_from", flat=True).get(pk=boot_id)
    _is_same(boot_id, first, address, "its script")


def _is_expected(boot: Netboot, address: str) -> bool:
    """Return whether a caller has the address that the target's access names, if it names one."""
    expected = boot.target.access.get("address")
    if not expected or _address(address) == expected:
        return True
    log.warning(
        "netboot %s: %s asked as machine %s, which has %s", boot.pk, address, boot.target.name, expected
    )
    return False


def _is_reporter(boot: Netboot, address: str) -> bool:
    """Return whether a caller is the sender of a boot's pieces; the first caller becomes the sender."""
    known = _address(address)
    if known and boot.reported_from is None:
        Netboot.objects.filter(pk=boot.pk, reported_from=None).update(reported_from=known)
        boot.refresh_from_db(fields=["reported_from"])
    return _is_same(boot.pk, boot.reported_from, address, "pieces of its records")


def _is_same(boot_id: int, known: str | None, address: str, what: str) -> bool:
    """Return whether a caller has the address that was recorded before; else note an alarm."""
    caller = _address(address)
    if not known or not caller or caller == known:
        return True
    alarm = f"{what} concerned two addresses, {known} and {caller}"
    if Netboot.objects.filter(pk=boot_id, alarm="").update(alarm=alarm):
        note_refusal("netboot", "second address", address=caller)
    log.warning("netboot %s: %s", boot_id, alarm)
    return False


def _address(text: str) -> str | None:
    try:
        return str(ipaddress.ip_address(text))
    except ValueError:
        return None


def _boot_of_files(token: str) -> Netboot:
    """Return the open boot that a files_token belongs to. Raises NetbootClosed."""
    number, _, proof = token.partition(".")
    if re.fullmatch(r"[0-9]{1,15}", number):
        boots = Netboot.objects.filter(pk=int(number), closed_at=None, expires_at__gt=after(0.0))
        boot = boots.filter(fetches__gt=0, received=0).first()
        if boot and constant_time_compare(proof, _proof(boot.token_sha256)):
            return boot
    raise NetbootClosed(_CLOSED)


def _proof(token_sha256: str) -> str:
    return salted_hmac("lab.targets.netboot.files", token_sha256, algorithm="sha256").hexdigest()


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()
