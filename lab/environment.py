# SPDX-License-Identifier: GPL-2.0-or-later
"""Read the environment: each variable, or the file that NAME_FILE names, for secrets."""

import json
import os
import stat
from contextlib import suppress
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from pathlib import Path

from lab.errors import SettingWrong

# Variables that hold a password or a key.
SECRETS = frozenset(
    (
        *("KPERFLAB_DATABASE", "KPERFLAB_REDIS", "KPERFLAB_SMTP", "AWS_ACCESS_KEY_ID"),
        *("AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"),
    )
)
_REFS_FORM = "give ADDRESS refs/heads/BRANCH refs/tags/PATTERN, as often as needed, separated by spaces"
# Variables that this process took over from the service; see adopt.
_adopted: dict[str, str] = {}


def is_loopback(host: str) -> bool:
    """Return whether a name or an address of a host is this machine's own."""
    with suppress(ValueError):
        return host == "localhost" or ip_address(host).is_loopback
    return False


def state_root() -> Path:
    """Return the directory of all of the lab's files: KPERFLAB_HOME, else root's or the user's own place."""
    default = Path("/var/lib/kperflab") if os.geteuid() == 0 else Path.home() / ".local/share/kperflab"
    return Path(read_variable("KPERFLAB_HOME") or default).absolute()


def adopt(home: Path) -> None:
    """Take over the variables of this home's service while it is up; variables that are set here take precedence.

    Every command on this machine thus works on the service's tables. Secrets stay in the memory of this process: the
    environment is passed to programs, and can be read in /proc. Raises SettingWrong when the file cannot be read.
    """
    file = home / "service" / "environment.json"
    try:
        variables: dict[str, str] = json.loads(file.read_text())
    except FileNotFoundError:
        return
    except (OSError, ValueError) as exc:
        raise SettingWrong(
            f"{file}, which says where the service's tables are, cannot be read: {getattr(exc, 'strerror', None) or exc}"
        ) from exc
    _adopted.clear()
    for name, value in variables.items():
        plain = name.removesuffix("_FILE")
        if plain not in os.environ and f"{plain}_FILE" not in os.environ:
            _adopted[name] = value
    # Libraries look for some of these in the environment alone, such as AWS_CA_BUNDLE.
    for name in _adopted.keys() - SECRETS - {f"{secret}_FILE" for secret in SECRETS}:
        if not name.startswith("KPERFLAB_"):
            os.environ[name] = _adopted[name]


def all_variables(prefix: str) -> dict[str, str]:
    """Return every variable whose name begins with `prefix`, the service's included; files that they name are not read."""
    return {name: value for name, value in (_adopted | dict(os.environ)).items() if name.startswith(prefix)}


def for_own_processes() -> dict[str, str]:
    """Return the whole environment of this process, for child processes of the lab that read their settings from it.

    Never for a program that works on strangers' data; kernels/processes/environment.py is for those.
    """
    return dict(os.environ)


def read_variable(name: str, default: str = "") -> str:
    """Return the variable's value, else the content of the file that `<name>_FILE` names, else the default.

    A variable that is set to nothing is returned as "", not as the default. Raises SettingWrong when both are given, or the file
    cannot be read.
    """
    of_service = name not in os.environ and f"{name}_FILE" not in os.environ
    source = _adopted if of_service else os.environ
    value, file = source.get(name), source.get(f"{name}_FILE")
    if value and file:
        raise SettingWrong(f"{name} and {name}_FILE are both set: unset one of them")
    if file:
        try:
            return Path(file).read_text().strip()
        except (OSError, UnicodeDecodeError) as exc:
            reason = getattr(exc, "strerror", None) or "it is not text"
            raise SettingWrong(f"{name}_FILE names {file}, which cannot be read: {reason}") from exc
    return default if value is None else value


def open_secrets() -> list[str]:
    """Return a line for each secret's file that other users may read; container engines protect /run/secrets themselves."""
    lines = []
    for name in sorted(SECRETS):
        of_service = name not in os.environ and f"{name}_FILE" not in os.environ
        file = Path((_adopted if of_service else os.environ).get(f"{name}_FILE", "") or "/run/secrets/none")
        with suppress(OSError):
            mode = stat.S_IMODE(file.stat().st_mode)
            if mode & 0o077 and not file.is_relative_to("/run/secrets"):
                lines.append(
                    f"{name}_FILE names {file}, which other users may read ({mode:04o}): chmod 600 {file}"
                )
    return lines


def read_flag(name: str, *, default: bool = False) -> bool:
    """Return whether the variable is 1; the default where it is unset or empty."""
    text = read_variable(name)
    return text == "1" if text else default


def read_number(name: str, default: float, *, least: float = 0.0) -> float:
    """A number that is not below `least`. Raises SettingWrong."""
    text = read_variable(name) or str(default)
    try:
        number = float(text)
    except ValueError:
        raise SettingWrong(f'{name} is "{text[:80]}": give a number') from None
    if not least <= number < float("inf"):
        raise SettingWrong(f"{name} is {text[:80]}: give {least:g} or more")
    return number


def read_networks(name: str) -> tuple[IPv4Network | IPv6Network, ...]:
    """Networks or single addresses, separated by commas. Raises SettingWrong."""
    networks = []
    for part in filter(None, (part.strip() for part in read_variable(name).split(","))):
        try:
            networks.append(ip_network(part))
        except ValueError as exc:
            raise SettingWrong(
                f"{name}: {exc}; give networks such as 10.1.0.0/16, separated by commas"
            ) from None
    return tuple(networks)


def read_refs(name: str) -> dict[str, tuple[str, ...]]:
    """Return the branches and tags that follow each git address in a list of words. Raises SettingWrong."""
    by_address: dict[str, list[str]] = {}
    address = ""
    for word in read_variable(name).split():
        if not word.startswith("refs/"):
            address = word
            if word.startswith(("http://", "git://")):
                raise SettingWrong(f"{name}: {word} can be altered in transit: use https:// or ssh")
        elif not address or not word.startswith(("refs/heads/", "refs/tags/")):
            raise SettingWrong(f"{name}: {word} is not a branch or tag of an address; {_REFS_FORM}")
        else:
            by_address.setdefault(address, []).append(word)
    if address not in by_address and address:
        raise SettingWrong(f"{name}: {address} has no branch or tag behind it; {_REFS_FORM}")
    return {address: tuple(refs) for address, refs in by_address.items()}
