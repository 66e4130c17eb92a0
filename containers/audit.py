# SPDX-License-Identifier: GPL-2.0-or-later
"""Compare what the lab is made of with advisories on disk: `python -m containers.audit [--advisories FOLDER]`.

Two sources are read, neither over the network: Debian's own list of packages without security support (package
debian-security-support), and a folder of OSV files (one JSON each, https://ossf.github.io/osv-schema/), which an operator
copies from a machine that has a network. Exits 1 where a part of the lab is named.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any, Final

from packaging.version import InvalidVersion, Version

from containers.parts import Package
from containers.sbom import all_parts

ENDED: Final = Path("/usr/share/debian-security-support/security-support-ended.deb12")
_ECOSYSTEMS: Final = {"PyPI": "pypi", "npm": "npm"}


@dataclass(frozen=True, slots=True)
class AdvisoryMatch:
    """A part that an advisory names."""

    part: Package
    advisory: str
    text: str

    def __str__(self) -> str:
        return f"{self.part.name} {self.part.version}: {self.advisory}: {self.text}"


def without_support(parts: Iterable[Package], listed: str, today: date) -> Iterator[AdvisoryMatch]:
    """Yield the Debian packages whose security support is over. listed: the content of Debian's list."""
    ended = {}
    for line in listed.splitlines():
        fields = line.split(maxsplit=3)
        if len(fields) >= 3 and not line.startswith("#") and date.fromisoformat(fields[2]) <= today:
            ended[fields[0]] = fields[3] if len(fields) > 3 else "no reason given"
    for part in parts:
        for source, why in ended.items():
            if part.kind == "deb" and re.fullmatch(source, part.source):
                yield AdvisoryMatch(part, "Debian's security support is over", why)


def affected(parts: Iterable[Package], advisories: Iterable[Mapping[str, Any]]) -> Iterator[AdvisoryMatch]:
    """Yield the wheels and scripts that an OSV advisory names, by version or by range of versions."""
    by_name = {(str(part.kind), part.name.lower()): part for part in parts}
    for advisory in advisories:
        for entry in () if advisory.get("withdrawn") else advisory.get("affected", ()):
            package = entry.get("package", {})
            kind = _ECOSYSTEMS.get(package.get("ecosystem", ""), "")
            part = by_name.get((kind, str(package.get("name", "")).lower()))
            if part is not None and _is_hit(part.version, entry):
                yield AdvisoryMatch(part, advisory["id"], advisory.get("summary", "no summary"))


def _is_hit(version: str, entry: Mapping[str, Any]) -> bool:
    if version in entry.get("versions", ()):
        return True
    return any(
        _in_range(version, spans.get("events", ()))
        for spans in entry.get("ranges", ())
        if spans["type"] != "GIT"
    )


def _in_range(version: str, events: Iterable[Mapping[str, str]]) -> bool:
    """Walk the events in the order of their versions: the last one that is not above ours decides."""
    ours, hit = _version(version), False
    for event in sorted(events, key=lambda event: _version(next(iter(event.values())))):
        ((what, where),) = event.items()
        reached = _version(where) < ours if what == "last_affected" else _version(where) <= ours
        if reached:
            hit = what == "introduced"
    return hit


def _version(text: str) -> Version:
    try:
        return Version(text)
    except InvalidVersion:
        # OSV's "0" is before everything; what npm calls a pre-release may be no version of Python's.
        return Version(".".join(re.findall(r"\d+", text)[:3]) or "0")


def main() -> None:
    """Print what is named, and exit 1 where anything is."""
    parser = argparse.ArgumentParser(description="Compare the lab's packages with advisories on disk.")
    parser.add_argument("--advisories", type=Path, help="a folder of OSV files")
    asked = parser.parse_args()
    parts = all_parts(Path("/"))
    if not ENDED.exists():
        sys.exit("Debian's list is missing; run: apt-get install debian-security-support")
    findings = list(without_support(parts, ENDED.read_text(), date.today()))
    files = sorted(asked.advisories.rglob("*.json")) if asked.advisories else []
    findings += affected(parts, (json.loads(file.read_text()) for file in files))
    for finding in findings:
        print(finding)
    print(f"{len(parts)} packages, {len(files)} advisories and Debian's list read: {len(findings)} findings")
    sys.exit(1 if findings else 0)


if __name__ == "__main__":
    main()
