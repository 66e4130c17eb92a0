# SPDX-License-Identifier: GPL-2.0-or-later
"""Alerts: the steps that are reported, once, to the right people, and not in quiet hours."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import pytest
from django.core import mail

from lab.comparisons.compare import compare_experiment
from lab.errors import NotAllowed, UnknownRow
from lab.hooks.changes import HookFields, make_hook
from lab.models import Alert, Case, Delivery, Experiment, Run, Standing, Tree, User
from lab.standing.alerts import raise_alerts, see_alert, tell_alerts
from lab.tests.factories import NS_PER_OPEN, make_experiment, make_user
from lab.trends.tests.test_trends import measured

pytestmark = pytest.mark.django_db
NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)
WOBBLE = (-1.0, 0.0, 1.0, 0.5, -0.5)


@pytest.fixture
def alice() -> User:
    return make_user("alice")


@pytest.fixture
def standing(alice: User) -> Standing:
    make_experiment()
    return Standing.objects.create(
        name="nightly",
        owner=alice,
        spec={},
        tree=Tree.objects.get(name="tiny"),
        branch="main",
        mail_to=["ann@example.org", "bob@example.org"],
    )


def feed(standing: Standing | None, levels: Sequence[float], first: int = 0) -> list[Experiment]:
    """Measured revisions from `first` on, one level each."""
    experiments = [
        measured(number, *(level + wobble for wobble in WOBBLE), standing=standing)
        for number, level in enumerate(levels, first)
    ]
    Standing.objects.update(stale=True)
    return experiments


def test_a_step_is_alerted_with_where_how_much_and_what_showed_it(standing: Standing) -> None:
    experiments = feed(standing, [100, 100, 100, 110, 110, 110])
    (alert,) = raise_alerts()
    assert (alert.commit, alert.worse, alert.metric) == (f"{3:040x}", True, "ns_per_open")
    assert alert.ratio == pytest.approx(1.1)
    assert alert.experiment == experiments[-1]
    assert "ns_per_open of showgids (smoke) got worse by 10.0 %" in alert.text
    assert "change 3" in alert.text


def test_a_step_of_a_few_instructions_is_not_alerted_as_0_percent(standing: Standing) -> None:
    feed(standing, [3e5] * 4 + [3e5 + 90] * 4)
    Case.objects.update(metrics=[{**NS_PER_OPEN, "margin": 0.0001}])
    (alert,) = raise_alerts()
    assert "got worse by 0.03 % at" in alert.text


def test_an_improvement_is_alerted_as_one(standing: Standing) -> None:
    feed(standing, [110, 110, 110, 100, 100, 100])
    (alert,) = raise_alerts()
    assert (alert.worse, "got better" in alert.text) == (False, True)


def test_a_course_without_a_step_and_an_outlier_at_the_end_are_no_alert(standing: Standing) -> None:
    feed(standing, [100, 100, 100, 100, 100, 130])
    assert raise_alerts() == []


def test_a_step_is_alerted_once_even_if_further_revisions_move_it(
    standing: Standing, monkeypatch: pytest.MonkeyPatch
) -> None:
    feed(standing, [100, 100, 100, 110, 110, 110])
    assert len(raise_alerts()) == 1
    feed(standing, [110, 110], first=6)
    assert raise_alerts() == []
    # As if it had been found two revisions further on at first.
    Alert.objects.update(commit=f"{5:040x}")
    Standing.objects.update(stale=True)
    assert raise_alerts() == []
    # Three are another step.
    Alert.objects.update(commit=f"{6:040x}")
    Standing.objects.update(stale=True)
    assert len(raise_alerts()) == 1


def test_a_step_back_is_an_alert_of_its_own(standing: Standing) -> None:
    feed(standing, [100] * 4 + [120] * 4)
    assert len(raise_alerts()) == 1
    feed(standing, [100] * 4, first=8)
    (back,) = raise_alerts()
    assert (back.commit, back.worse) == (f"{8:040x}", False)


def test_a_step_before_it_stood_is_no_news(standing: Standing) -> None:
    feed(None, [100, 100, 100, 110, 110, 110])
    feed(standing, [110, 110], first=6)
    assert raise_alerts() == []


def test_a_step_at_its_first_revision_is_news(standing: Standing) -> None:
    feed(None, [100, 100, 100, 100])
    feed(standing, [110, 110, 110, 110], first=4)
    assert [alert.commit for alert in raise_alerts()] == [f"{4:040x}"]


@pytest.mark.parametrize(
    "fault",
    [
        {"state": "failed", "outcome": "lost", "blame": "lab"},
        {"state": "failed", "outcome": "panicked", "blame": "kernel"},
        {"state": "cancelled"},
        {"invalid": ["the host was busy"]},
    ],
    ids=["lost", "panicked", "cancelled", "invalid"],
)
def test_what_does_not_count_is_never_a_step(fault: dict[str, Any], standing: Standing) -> None:
    experiments = feed(standing, [100, 100, 100, 150, 150, 150])
    for experiment in experiments[3:]:
        Run.objects.filter(experiment=experiment).update(**fault)
        compare_experiment(experiment.pk)
    assert raise_alerts() == []


def test_trends_are_looked_at_only_after_something_ended(
    standing: Standing, monkeypatch: pytest.MonkeyPatch
) -> None:
    feed(standing, [100, 100, 100, 110, 110, 110])
    raise_alerts()
    monkeypatch.setattr("lab.standing.alerts.fed_by", lambda _: pytest.fail("looked at"))
    assert raise_alerts() == []


def test_a_fault_while_looking_is_no_lost_alert(standing: Standing, monkeypatch: pytest.MonkeyPatch) -> None:
    feed(standing, [100, 100, 100, 110, 110, 110])

    def fails(_: int) -> None:
        raise ZeroDivisionError

    with monkeypatch.context() as patched:
        patched.setattr("lab.standing.alerts.fed_by", fails)
        with pytest.raises(ZeroDivisionError):
            raise_alerts()
    assert len(raise_alerts()) == 1


@pytest.fixture
def raised(standing: Standing) -> Alert:
    feed(standing, [100, 100, 100, 110, 110, 110])
    (alert,) = raise_alerts()
    return alert


def test_people_get_one_mail_and_hooks_one_event(raised: Alert, alice: User) -> None:
    make_hook(by=alice, fields=HookFields("ours", "https://ci.example.org/"))
    (outcome,) = tell_alerts(now=NOON)
    assert outcome.alerts == (raised.text,)
    assert tell_alerts(now=NOON) == []
    (sent,) = mail.outbox
    assert sent.to == ["ann@example.org", "bob@example.org"]
    assert sent.subject.startswith("[kperflab] nightly: ns_per_open of showgids (smoke) got worse by 10.0 %")
    assert f"/trends/{raised.trend}/" in sent.body
    delivery = Delivery.objects.get()
    assert (delivery.event, delivery.subject) == ("alert", f"alert/{raised.pk}")
    assert delivery.payload["alert"]["commit"] == raised.commit


def test_in_quiet_hours_an_alert_is_held_back_until_they_end(raised: Alert, alice: User) -> None:
    make_hook(by=alice, fields=HookFields("ours", "https://ci.example.org/"))
    Standing.objects.update(quiet_from=22, quiet_until=7)
    for hour in (22, 3, 6):
        assert tell_alerts(now=NOON.replace(hour=hour)) == []
    assert (mail.outbox, Delivery.objects.count()) == ([], 0)
    assert len(tell_alerts(now=NOON.replace(hour=7))) == 1
    assert (len(mail.outbox), Delivery.objects.count()) == (1, 1)


def test_several_alerts_at_once_are_one_mail(raised: Alert) -> None:
    Alert.objects.create(
        standing=raised.standing,
        trend="t" * 12,
        metric="m",
        commit="c" * 40,
        ratio=2,
        worse=True,
        text="also this",
    )
    tell_alerts(now=NOON)
    (sent,) = mail.outbox
    assert "(and 1 more)" in sent.subject
    assert "also this" in sent.body


def test_a_mail_that_cannot_be_sent_is_tried_again_and_hooks_hear_once(
    raised: Alert, alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_hook(by=alice, fields=HookFields("ours", "https://ci.example.org/"))

    def fails(*_: object) -> None:
        raise ConnectionRefusedError("nobody there")

    with monkeypatch.context() as patched:
        patched.setattr("lab.standing.alerts.send_mail", fails)
        (outcome,) = tell_alerts(now=NOON)
    assert "the mail could not be sent" in outcome.problem
    tell_alerts(now=NOON)
    assert (len(mail.outbox), Delivery.objects.count()) == (1, 1)


def test_a_subject_of_two_lines_does_not_become_a_header(raised: Alert) -> None:
    Alert.objects.update(text="a step\nBcc: everybody@example.org")
    tell_alerts(now=NOON)
    assert mail.outbox[0].subject == "[kperflab] nightly: a step Bcc: everybody@example.org"


def test_the_first_who_sees_an_alert_is_noted(raised: Alert, alice: User) -> None:
    assert see_alert(alert_id=raised.pk, by=alice).seen_by == alice
    assert see_alert(alert_id=raised.pk, by=make_user("dave")).seen_by == alice
    with pytest.raises(NotAllowed):
        see_alert(alert_id=raised.pk, by=make_user("bob", User.Role.VIEWER))
    with pytest.raises(UnknownRow):
        see_alert(alert_id=999, by=alice)
