# SPDX-License-Identifier: GPL-2.0-or-later
"""A config request: a named base and fragments; read fragments, and find the lines that a .config does not meet.

A fragment is in Kconfig's own syntax (`CONFIG_X=y`, `# CONFIG_X is not set`), where a line may end in a
comment that says why. A comment with `[if defined]` allows a tree to lack the symbol, since symbols are
renamed between releases; if the tree defines the symbol, it must still get the requested value.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from kernels.errors import ConfigRejected, suggest

# The bases by the names people use, with the make target that writes them.
BASES = {"tiny": "tinyconfig", "defconfig": "defconfig"}
MAX_FRAGMENT_BYTES = 256 * 1024
_FRAGMENTS = Path(__file__).parent / "fragments"

_SYMBOL = r"CONFIG_(?P<symbol>[A-Za-z0-9_]{1,120})"
_VALUE = r'(?P<value>[ymn]|-?[0-9]{1,20}|0[xX][0-9a-fA-F]{1,16}|"(?:[^"\\\x00-\x1f]|\\["\\])*")'
_SET = re.compile(rf"{_SYMBOL}={_VALUE}[ \t]*(?P<why>#.*)?")
_UNSET = re.compile(rf"# {_SYMBOL} is not set\b(?P<why>.*)")
# Kconfig reads such a line as a comment, for it lacks a blank or has too many.
_ALMOST_UNSET = re.compile(rf"#[ \t]*{_SYMBOL}[ \t]+is not set\b.*")
_OPTIONAL = "[if defined]"


@dataclass(frozen=True, slots=True)
class Fragment:
    """Part of a .config under the name that messages use for it."""

    name: str
    text: str


@dataclass(frozen=True, slots=True)
class ConfigRequest:
    """A base ("tiny" or "defconfig") and the fragments laid over it, the last one winning."""

    base: str = "tiny"
    fragments: tuple[Fragment, ...] = ()


@dataclass(frozen=True, slots=True)
class Assignment:
    """One line of a fragment. value: as in a .config; "n" stands for "is not set".

    optional: the tree may lack the symbol altogether.
    """

    symbol: str
    value: str
    fragment: str
    line: int
    optional: bool

    def __str__(self) -> str:
        if self.value == "n":
            return f"# CONFIG_{self.symbol} is not set"
        return f"CONFIG_{self.symbol}={self.value}"


def fragment_names() -> tuple[str, ...]:
    """Return the names that load_fragment knows."""
    return tuple(sorted(path.stem for path in _FRAGMENTS.glob("*.config")))


def load_fragment(name: str) -> Fragment:
    """Read one of our own fragments by name, such as "guest". Raises ConfigRejected."""
    if name not in fragment_names():
        raise ConfigRejected(f'there is no config fragment "{name}". {suggest(name, fragment_names())}')
    return Fragment(name, (_FRAGMENTS / f"{name}.config").read_text())


def make_target(request: ConfigRequest) -> str:
    """Return the make target that writes the request's base. Raises ConfigRejected."""
    if request.base not in BASES:
        raise ConfigRejected(f'there is no config base "{request.base}". {suggest(request.base, BASES)}')
    return BASES[request.base]


def read_fragment(fragment: Fragment) -> tuple[Assignment, ...]:
    """Return the assignments of a fragment, in order. Raises ConfigRejected naming the line."""
    if len(fragment.text.encode()) > MAX_FRAGMENT_BYTES:
        raise ConfigRejected(
            f'config fragment "{fragment.name}" is larger than {MAX_FRAGMENT_BYTES // 1024} KiB; send less'
        )
    assignments = []
    for number, raw in enumerate(fragment.text.splitlines(), start=1):
        line = raw.strip()
        match = _SET.fullmatch(line) or _UNSET.fullmatch(line)
        if match:
            assignments.append(_assignment(match, fragment.name, number))
        elif match := _ALMOST_UNSET.fullmatch(line):
            raise ConfigRejected(
                f'config fragment "{fragment.name}" line {number}: "{line[:80]}" is a comment and turns nothing off; '
                f'write "# CONFIG_{match["symbol"]} is not set"'
            )
        elif line and not line.startswith("#"):
            raise ConfigRejected(
                f'config fragment "{fragment.name}" line {number}: "{line[:80]}" is not an assignment; '
                "write CONFIG_NAME=y, =m, =n, a number or a quoted string"
            )
    return tuple(assignments)


def requested(request: ConfigRequest) -> dict[str, Assignment]:
    """Return by symbol the last assignment in the fragments. Raises ConfigRejected."""
    lines = [line for fragment in request.fragments for line in read_fragment(fragment)]
    return {line.symbol: line for line in lines}


def fragment_text(assignments: Iterable[Assignment]) -> str:
    """Assignments in the kernel's own form, as its merge_config.sh reads them."""
    return "".join(f"{line}\n" for line in assignments)


def read_config(text: str) -> dict[str, str]:
    """Return by symbol the values of a whole .config, without the symbols that are off."""
    pattern = re.compile(r"CONFIG_([A-Za-z0-9_]+)=(.*)")
    matches = (pattern.fullmatch(line) for line in text.splitlines())
    return {match[1]: match[2] for match in matches if match}


def unmet(wanted: Mapping[str, Assignment], config: Mapping[str, str]) -> tuple[Assignment, ...]:
    """Return the requests that a resolved config does not fulfil."""
    return tuple(line for line in wanted.values() if not _equal(line.value, config.get(line.symbol, "n")))


def _equal(wanted: str, got: str) -> bool:
    if wanted == got:
        return True
    try:  # 0x1f and 0X1F: Kconfig may write a number in another form
        return int(wanted, 0) == int(got, 0)
    except ValueError:
        return False


def _assignment(match: re.Match[str], fragment: str, number: int) -> Assignment:
    return Assignment(
        symbol=match["symbol"],
        value=match.groupdict().get("value") or "n",
        fragment=fragment,
        line=number,
        optional=_OPTIONAL in (match["why"] or ""),
    )
