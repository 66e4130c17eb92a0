# SPDX-License-Identifier: GPL-2.0-or-later
"""HTTP requests to addresses that users entered: nothing private, no redirects, bounded in time.

A name is resolved once, every address it has is checked, and the connection goes to a checked one: a name
that resolves differently the second time has no effect. TLS still verifies the name, not the address.
"""

import asyncio
import socket
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from ipaddress import IPv4Address, IPv6Address, ip_address

import httpx

from kernels.trees.public_network import is_public
from lab.errors import AddressRefused, NotReached

# Of one request, from looking up the name to the end of the answer.
DEADLINE_S = 10.0
ANSWER_BYTES = 2048
_SCHEMES = {"https": 443, "http": 80}


@dataclass(frozen=True, slots=True)
class Outgoing:
    """One request. answer_bytes: how much of the answer is read."""

    method: str
    url: str
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    answer_bytes: int = ANSWER_BYTES


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """An HTTP answer: the status, and the beginning of its text without control characters."""

    status: int
    text: str


def check_url(url: str, *, private: bool) -> None:
    """Refuse a URL that can never be valid, whatever its name resolves to. Raises AddressRefused."""
    try:
        parsed = httpx.URL(url)
        # A name in Punycode is decoded here.
        host = parsed.host
    except (httpx.InvalidURL, UnicodeError) as exc:
        raise AddressRefused(f'"{url}" is not an address: {exc}') from exc
    if parsed.scheme not in _SCHEMES or not host:
        raise AddressRefused(f'"{url}" is not an address: write https://host/path')
    if parsed.scheme == "http" and not private:
        raise AddressRefused("use an https address: http can be read in transit")
    if parsed.userinfo:
        raise AddressRefused("the address must not contain a user name or password: enter it as the secret")
    try:
        literal = ip_address(host)
    except ValueError:
        return
    if not private:
        _check_address(literal, parsed.host)


async def send(request: Outgoing, *, private: bool) -> HttpAnswer:
    """Send one request and return its answer, whatever its status.

    private: whether loopback, private and link-local addresses may be talked to. Raises AddressRefused, NotReached.
    """
    check_url(request.url, private=private)
    try:
        async with asyncio.timeout(DEADLINE_S):
            return await _send(request, private)
    except TimeoutError:
        raise NotReached(f"no answer within {DEADLINE_S:g} s") from None
    except httpx.HTTPError as exc:
        raise NotReached(f"{type(exc).__name__}: {exc}".removesuffix(": ")) from exc


async def _send(request: Outgoing, private: bool) -> HttpAnswer:
    url = httpx.URL(request.url)
    addresses = await _addresses(url.host, url.port or _SCHEMES[url.scheme])
    if not private:
        for address in addresses:
            _check_address(address, url.host)
    # No proxies and no .netrc of our environment: the connection goes where we checked.
    async with httpx.AsyncClient(
        timeout=DEADLINE_S, follow_redirects=False, trust_env=False, verify=_tls()
    ) as client:
        for address in addresses[:-1]:
            try:
                return await _ask(client, request, url, address)
            except httpx.ConnectError:
                continue
        return await _ask(client, request, url, addresses[-1])


async def _ask(
    client: httpx.AsyncClient, request: Outgoing, url: httpx.URL, address: IPv4Address | IPv6Address
) -> HttpAnswer:
    headers = {
        "user-agent": "kperflab",
        "accept-encoding": "identity",
        **request.headers,
        "host": url.netloc.decode(),
    }
    async with client.stream(
        request.method,
        url.copy_with(host=str(address)),
        headers=headers,
        content=request.body or None,
        extensions={"sni_hostname": url.host},
    ) as response:
        if response.is_redirect:
            place = _printable(response.headers.get("location", "nowhere"))
            return HttpAnswer(
                response.status_code, f"redirects are not followed; this one leads to {place[:500]}"
            )
        data = b""
        async for part in response.aiter_raw():
            data += part
            if len(data) >= request.answer_bytes:
                break
        return HttpAnswer(
            response.status_code, _printable(data[: request.answer_bytes].decode(errors="replace"))
        )


async def _addresses(host: str, port: int) -> list[IPv4Address | IPv6Address]:
    try:
        addresses = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as exc:
        raise NotReached(f"{host} is not known: {exc}") from exc
    return [_plain(ip_address(str(entry[4][0]).partition("%")[0])) for entry in addresses]


def _plain(address: IPv4Address | IPv6Address) -> IPv4Address | IPv6Address:
    """Return the IPv4 address inside an IPv6 address that only wraps it."""
    return (address.ipv4_mapped or address) if isinstance(address, IPv6Address) else address


def _check_address(address: IPv4Address | IPv6Address, host: str) -> None:
    if not is_public(address):
        raise AddressRefused(
            f"{host} is {address}, which is not public; an operator may allow such (KPERFLAB_HOOKS_PRIVATE=1)"
        )


@cache
def _tls() -> ssl.SSLContext:
    """Return the context with the authorities that this machine trusts; made once, since reading them takes tens of milliseconds."""
    return ssl.create_default_context()


def _printable(text: str) -> str:
    return "".join(c if c.isprintable() or c in "\n\t" else "\N{REPLACEMENT CHARACTER}" for c in text)
