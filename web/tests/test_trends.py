# SPDX-License-Identifier: GPL-2.0-or-later
"""The pages of trends: what is drawn, what is said, and that strangers' subjects stay text."""

from __future__ import annotations

import csv
import io
import re
from html import unescape
from urllib.parse import parse_qsl

import pytest
from django.test import Client

from lab.models import Bisection, Revision, StepDecision, Trend
from web.tests.conftest import SCRIPT, Page
from web.trendchart import Dot, Jump, round_marks, spark, trend_plot


def test_the_list_shows_the_course_and_the_last_step(page: Page, stepped: str) -> None:
    text = page("/trends/")
    assert f"/trends/{stepped}/" in text
    assert "<polyline points=" in text
    assert "pending" in text
    assert SCRIPT not in text


def test_trends_that_differ_in_a_parameter_only_are_told_apart(page: Page, stepped: str) -> None:
    assert "(smoke)" in page("/trends/")
    other = Trend.objects.get(key=stepped)
    other.pk, other.key, other.params = None, "0" * 12, {"threads": 8}
    other.save()
    text = page("/trends/")
    for threads in (2, 8):
        assert f"(smoke, threads={threads})" in text
        assert f"wall clock, threads={threads}<" in text


def test_a_trend_shows_its_steps_with_the_revisions_that_may_have_brought_them(
    page: Page, stepped: str
) -> None:
    text = page(f"/trends/{stepped}/")
    assert text.count('class="spot"') == 8
    assert text.count('class="mark regression"') == 2
    assert "change 4" in text
    assert "regression" in text
    assert SCRIPT not in text
    assert "<title>" in text


def test_a_long_trend_lists_its_newest_revisions_and_says_where_the_others_are(
    page: Page, stepped: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("web.views.trend._MOST_LISTED", 3)
    text = page(f"/trends/{stepped}/")
    table = text[text.index("<h2>Revisions</h2>") :]
    assert [number for number in range(8) if f"change {number}" in table] == [5, 6, 7]
    assert "The newest 3 of 8; all are in the files above." in table
    assert text.count('class="spot"') == 8


def test_a_trend_is_there_as_csv_and_as_json(client: Client, stepped: str) -> None:
    whole = client.get(f"/trends/{stepped}.json").json()
    assert [point["commit"][-1] for point in whole["points"]] == list("01234567")
    assert [step["at"] for step in whole["steps"]] == [4, 7]
    assert whole["points"][4]["subject"] == f"change 4 {SCRIPT}"
    Revision.objects.filter(position=0).update(subject="=cmd()")
    response = client.get(f"/trends/{stepped}.csv")
    assert response.headers["Content-Type"].startswith("text/csv")
    lines = list(csv.DictReader(io.StringIO(response.content.decode())))
    assert [line["step"] for line in lines] == ["", "", "", "", "regression", "", "", "regression"]
    assert lines[0]["subject"] == "'=cmd()"


@pytest.mark.django_db
@pytest.mark.parametrize("form", ["csv", "json"])
def test_a_file_of_an_unknown_trend_is_not_found(client: Client, form: str) -> None:
    assert client.get(f"/trends/nowhere.{form}").status_code == 404


@pytest.mark.django_db
def test_an_unknown_trend_is_not_found(client: Client) -> None:
    assert client.get("/trends/nowhere/").status_code == 404


def dots(*values: float) -> list[Dot]:
    return [Dot(value, value - 1, value + 1, f"r{index}", "") for index, value in enumerate(values)]


def test_a_chart_keeps_all_boots_inside_its_frame_and_larger_values_higher() -> None:
    plot = trend_plot(dots(10, 20, 15), [Jump(1, "regression", False, "")], [10, 17])
    for spot in plot["spots"]:
        assert plot["frame"].left < spot["x"] < plot["frame"].right
        assert plot["frame"].top <= spot["high"] <= spot["y"] <= spot["low"] <= plot["frame"].bottom
    assert plot["spots"][1]["y"] < plot["spots"][0]["y"]
    assert plot["spots"][0]["x"] < plot["marks"][0]["x"] < plot["spots"][1]["x"]
    assert [level["left"] for level in plot["levels"]] == [plot["frame"].left, plot["marks"][0]["x"]]


@pytest.mark.parametrize("values", [(0.0,), (5.0, 5.0), (1e-9, 2e-9), (1e12, 1e12), (-3.0, 4.0)])
def test_a_chart_of_anything_has_a_few_marks(values: tuple[float, ...]) -> None:
    flat = [Dot(value, value, value, "r", "") for value in values]
    assert 2 <= len(trend_plot(flat, [], [values[0]])["y_ticks"]) <= 8


@pytest.mark.parametrize(
    ("low", "high", "marks"),
    [
        (0.0, 1.0, [0.0, 0.5, 1.0]),
        (98.0, 103.0, [98.0, 100.0, 102.0, 104.0]),
        (-3.0, 5.0, [-4.0, -2.0, 0.0, 2.0, 4.0, 6.0]),
        (39_000.0, 39_400.0, [39_000.0, 39_100.0, 39_200.0, 39_300.0, 39_400.0]),
        (100.0, 100.0, [99.0, 99.5, 100.0, 100.5, 101.0]),
        (0.0, 0.0, [-1.0, -0.5, 0.0, 0.5, 1.0]),
    ],
)
def test_marks_are_round_and_enclose_what_is_drawn(low: float, high: float, marks: list[float]) -> None:
    assert round_marks(low, high) == marks


@pytest.mark.parametrize(
    ("low", "high", "labels"),
    [
        (114.02, 114.05, ["114.02", "114.03", "114.04", "114.05"]),
        (
            12_345.0,
            12_345.4,
            ["12\u202f345.0", "12\u202f345.1", "12\u202f345.2", "12\u202f345.3", "12\u202f345.4"],
        ),
        (0.25, 0.5, ["0.2", "0.3", "0.4", "0.5"]),
    ],
)
def test_the_marks_of_a_chart_differ_from_one_another_however_near_they_are(
    low: float, high: float, labels: list[str]
) -> None:
    plot = trend_plot([Dot(low, low, high, "r", "")], [], [low])
    assert [mark["label"] for mark in plot["y_ticks"]] == labels


def test_many_revisions_name_only_some_of_them() -> None:
    assert len(trend_plot(dots(*range(100)), [], [50.0])["x_ticks"]) <= 8


def test_a_spark_of_one_value_is_a_point() -> None:
    assert spark([5.0]) == "2.0,2.0"


def test_a_step_of_one_commit_has_nothing_to_search(submitter: Client, stepped: str) -> None:
    text = submitter.post("/trends/steps", {"bisect": f"{stepped}:{4:040x}"}, follow=True).content.decode()
    assert "one commit is in the range, so there is nothing to search" in text
    assert Bisection.objects.count() == StepDecision.objects.count() == 0


def test_the_pages_of_both_lists_keep_each_others_place(
    page: Page, stepped: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("web.views.steps._LISTED", 1)
    text = page("/trends/?search=ns&page=1&steps=1")
    (link,) = re.findall(r'<a class="button" href="([^"]*)">More</a>', text)
    assert sorted(parse_qsl(unescape(link).removeprefix("?"))) == [
        ("page", "1"),
        ("search", "ns"),
        ("steps", "2"),
    ]
