# SPDX-License-Identifier: GPL-2.0-or-later
from __future__ import annotations

import math

import pytest

from web.charts import BAR_WIDTH, bar, histogram, span
from web.stripchart import StripRow, strip_plot


def test_no_change_lies_in_the_middle() -> None:
    drawn = bar(span([0.5, 1.0], 0.02), 0.9, 1.0, 1.1)
    assert drawn["middle"] == drawn["zero"] == BAR_WIDTH / 2
    assert drawn["low"] < drawn["middle"] < drawn["high"]
    assert not drawn["cut_low"]
    assert not drawn["cut_high"]


def test_halving_and_doubling_lie_equally_far_from_no_change() -> None:
    axis = span([0.5, 2.0], 0.01)
    half, double = bar(axis, 0.5, 0.5, 0.5), bar(axis, 2.0, 2.0, 2.0)
    assert BAR_WIDTH / 2 - half["middle"] == pytest.approx(double["middle"] - BAR_WIDTH / 2, abs=0.2)


def test_all_intervals_of_an_axis_fit_on_it() -> None:
    ratios = [0.47, 0.99, 1.3]
    axis = span(ratios, 0.01)
    for ratio in ratios:
        drawn = bar(axis, ratio, ratio, ratio)
        assert 0 < drawn["middle"] < BAR_WIDTH
        assert not drawn["cut_low"]


def test_an_interval_that_leaves_the_axis_says_so() -> None:
    axis = span([1e-9, 1e9], 0.01)
    drawn = bar(axis, 1e-9, 1.0, math.inf)
    assert drawn["cut_low"]
    assert drawn["cut_high"]
    assert 0 <= drawn["low"] <= drawn["high"] <= BAR_WIDTH


def test_an_interval_down_to_zero_is_drawn() -> None:
    assert bar(span([0.0, 1.0], 0.01), 0.0, 0.5, 1.0)["cut_low"]


def test_the_margin_is_a_band_around_no_change() -> None:
    drawn = bar(span([1.001], 0.05), 1.0, 1.001, 1.002)
    assert drawn["band"] < drawn["zero"] < drawn["band"] + drawn["band_width"] < BAR_WIDTH


def places(points: str) -> list[tuple[float, float]]:
    return [(float(x), float(y)) for x, y in (point.split(",") for point in points.split())]


def test_a_histogram_draws_each_variant_within_its_frame() -> None:
    plot = histogram({"base": {1.0: 5, 20.0: 1000, 900.0: 1}, "p": {2.0: 3}}, "µs")
    assert [line["name"] for line in plot["lines"]] == ["base", "p"]
    assert [line["samples"] for line in plot["lines"]] == [1006, 3]
    for line in plot["lines"]:
        for x, y in places(line["points"]):
            assert plot["frame"].left <= x <= plot["frame"].right
            assert plot["frame"].top <= y <= plot["frame"].bottom


def test_a_single_outlier_stands_above_the_floor() -> None:
    plot = histogram({"base": {10.0: 100_000, 5000.0: 1}}, "µs")
    right_half = [
        y
        for x, y in places(plot["lines"][0]["points"])
        if x > (plot["frame"].left + plot["frame"].right) * 0.8
    ]
    assert min(right_half) < plot["frame"].bottom - 5


def test_neighbouring_whole_numbers_leave_no_gap_between_them() -> None:
    plot = histogram({"base": {float(value): 10 for value in range(3, 60)}}, "µs")
    inner = [y for _, y in places(plot["lines"][0]["points"])][1:-1]
    assert max(inner) < plot["frame"].bottom


def test_variants_differ_by_dash_as_well_as_by_colour() -> None:
    plot = histogram({name: {1.0: 1} for name in "abc"}, "ns")
    assert (
        len({line["dash"] for line in plot["lines"]}) == len({line["index"] for line in plot["lines"]}) == 3
    )


@pytest.mark.parametrize(
    ("low", "high", "labels"),
    [
        (25.0, 45.0, ["30", "40"]),
        (0.31, 0.34, ["0.2873", "0.3481"]),
        (4.0, 60.0, ["5", "10", "20", "50"]),
    ],
)
def test_an_axis_of_latencies_has_labels_however_short_it_is(
    low: float, high: float, labels: list[str]
) -> None:
    plot = histogram({"base": {low: 4, high: 1}}, "µs")
    assert [tick["label"] for tick in plot["x_ticks"]] == labels


def test_a_histogram_of_zeros_and_fractions_is_drawn() -> None:
    assert histogram({"base": {0.0: 4}}, "µs")["lines"][0]["samples"] == 4
    assert histogram({"base": {0.25: 4, 0.5: 1}}, "µs")["x_ticks"]


def test_the_marks_of_a_strip_plot_differ_from_one_another_however_near_they_are() -> None:
    boots = [(1_234_500.0, [1_234_500.0], "", 1), (1_234_900.0, [1_234_900.0], "", 2)]
    row = StripRow("base", "", boots, 1_234_700.0, 1_234_500.0, 1_234_900.0)
    labels = [tick["label"] for tick in strip_plot([row], "ns")["ticks"]]
    assert len(set(labels)) == len(labels)


@pytest.mark.parametrize(("unit", "labels"), [("cycles", False), ("", False), ("ns", True)])
def test_an_axis_repeats_a_unit_only_if_it_is_not_that_of_the_heading(unit: str, labels: bool) -> None:
    row = StripRow(
        "base",
        "",
        [(12_000.0, [12_000.0], "", 1), (26_000.0, [26_000.0], "", 2)],
        19_000.0,
        12_000.0,
        26_000.0,
    )
    ticks = [tick["label"] for tick in strip_plot([row], unit)["ticks"]]
    assert len(ticks) > 1
    assert all((label.endswith("µs")) == labels for label in ticks)
    assert not any("cycles" in label for label in ticks)
