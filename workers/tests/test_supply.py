# SPDX-License-Identifier: GPL-2.0-or-later
"""The bill of materials: every locked package is in the bill of materials, and advisories name the right versions."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path

import pytest

from containers.audit import affected, without_support
from containers.parts import Package, debian_packages, scripts, wheels
from containers.sbom import all_parts, bill

ROOT = Path(__file__).resolve().parents[2]
PART = Package("pypi", "django", "5.2.3", "django")
DEB = Package("deb", "pdns-server", "4.7.3-2", "pdns")
LIST = "# a comment\npdns 4.7.3-2 2025-10-01 no backports\nphp-horde.* 0 2025-03-22 old\nfuture 1 2099-01-01 not yet\n"


@pytest.mark.process
def test_the_bill_names_every_locked_wheel_and_script_by_version() -> None:
    listed = json.loads(bill(all_parts(Path("/"))))["components"]
    addresses = {component["purl"] for component in listed}
    locked = [*wheels(ROOT / "requirements.lock"), *scripts(ROOT / "web/front/package-lock.json")]
    assert {"django", "celery", "htmx.org", "uplot"} <= {part.name for part in locked}
    missing = [
        part
        for part in locked
        if not any(f"{part.name.rpartition('/')[2]}@{part.version}" in address for address in addresses)
    ]
    assert missing == []


def test_every_locked_wheel_has_a_hash() -> None:
    assert [part.name for part in wheels(ROOT / "requirements-dev.lock") if not part.sha256] == []


@pytest.mark.process
def test_the_bill_names_debians_packages_of_a_root() -> None:
    installed = {part.name: part for part in debian_packages()}
    assert installed["libseccomp2"].source == "libseccomp"
    assert installed["bubblewrap"].version


@pytest.mark.parametrize(
    ("events", "hit"),
    [
        ([{"introduced": "0"}, {"fixed": "5.2.4"}], True),
        ([{"introduced": "0"}, {"fixed": "5.2.3"}], False),
        ([{"introduced": "5.2.3"}], True),
        ([{"introduced": "5.3"}], False),
        ([{"introduced": "0"}, {"last_affected": "5.2.3"}], True),
        ([{"introduced": "0"}, {"last_affected": "5.2.2"}], False),
        ([{"introduced": "0"}, {"fixed": "4.2"}, {"introduced": "5.0"}, {"fixed": "5.2.9"}], True),
        ([{"fixed": "5.2.9"}, {"introduced": "5.2"}], True),
    ],
)
def test_an_advisory_hits_the_versions_of_its_ranges(events: list[dict[str, str]], hit: bool) -> None:
    entry = {
        "package": {"ecosystem": "PyPI", "name": "Django"},
        "ranges": [{"type": "ECOSYSTEM", "events": events}],
    }
    findings = list(affected([PART], [{"id": "X-1", "summary": "bad", "affected": [entry]}]))
    assert [str(finding) for finding in findings] == (["django 5.2.3: X-1: bad"] if hit else [])


@pytest.mark.parametrize(
    "advisory",
    [
        {
            "id": "X",
            "withdrawn": "2026-01-01",
            "affected": [{"package": {"ecosystem": "PyPI", "name": "django"}, "versions": ["5.2.3"]}],
        },
        {"id": "X", "affected": [{"package": {"ecosystem": "npm", "name": "django"}, "versions": ["5.2.3"]}]},
        {
            "id": "X",
            "affected": [{"package": {"ecosystem": "PyPI", "name": "django"}, "versions": ["5.2.2"]}],
        },
        {"id": "X"},
    ],
)
def test_an_advisory_of_something_else_hits_nothing(advisory: dict[str, object]) -> None:
    assert list(affected([PART], [advisory])) == []


def test_a_debian_package_whose_support_is_over_is_named() -> None:
    findings = list(without_support([DEB, PART], LIST, date(2026, 1, 1)))
    assert [str(finding) for finding in findings] == [
        "pdns-server 4.7.3-2: Debian's security support is over: no backports"
    ]
    assert list(without_support([DEB], LIST, date(2025, 1, 1))) == []
