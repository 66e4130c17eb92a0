# SPDX-License-Identifier: GPL-2.0-or-later
"""A trend's points and steps as plain data: the same in the page's JSON and in the API."""

from dataclasses import asdict
from typing import Any

from lab.trends.page import Point, StepView


def point_data(point: Point) -> dict[str, Any]:
    """Return one measured revision; median, low and high in the metric's unit."""
    data = asdict(point)
    return {**data.pop("revision"), **data}


def step_data(step: StepView) -> dict[str, Any]:
    """Return one step; `at` is the index of the point that it begins with, the ratio is after over before."""
    same = ("verdict", "pending", "why", "ratio", "low", "high", "p_value", "unlisted")
    return {
        "at": step.index,
        "good": step.good.commit,
        "bad": step.bad.commit,
        "suspects": [suspect.commit for suspect in step.suspects],
        **{name: getattr(step, name) for name in same},
    }
