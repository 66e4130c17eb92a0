# SPDX-License-Identifier: GPL-2.0-or-later
"""Write a software bill of materials, as CycloneDX JSON: `python -m containers.sbom OUT [--root IMAGE]`.

Without --root it lists this machine's Debian packages. An image is mounted first: `podman image mount NAME` prints where.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from pathlib import Path

from cyclonedx.model import HashAlgorithm, HashType
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.output.json import JsonV1Dot6
from packageurl import PackageURL

from containers.parts import Package, debian_packages, scripts, wheels

ROOT = Path(__file__).resolve().parents[1]


def all_parts(root: Path) -> list[Package]:
    """Return the wheels and scripts that the lock files name, and the Debian packages under a root."""
    locked = [*wheels(ROOT / "requirements.lock"), *scripts(ROOT / "web/front/package-lock.json")]
    return [*locked, *debian_packages(root)]


def bill(parts: Iterable[Package]) -> str:
    """Return the bill as CycloneDX 1.6 JSON. A part that has several files (wheels for other machines) names no hash."""
    bom = Bom()
    lab = Component(name="kperflab", type=ComponentType.APPLICATION, bom_ref="kperflab")
    bom.metadata.component = lab
    for part in parts:
        space = {"pypi": None, "npm": None, "deb": "debian"}[part.kind]
        address = PackageURL(part.kind, space, part.name, part.version)
        hashes = [HashType(alg=HashAlgorithm.SHA_256, content=digest) for digest in part.sha256]
        bom.components.add(
            Component(
                name=part.name,
                version=part.version,
                type=ComponentType.LIBRARY,
                purl=address,
                bom_ref=str(address),
                hashes=hashes if len(hashes) == 1 else [],
            )
        )
    bom.register_dependency(lab, bom.components)
    return str(JsonV1Dot6(bom).output_as_string(indent=1))


def main() -> None:
    """Write the bill to a file."""
    parser = argparse.ArgumentParser(description="Write a software bill of materials as CycloneDX JSON.")
    parser.add_argument("out", type=Path, help="the file to write")
    parser.add_argument("--root", type=Path, default=Path("/"), help="where an image is mounted (default: /)")
    asked = parser.parse_args()
    parts = all_parts(asked.root)
    asked.out.parent.mkdir(parents=True, exist_ok=True)
    asked.out.write_text(bill(parts))
    print(f"{asked.out}: {len(parts)} packages")


if __name__ == "__main__":
    main()
