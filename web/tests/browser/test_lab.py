# SPDX-License-Identifier: GPL-2.0-or-later
"""The operator's page in a browser: how it looks with everything on it, and that it keeps itself up to date."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone
from playwright.sync_api import expect

from lab.models import Build, Run, Target, User, Worker
from lab.runs.claim import Claim
from lab.runs.record import note_corrupt_artifact, refuse_late
from lab.tests.factories import claimed_run, finish_builds, make_grid
from web.tests.browser.conftest import HOSTILE, WIDTHS, Open
from web.tests.browser.pictures import faults, looked_at


@pytest.fixture
def troubled(transactional_db: None) -> Run:
    """A boot whose lease ran out, a quarantine, workers of each kind, a fault, late answers, a spoilt artifact."""
    finish_builds(make_grid())
    first, second, *_ = Run.objects.order_by("position")
    claimed_run(first)
    Run.objects.filter(pk=first.pk).update(lease_until=timezone.now() - timedelta(seconds=90))
    Run.objects.filter(pk=second.pk).update(
        state="failed",
        outcome="lost",
        blame="lab",
        problem=f"no answer {HOSTILE}",
        finished_at=timezone.now(),
    )
    Target.objects.create(
        name="rack-7-left",
        group="amd",
        driver="metal",
        faults=3,
        quarantined_at=timezone.now(),
        quarantine_reason=f"3 faults of the lab in a row, the last: {HOSTILE}",
    )
    Worker.objects.create(
        name="build-1.lab:4711:99", host="build-1", queues=["build.x86_64.gcc"], version="0a1b2c3d4e5f"
    )
    Worker.objects.create(
        name="rack:1:1", host="rack", queues=["target.guest"], idle_reason="its disk is full"
    )
    Worker.objects.create(
        name="old:1:1", host="old", queues=["upkeep"], seen_at=timezone.now() - timedelta(hours=3)
    )
    refuse_late(Claim("run", second.pk, "x", "rack-7-left"), "finished")
    build = Build.objects.order_by("pk")[0]
    refuse_late(Claim("build", build.pk, "x"), f"built {HOSTILE}")
    refuse_late(Claim("run", 4711, "x", "rack-7-left"), "finished")
    note_corrupt_artifact(build.pk)
    return first


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", WIDTHS)
def test_the_page_with_everything_fits_and_axe_finds_nothing(
    visit: Open, troubled: Run, charlie: User, width: int, dark: bool
) -> None:
    page = visit("/lab/", width=width, dark=dark, by=charlie)
    assert looked_at(page, "lab-full", width=width, dark=dark) <= width
    assert faults(page) == []


def test_a_claim_is_taken_back_and_the_page_keeps_itself_up_to_date(
    visit: Open, troubled: Run, charlie: User
) -> None:
    page = visit("/lab/", by=charlie)
    page.get_by_role("button", name=f"Take back run {troubled.pk}").click()
    expect(page.get_by_role("status")).to_contain_text(f"Run {troubled.pk} is queued again")
    expect(page.get_by_text("nothing is being built or booted")).to_be_visible()
    claimed_run(troubled)
    expect(page.get_by_role("button", name=f"Take back run {troubled.pk}")).to_be_visible(timeout=30_000)
    page.get_by_role("button", name="Release rack-7-left").click()
    expect(page.get_by_role("status")).to_contain_text("rack-7-left is released")
