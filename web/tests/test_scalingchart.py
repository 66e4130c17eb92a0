# SPDX-License-Identifier: GPL-2.0-or-later
"""The picture of a scaling curve and the table under it."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest
from django.template.loader import render_to_string

from web.views.contention import scaling_plot

KERNFS = {"base": {1: 1.0, 2: 2.0, 4: 2.7, 8: 4.1}, "hashed": {1: 1.0, 8: 2.7}}


def test_each_variant_has_a_line_with_a_point_for_each_number_of_cpus() -> None:
    plot = scaling_plot(KERNFS)
    assert plot is not None
    assert [(curve["name"], curve["index"], len(curve["points"])) for curve in plot["curves"]] == [
        ("base", 0, 4), ("hashed", 1, 2),
    ]  # fmt: skip
    assert plot["curves"][1]["d"].count("L") == 1


def test_twice_the_cpus_and_twice_the_slowdown_are_equal_steps() -> None:
    plot = scaling_plot({"a": {1: 1, 2: 2, 4: 4, 8: 8}})
    assert plot is not None
    points = plot["curves"][0]["points"]
    across = {round(b["x"] - a["x"], 0) for a, b in pairwise(points)}
    up = {round(a["y"] - b["y"], 0) for a, b in pairwise(points)}
    assert (len(across), len(up)) == (1, 1)
    assert [tick["label"] for tick in plot["y_ticks"]] == ["1×", "2×", "4×", "8×"]


def test_everything_lies_within_the_frame() -> None:
    plot = scaling_plot({"a": {1: 0.5, 64: 5000}, "b": {3: 1}})
    assert plot is not None
    for curve in plot["curves"]:
        for point in curve["points"]:
            assert plot["frame"].left <= point["x"] <= plot["frame"].right
            assert plot["frame"].top <= point["y"] <= plot["frame"].bottom
    assert len(plot["y_ticks"]) <= 10


@pytest.mark.parametrize(
    "values", [{}, {"a": {}}, {"a": {1: math.nan}}, {"a": {8: -1.0}}, {"a": {4: math.inf}}, {"a": {0: 1.0}}]
)
def test_nothing_is_drawn_of_nothing(values: dict[str, dict[int, float]]) -> None:
    assert scaling_plot(values) is None


@pytest.mark.parametrize("values", [{1: 1.0}, {8: 1.0}, {8: 1.0, 16: 1.0}, {1: 1.0, 2: 1.0}])
def test_few_and_equal_values_are_drawn_too(values: dict[int, float]) -> None:
    plot = scaling_plot({"a": values})
    assert plot is not None
    assert all(math.isfinite(point["x"] + point["y"]) for point in plot["curves"][0]["points"])


def test_the_page_has_the_data_as_a_table_and_escapes_names() -> None:
    page = render_to_string("web/scaling.html", {"plot": scaling_plot({"<b>": {1: 1.0, 8: 4.1}} | KERNFS)})
    assert "<b>" not in page
    assert "&lt;b&gt;" in page
    assert '<td class="n">4.1</td>' in page
    assert "–" in page
    assert "<script" not in page
    assert "style=" not in page
