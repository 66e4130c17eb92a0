# SPDX-License-Identifier: GPL-2.0-or-later
"""A worker on a host whose clock is far off boots and checks its targets like the others. With KPERFLAB_TEST_DATABASE=postgres."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

import pytest
from django.db import connection
from django.utils import timezone

from lab.models import Target
from lab.runs.claiming import claim_next_run
from lab.targets.health_checks import HELD_S, claim_check, hold_check
from lab.targets.netboot.boots import Opening, left_on, open_netboot
from lab.targets.netboot.machine import keep_piece
from lab.targets.netboot.next_boot import leave_waiting, next_boot, waiting_boot
from lab.targets.tests.asking import ask
from lab.tests.factories import ME, finish_builds, make_grid

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.skipif(connection.vendor != "postgresql", reason="SQLite is on the host of its one worker"),
]

MAC = "52:54:00:6b:70:01"
FAR = pytest.mark.parametrize("hours", [-5, 5])


@contextmanager
def clock_off(hours: int) -> Iterator[None]:
    """Do what a worker does whose host's clock is off by so much."""
    now = timezone.now
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(timezone, "now", lambda: now() + timedelta(hours=hours))
        yield


def opened(hours: int, lifetime_s: float) -> int:
    with clock_off(hours):
        return open_netboot(Opening("metal-1", "a" * 64, "runs/1-1/initrd", "quiet", lifetime_s))


@pytest.fixture
def metal() -> Target:
    return Target.objects.create(name="metal-1", driver="metal", access={"mac": MAC, "kexec": True})


@FAR
def test_its_machine_gets_its_script_and_is_not_turned_off_meanwhile(metal: Target, hours: int) -> None:
    opened(hours, 600)
    assert left_on() == []
    assert ask(MAC, "10.0.2.15") is not None
    with clock_off(hours):
        assert left_on() == []


@FAR
def test_a_boot_of_its_own_expires_in_its_time(metal: Target, hours: int) -> None:
    boot = opened(hours, -1)
    assert ask(MAC, "10.0.2.15") is None
    assert [machine.id for machine in left_on()] == [boot]


@FAR
def test_its_machine_waits_for_what_it_is_to_boot_next(metal: Target, hours: int) -> None:
    boot = opened(0, 600)
    handout = ask(MAC, "10.0.2.15")
    assert handout is not None
    keep_piece(handout.token, "records", 0, b"all of it")
    with clock_off(hours):
        leave_waiting(boot, 300)
    assert next_boot(handout.token, "10.0.2.15") is None
    with clock_off(hours):
        assert waiting_boot("metal-1") == boot


@FAR
@pytest.mark.parametrize("held", [False, True])
def test_its_check_keeps_boots_away_as_long_as_any_other(hours: int, held: bool) -> None:
    finish_builds(make_grid())
    with clock_off(hours):
        target = claim_check("guest", force=True)
        assert target is not None
        if held:
            hold_check(target.pk)
    assert claim_next_run(target="guest", by=ME) is None
    until = Target.objects.values_list("checked_until", flat=True).get(name="guest")
    assert until is not None
    assert abs(until - timezone.now()) <= timedelta(seconds=HELD_S)
