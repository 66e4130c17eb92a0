# SPDX-License-Identifier: GPL-2.0-or-later
"""The simulated day of bench/fleet: equal seeds give equal days, people work by day, and its picture is drawn of what was measured."""

from __future__ import annotations

from collections import Counter
from xml.etree import ElementTree

from bench.fleet.day import BOOT_S, DAY_S, HOUR_S, submissions, trees_for
from bench.fleet.picture import draw_growth
from bench.fleet.report import SERVICE, Growth


def test_equal_seeds_give_equal_days_and_others_do_not() -> None:
    assert submissions(2.5, 1) == submissions(2.5, 1)
    assert submissions(2.5, 1) != submissions(2.5, 2)


def test_people_work_by_day_and_machines_at_any_hour() -> None:
    day = submissions(10, 1)
    of_people = Counter(
        int(submission.at_s // HOUR_S) for submission in day if submission.kind in {"series", "burst"}
    )
    assert sum(of_people[hour] for hour in range(8, 18)) > 2 * sum(of_people[hour] for hour in range(8))
    standing = Counter(int(submission.at_s // HOUR_S) for submission in day if submission.kind == "standing")
    assert set(standing.values()) == {20}
    assert [submission.at_s for submission in day] == sorted(submission.at_s for submission in day)
    assert {submission.priority for submission in day} == {"low", "normal", "high"}


def test_a_fleet_of_any_size_is_kept_busy_for_the_share_that_was_asked() -> None:
    for targets in (10, 1000):
        day = submissions(trees_for(targets, 0.5, seed=1), seed=1)
        busy = sum(submission.runs for submission in day) * BOOT_S / (targets * DAY_S)
        assert 0.3 < busy < 0.7


def test_even_one_target_has_something_to_do_in_a_part_of_a_day() -> None:
    assert len(submissions(trees_for(1, 0.5, seed=1), 1, 9 * HOUR_S, 2 * HOUR_S)) == 1


def test_the_picture_shows_each_size_and_each_cost() -> None:
    rows = [
        Growth(n, 10 * n, 0.5, dict.fromkeys((*SERVICE, "hosts"), 3.0 * n), 100.0 / n, 20.0, 8.0)
        for n in (1, 10, 100)
    ]
    picture = ElementTree.fromstring(draw_growth(rows))
    lines = picture.findall("{http://www.w3.org/2000/svg}polyline")
    assert len(lines) == 6
    assert all(len(line.attrib["points"].split()) == 3 for line in lines)
