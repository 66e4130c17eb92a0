# SPDX-License-Identifier: GPL-2.0-or-later
"""The repeatability of alerts over the tables: which experiments repeated them, and what these say."""

from __future__ import annotations

import pytest
from django.test import Client

from lab.models import Alert, Standing
from lab.standing.alerts import raise_alerts
from lab.standing.tests.test_alerts import WOBBLE, alice, feed, standing
from lab.trends.repeatability import Repeatability, repeatability, repeats
from lab.trends.tests.test_trends import measured

__all__ = ["alice", "standing"]
pytestmark = pytest.mark.django_db


@pytest.fixture
def alert(standing: Standing) -> Alert:
    feed(standing, [100, 100, 100, 110, 110, 110])
    (raised_alert,) = raise_alerts()
    return raised_alert


def again(number: int, level: float) -> int:
    return measured(number, *(level + wobble for wobble in WOBBLE)).pk


def test_an_alert_that_nobody_repeated_says_nothing(alert: Alert) -> None:
    assert repeatability() == Repeatability(alerts=1, repeated=0, confirmed=0)
    assert repeatability().share is None


@pytest.mark.parametrize(
    ("level", "confirmed"), [(110.0, True), (112.0, True), (100.0, False), (103.0, False)]
)
def test_a_later_experiment_of_the_same_revision_decides(alert: Alert, level: float, confirmed: bool) -> None:
    experiment = again(3, level)
    (repeat,) = repeats()
    assert (repeat.alert, repeat.experiments, repeat.confirmed) == (alert.pk, (experiment,), confirmed)
    assert repeatability().share == float(confirmed)


def test_experiments_of_other_revisions_repeat_nothing(alert: Alert) -> None:
    again(4, 100.0)
    again(2, 110.0)
    assert repeats() == ()


def test_several_repetitions_are_taken_together(alert: Alert) -> None:
    experiments = (again(3, 100.0), again(3, 110.0), again(3, 111.0))
    assert repeats()[0].experiments == experiments
    assert repeats()[0].confirmed


def test_the_api_publishes_share_and_counts(alert: Alert, client: Client) -> None:
    address = "/api/v1/alerts/repeatability/"
    assert client.get(address).json() == {
        "alerts": 1,
        "repeated": 0,
        "confirmed": 0,
        "share": None,
        "repeats": [],
    }
    experiment = again(3, 110.0)
    assert client.get(address).json() == {
        "alerts": 1,
        "repeated": 1,
        "confirmed": 1,
        "share": 1.0,
        "repeats": [{"alert": alert.pk, "experiments": [experiment], "confirmed": True}],
    }


def test_the_page_of_trends_and_of_alerts_publish_it(alert: Alert, client: Client) -> None:
    again(3, 110.0)
    for address in ("/trends/", "/alerts/"):
        assert (
            "1 of 1 repeated alert was confirmed (of the newest 1 alert)."
            in client.get(address).content.decode()
        )
