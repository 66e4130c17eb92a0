# SPDX-License-Identifier: GPL-2.0-or-later
"""The due time of health checks: by what is noted at each check, and by what the upgrade makes of older rows."""

from __future__ import annotations

import importlib
from datetime import timedelta
from typing import Any

import pytest
from django.apps import apps
from django.utils import timezone

from lab.models import HealthCheck, Target
from lab.targets.health_checks import Checked, due_checks, record_check

pytestmark = pytest.mark.django_db

LONG_AGO = timezone.now() - timedelta(days=9)


@pytest.fixture(autouse=True)
def known(settings: Any) -> None:
    settings.CHECK_KERNEL = "k" * 64
    Target.objects.all().delete()


@pytest.mark.parametrize("ok", [True, False])
def test_a_target_is_due_until_it_is_checked_and_again_a_day_later(ok: bool, settings: Any) -> None:
    target = Target.objects.create(name="box", unchecked_since=LONG_AGO)
    assert due_checks() == ["box"]
    check = record_check(target.pk, Checked(ok, "" if ok else "no answer"))
    target.refresh_from_db()
    assert target.unchecked_since == check.at
    assert due_checks(check.at + timedelta(hours=23)) == []
    assert due_checks(check.at + timedelta(hours=25)) == ["box"]
    # The interval is the setting's at each look, not that of the last check.
    settings.CHECK_HOURS = 1
    assert due_checks(check.at + timedelta(hours=2)) == ["box"]


def test_the_upgrade_writes_when_each_target_was_checked_last(monkeypatch: pytest.MonkeyPatch) -> None:
    migration: Any = importlib.import_module("lab.migrations.0045_unchecked_since")
    monkeypatch.setattr(migration, "AT_ONCE", 2)
    targets = [Target.objects.create(name=f"box{number}") for number in range(5)]
    Target.objects.update(created_at=LONG_AGO)
    now = timezone.now()
    for target in targets[:3]:
        for hours in (40, target.pk - targets[0].pk, 30):
            HealthCheck.objects.create(target=target, ok=True, at=now - timedelta(hours=hours))
    migration.carry_over(apps, None)
    since = list(Target.objects.order_by("pk").values_list("unchecked_since", flat=True))
    assert since == [*(now - timedelta(hours=hours) for hours in range(3)), LONG_AGO, LONG_AGO]
    assert due_checks() == ["box3", "box4"]
