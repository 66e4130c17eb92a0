# SPDX-License-Identifier: GPL-2.0-or-later
"""Read what the lab is made of from its lock files and from dpkg: Python wheels, scripts of the pages, Debian packages."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

Kind = Literal["pypi", "npm", "deb"]
_PINNED = re.compile(r"^([a-z0-9][a-z0-9._-]*)(?:\[[^\]]*\])?==([^\s;\\]+)", re.MULTILINE)
_HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")


@dataclass(frozen=True, slots=True)
class Package:
    """One package. source: Debian's source package, else the name; sha256: of each file it may be installed from."""

    kind: Kind
    name: str
    version: str
    source: str
    sha256: tuple[str, ...] = ()


def wheels(lock: Path) -> Iterator[Package]:
    """Yield the Python packages of a requirements lock file."""
    text = lock.read_text()
    pins = list(_PINNED.finditer(text))
    ends = [pin.start() for pin in pins[1:]] + [len(text)]
    for pin, end in zip(pins, ends, strict=True):
        yield Package("pypi", pin[1], pin[2], pin[1], tuple(_HASH.findall(text[pin.end() : end])))


def scripts(lock: Path) -> Iterator[Package]:
    """Yield the packages of a package-lock.json."""
    for place, entry in json.loads(lock.read_text())["packages"].items():
        if place:
            name = place.rpartition("node_modules/")[2]
            yield Package("npm", name, entry["version"], name)


def debian_packages(root: Path = Path("/")) -> Iterator[Package]:
    """Yield the Debian packages that are installed under a root, such as an image's. Needs dpkg-query."""
    asked = "${binary:Package}\t${Version}\t${source:Package}\t${db:Status-Abbrev}\n"
    done = subprocess.run(
        ["dpkg-query", f"--admindir={root / 'var/lib/dpkg'}", "--show", f"--showformat={asked}"],
        capture_output=True,
        text=True,
        check=True,
        env={"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8"},
    )
    for line in done.stdout.splitlines():
        name, version, source, status = line.split("\t")
        if status.startswith("ii"):
            yield Package("deb", name.partition(":")[0], version, source)
