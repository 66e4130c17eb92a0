# SPDX-License-Identifier: GPL-2.0-or-later
"""A health check of a machine that is slow to start keeps its target for as long as it takes."""

from __future__ import annotations

from datetime import datetime
from time import monotonic, sleep

import pytest

from lab.models import Target
from lab.targets.health_checks import claim_check
from workers.drivers.base import BootRequest
from workers.drivers.fake import Script
from workers.health import check_target
from workers.tests.conftest import FakeLab, opens
from workers.tests.test_health import guest
from workers.tests.test_health import known as known

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.process]


@pytest.fixture
def target(db: None) -> None:
    # What a migration wrote is gone after the first of these tests.
    Target.objects.get_or_create(name="guest", defaults={"driver": "libvirt", "vcpus": 2, "memory_mib": 1024})


def reserved_until() -> datetime:
    until = guest().checked_until
    assert until is not None
    return until


def test_a_target_that_shows_no_life_for_long_is_not_reserved_by_another_check(
    target: None, known: FakeLab, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("lab.targets.health_checks", "workers.health"):
        monkeypatch.setattr(f"{module}.HELD_S", 1.0, raising=False)

    def start_slowly(request: BootRequest) -> Script:
        first, ends = reserved_until(), monotonic() + 20
        while reserved_until() <= first and monotonic() < ends:
            sleep(0.05)
        assert claim_check("guest", force=True) is None
        return opens(800.0, 6)

    known.scripts[""] = start_slowly
    row = check_target("guest", force=True)
    assert row is not None
    assert (row.ok, row.problem) == (True, "")
    assert guest().checked_until is None
