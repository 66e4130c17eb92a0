# SPDX-License-Identifier: GPL-2.0-or-later
"""One target's page: its drift with steps, its tuning, and what operators may do there."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from lab.models import HealthCheck, Target, User
from lab.tests.factories import make_case, make_experiment, make_run, make_user, make_variant

pytestmark = pytest.mark.django_db

PAGE = "/targets/guest/"


@pytest.fixture
def target() -> Target:
    """A target whose figures went up by a tenth half way, and one check of which failed."""
    row = Target.objects.get_or_create(name="guest")[0]
    Target.objects.filter(pk=row.pk).update(tuning={"governor": "performance"}, faults=1)
    for day in range(40):
        value = (800 if day < 20 else 880) + (day * 7) % 5
        HealthCheck.objects.create(
            target=row,
            at=timezone.now() - timedelta(days=40 - day),
            ok=True,
            metric="showgids ns_per_open",
            value=value,
            environment={"unit": "ns", "release": "6.1.0-k", "guest": {"tuning": {"governor": "schedutil"}}},
        )
    HealthCheck.objects.create(target=row, ok=False, problem="<b>Oops</b>: 0002")
    return row


@pytest.fixture
def operator(client: Client) -> Client:
    """Charlie, signed in."""
    client.force_login(make_user("charlie", User.Role.OPERATOR))
    return client


def test_drift_is_drawn_with_the_level_that_changed(client: Client, target: Target) -> None:
    page = client.get(PAGE).content.decode()
    assert page.count('class="spot"') == 40
    assert page.count('class="mark') == 1
    assert "another level from" in page
    assert "&lt;b&gt;Oops&lt;/b&gt;: 0002" in page
    assert ">performance<" in page
    assert ">schedutil<" in page


def test_a_target_that_was_never_checked_or_never_well_has_its_page(client: Client) -> None:
    target = Target.objects.create(name="fresh")
    for text in ("None yet.", "no answer"):
        answer = client.get("/targets/fresh/")
        assert answer.status_code == 200
        assert text in answer.content.decode()
        HealthCheck.objects.create(target=target, ok=False, problem="no answer")


def test_a_target_that_loses_boots_is_not_called_well(client: Client, target: Target) -> None:
    experiment = make_experiment(target=target)
    base, case = make_variant(experiment), make_case(experiment)
    lost = {"state": "failed", "outcome": "lost", "blame": "lab"}
    for block, over in enumerate([lost, lost, {"state": "done", "outcome": "finished"}]):
        make_run(base, case, block=block, target=target, finished_at=timezone.now(), **over)
    chips = (
        client.get(PAGE).content.decode().partition('<span class="chips">')[2].partition("</span></div>")[0]
    )
    assert "ill" in chips
    assert "well" not in chips
    assert "2 of the 3 boots of the last day failed" in client.get("/").content.decode()


def test_only_operators_are_offered_what_only_they_may_do(client: Client, target: Target) -> None:
    Target.objects.update(quarantined_at=timezone.now(), quarantine_reason="3 faults")
    page = client.get(PAGE).content.decode()
    assert "3 faults" in page
    content = page.partition("<main")[2].partition("</main>")[0]
    assert "<form" not in content
    assert "access" not in content.lower()
    client.force_login(make_user("alice"))
    assert client.post("/targets/guest/act", {"what": "release"}).status_code == 403
    for what in ("enable", "disable", "remove", "check"):
        assert client.post("/targets/guest/act", {"what": what}).status_code == 403
    assert Target.objects.get().enabled


def test_an_operator_ends_a_quarantine_and_a_check_is_asked_for(operator: Client, target: Target) -> None:
    Target.objects.update(quarantined_at=timezone.now(), quarantine_reason="3 faults", faults=3)
    operator.post("/targets/guest/act", {"what": "release"})
    target.refresh_from_db()
    assert (target.quarantined_at, target.faults) == (None, 0)
    assert target.check_asked_at is not None


def test_a_check_that_no_kernel_is_there_for_says_so(operator: Client, target: Target) -> None:
    page = operator.post("/targets/guest/act", {"what": "check"}, follow=True).content.decode()
    assert "no known-good kernel" in page


def test_a_button_that_the_pages_lack_changes_nothing(operator: Client, target: Target) -> None:
    assert operator.post("/targets/guest/act", {"what": "rename"}).status_code == 400
    assert operator.post(f"/lab/targets/{target.pk}", {"enabled": "maybe"}).status_code == 400
    target.refresh_from_db()
    assert (target.enabled, target.check_asked_at) == (True, None)


def test_an_operator_disables_and_enables_it(operator: Client, target: Target) -> None:
    for what, enabled in (("disable", False), ("enable", True)):
        operator.post("/targets/guest/act", {"what": what})
        target.refresh_from_db()
        assert target.enabled is enabled


def test_a_target_that_nothing_was_measured_on_is_removed(operator: Client, target: Target) -> None:
    assert "Remove guest" in operator.get(PAGE).content.decode()
    answer = operator.post("/targets/guest/act", {"what": "remove"})
    assert answer.headers["Location"] == "/lab/"
    assert not Target.objects.filter(name="guest").exists()


def test_one_with_experiments_stays_and_is_not_offered_for_removal(operator: Client, target: Target) -> None:
    make_experiment()
    assert "Remove guest" not in operator.get(PAGE).content.decode()
    page = operator.post("/targets/guest/act", {"what": "remove"}, follow=True).content.decode()
    assert "disable it instead" in page
    assert Target.objects.filter(name="guest").exists()


def test_how_it_is_reached_is_told_to_operators_alone(operator: Client, target: Target) -> None:
    power = {"kind": "ipmi", "address": "bmc-1", "user": "<b>", "password_file": "/etc/kperflab/bmc-1"}
    Target.objects.update(driver="metal", access={"mac": "52:54:00:12:34:56", "power": power})
    page = operator.get(PAGE).content.decode()
    for words in ("power.address", "bmc-1", "&lt;b&gt;", "52:54:00:12:34:56"):
        assert words in page
    other = Client().get(PAGE).content.decode()
    assert "bmc-1" not in other
    assert "52:54" not in other


def test_a_target_that_is_not_there_has_no_page(client: Client) -> None:
    assert client.get("/targets/none/").status_code == 404
