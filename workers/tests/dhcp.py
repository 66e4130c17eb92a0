# SPDX-License-Identifier: GPL-2.0-or-later
"""The DHCP requests of a machine's firmware, and the answers: `python3 dhcp.py INTERFACE MAC [ipxe]`, as root.

Prints where to boot from, or nothing where nobody answers. It needs nothing but Python, and runs where the cable is.
"""

from __future__ import annotations

import socket
import struct
import sys

WAIT_S = 5.0
COOKIE = b"\x63\x82\x53\x63"
PXE = b"PXEClient:Arch:00000:UNDI:002001"


def discover(mac: bytes, *, ipxe: bool) -> bytes:
    """A DHCPDISCOVER as PXE firmware sends it (RFC 2131, PXE 2.1); iPXE adds an option of its own."""
    head = struct.pack("!BBBBIHH16x16s192x", 1, 1, 6, 0, 0x4C414221, 0, 0x8000, mac)
    options = [
        (53, b"\x01"),
        (60, PXE),
        (93, b"\x00\x00"),
        (94, b"\x01\x02\x01"),
        (97, b"\x00" + mac * 2 + mac[:4]),
    ]
    if ipxe:
        options.append((175, b"\x13\x01\x01"))
    encoded = b"".join(bytes((code, len(value))) + value for code, value in options)
    return head + COOKIE + encoded + b"\xff"


def told_by(answer: bytes) -> str:
    """The file that an offer names; "a menu" where it leaves that to PXE's own options."""
    file = answer[108:236].split(b"\0")[0].decode()
    return file or ("a menu" if b"PXEClient" in answer[240:] else "")


def main() -> None:
    """Ask once, and wait."""
    interface, mac, *more = sys.argv[1:]
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as card:
        card.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
        card.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, interface.encode())
        card.bind(("", 68))
        card.settimeout(WAIT_S)
        card.sendto(
            discover(bytes.fromhex(mac.replace(":", "")), ipxe="ipxe" in more), ("255.255.255.255", 67)
        )
        try:
            print(told_by(card.recv(2000)))
        except TimeoutError:
            print()


if __name__ == "__main__":
    main()
