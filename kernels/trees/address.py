# SPDX-License-Identifier: GPL-2.0-or-later
"""Addresses of git repositories: the only type that functions which talk to a repository accept.

An address holds the source for git, the one protocol that git may use, and the settings that keep git at the place that was checked.
The submitter names the address, and the lab's machine fetches from it: it must not be a way to reach hosts that only that machine can
reach. The name is resolved here, and git connects to the result instead of resolving the name again.
"""

import ipaddress
import os
import re
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import SplitResult, urlsplit

from kernels.errors import UnknownTree
from kernels.trees.git import hide_password
from kernels.trees.public_network import is_public

SCHEMES = {"https": 443, "http": 80, "git": 9418}
LONGEST = 1000
_HOST = re.compile(r"[A-Za-z0-9]([A-Za-z0-9.-]{0,251}[A-Za-z0-9])?|\[[0-9A-Fa-f:.]+\]")
# No part that git and curl might read differently from us is allowed: a query, a fragment, a backslash, an unprintable character.
_PLAIN_URL = re.compile(r"[a-z]+://[!$-;=@-\[\]_a-z~]+")
_WEB = re.compile(r"(https|http|git)://")
_URL = re.compile(r"(https|http|git|ssh)://[^\s-]\S*")
_SCP_FORM = re.compile(r"[\w.]+@[\w.]+:[^\s:]\S*")  # git@host:path
_PROXIES = ("http_proxy", "https_proxy", "HTTPS_PROXY")


@dataclass(frozen=True, slots=True)
class Address:
    """A checked address. location: as the user wrote it; source: as it is passed to git.

    Made by `public_address` and `own_address` only.
    """

    location: str
    source: str
    protocol: str
    settings: Mapping[str, str] = field(default_factory=dict)
    public: bool = False
    by_proxy: bool = False

    @property
    def environment(self) -> dict[str, str]:
        """Return the environment that lets git contact this address and nothing else."""
        allowed = {"GIT_ALLOW_PROTOCOL": self.protocol}
        if self.protocol != "ssh":
            allowed["GIT_SSH_COMMAND"] = "false"
        if self.public:
            allowed["HOME"] = os.devnull  # a stranger's server must get no password from ~/.netrc
        if self.by_proxy:
            allowed |= {"no_proxy": "", "NO_PROXY": ""}
        return allowed

    @property
    def identity(self) -> str:
        """Return the identity of this place: the URL, or the folder as an absolute path."""
        return self.source if self.protocol == "file" else self.location

    @property
    def options(self) -> list[str]:
        """Return the options that restrict git to the place that was checked."""
        return [part for key, value in self.settings.items() for part in ("-c", f"{key}={value}")]

    @property
    def shown(self) -> str:
        """Return the location without passwords, for messages."""
        return hide_password(self.location)


def own_address(location: str) -> Address:
    """Return the address that a trusted user named: a URL, or a folder of this machine.

    A folder becomes absolute, so that it can be mistaken neither for an option nor for a URL. Raises UnknownTree for
    everything else, such as `ext::…`, which would run a command, and `file://…`.
    """
    if url := _URL.fullmatch(location):
        return Address(location, location, url[1])
    if _SCP_FORM.fullmatch(location):
        return Address(location, location, "ssh")
    directory = Path(location)
    if location and "\0" not in location and not location.startswith("-") and directory.is_dir():
        return Address(location, str(directory.resolve()), "file")
    raise UnknownTree(
        f'"{hide_password(location)}" is not a git repository: give a URL (https, ssh, git, http) or a directory'
    )


def is_local(location: str) -> bool:
    """Return whether a location is a folder of this machine or reached by ssh; only users of the lab may name such locations."""
    return not _WEB.match(location)


def public_address(location: str, *, private: bool = False) -> Address:
    """Return the checked address of a repository that a stranger named. private: also allow addresses of closed networks.

    Raises UnknownTree, saying what is wrong with it.
    """
    url, host, port = _parse(location)
    addresses = _addresses(host, port)
    if not addresses and url.scheme == "git":
        raise UnknownTree(f"there is no host {host}; a proxy is asked for https:// and http:// only")
    if not addresses:  # only the proxy can look it up; so the proxy is asked, whatever no_proxy says
        return Address(location, location, url.scheme, public=True, by_proxy=True)
    checked = [ipaddress.ip_address(address.partition("%")[0]) for address in addresses]
    if not private and not all(is_public(address) for address in checked):
        raise UnknownTree(
            f"{host} is an address of a closed network; name a public one, or upload the patches"
        )
    shown = [f"[{address}]" if address.version == 6 else str(address) for address in checked]
    if url.scheme == "git":
        return Address(location, f"git://{shown[0]}:{port}{url.path}", "git", public=True)
    pinned = {} if ":" in host else {"http.curloptResolve": f"{host}:{port}:{','.join(shown)}"}
    return Address(location, location, url.scheme, pinned, public=True)


def check_form(location: str) -> None:
    """Refuse a location that cannot be a repository's public address, without looking up its name. Raises UnknownTree."""
    _parse(location)


def _parse(location: str) -> tuple[SplitResult, str, int]:
    wanted = ", ".join(f"{scheme}://" for scheme in SCHEMES)
    try:
        url = urlsplit(location)
        host, port = url.hostname or "", url.port or SCHEMES.get(url.scheme, 0)
    except ValueError as exc:
        raise UnknownTree(f"this is not a git address: {exc}") from exc
    if url.scheme not in SCHEMES or len(location) > LONGEST:
        raise UnknownTree(f"give a git address that begins with {wanted}, of at most {LONGEST} characters")
    if url.username is not None or url.password is not None:
        raise UnknownTree(
            "a git address may hold no user name and no password: name one that anybody may read"
        )
    if not _HOST.fullmatch(f"[{host}]" if ":" in host else host):
        raise UnknownTree(f"there is no host in this git address; give one that begins with {wanted}")
    if not _PLAIN_URL.fullmatch(location):
        raise UnknownTree(
            f'a git address begins with {wanted} and is plain ASCII without blanks, backslashes, "?" and "#"'
        )
    return url, host, port


def _addresses(host: str, port: int) -> list[str]:
    """Return the addresses of a host; none if only a proxy can look them up. Raises UnknownTree."""
    try:
        answers = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as exc:
        if any(os.environ.get(name) for name in _PROXIES):
            return []
        raise UnknownTree(f"there is no host {host}, or this site cannot reach the network") from exc
    return list(dict.fromkeys(str(answer[4][0]) for answer in answers))
