# SPDX-License-Identifier: GPL-2.0-or-later
"""Where a stranger's git address leads: refused unless it is a plain public one.

Whoever submits names the address, and the lab's machine fetches from it: it must not be a way to talk to what only
that machine can reach. The name is looked up here, and git is told to go where this look-up led, not to ask again.
"""

from __future__ import annotations

import ipaddress
import os
import re
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import SplitResult, urlsplit

from kernels.errors import UnknownTree

SCHEMES = {"https": 443, "http": 80, "git": 9418}
_HOST = re.compile(r"[A-Za-z0-9]([A-Za-z0-9.-]{0,251}[A-Za-z0-9])?|\[[0-9A-Fa-f:.]+\]")
# Networks of IPv6 in which every address stands for one of IPv4: NAT64 and 6to4.
_TUNNELS = (ipaddress.ip_network("64:ff9b::/96"), ipaddress.ip_network("2002::/16"))
_PROXIES = ("http_proxy", "https_proxy", "HTTPS_PROXY")


@dataclass(frozen=True, slots=True)
class Address:
    """A checked address: what to give git, and git settings that hold it to the place that was checked."""

    location: str
    settings: Mapping[str, str] = field(default_factory=dict)


def public_address(location: str, *, private: bool = False) -> Address:
    """Check the address of a repository that a stranger gave. private: also addresses of closed networks.

    Raises UnknownTree, saying what is wrong with it.
    """
    url, host, port = _parse(location)
    if private:
        return Address(location)
    addresses = _addresses(host, port)
    if not addresses:
        return Address(location)
    if not all(is_public(ipaddress.ip_address(one.partition("%")[0])) for one in addresses):
        raise UnknownTree(
            f"{host} is an address of a closed network; name a public one, or upload the patches"
        )
    first = addresses[0]
    shown = f"[{first}]" if ":" in first else first
    if url.scheme == "git":
        return Address(f"git://{shown}:{port}{url.path}")
    return Address(
        location, {"http.curloptResolve": f"{host}:{port}:{shown}", "http.followRedirects": "false"}
    )


def _parse(location: str) -> tuple[SplitResult, str, int]:
    wanted = ", ".join(f"{scheme}://" for scheme in SCHEMES)
    try:
        url = urlsplit(location)
        host, port = url.hostname or "", url.port or SCHEMES.get(url.scheme, 0)
    except ValueError as exc:
        raise UnknownTree(f"this is no git address: {exc}") from exc
    if url.scheme not in SCHEMES or re.search(r"[\s\x00-\x1f\\]", location):
        raise UnknownTree(f"give a git address that begins with {wanted}")
    if url.username is not None or url.password is not None:
        raise UnknownTree(
            "a git address may hold no user name and no password: name one that anybody may read"
        )
    if not _HOST.fullmatch(f"[{host}]" if ":" in host else host):
        raise UnknownTree(f"there is no host in this git address; give one that begins with {wanted}")
    return url, host, port


def is_public(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bool:
    """Whether an address is anybody's to reach, and leads to no other one through a tunnel."""
    tunnelled = any(address in network for network in _TUNNELS)
    return address.is_global and not address.is_multicast and not tunnelled


def _addresses(host: str, port: int) -> list[str]:
    """What a name stands for; none where only a proxy can tell. Raises UnknownTree."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except OSError as exc:
        if any(os.environ.get(name) for name in _PROXIES):
            return []
        raise UnknownTree(f"there is no host {host}, or this site cannot reach the network") from exc
    return list(dict.fromkeys(str(one[4][0]) for one in found))
