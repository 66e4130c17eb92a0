# SPDX-License-Identifier: GPL-2.0-or-later
"""A trend's points and steps as plain data: the same in the page's JSON and in the API."""

from typing import Any

from lab.trends.page import Point, StepView


def point_data(point: Point) -> dict[str, Any]:
    """One measured revision; median, low and high in the metric's unit."""
    return {
        "commit": point.revision.commit,
        "position": point.revision.position,
        "subject": point.revision.subject,
        "author": point.revision.author,
        "median": point.median,
        "low": point.low,
        "high": point.high,
        "boots": point.boots,
        "experiments": list(point.experiments),
    }


def step_data(step: StepView) -> dict[str, Any]:
    """One step; `at` is the index of the point that it begins with, the ratio is after over before."""
    return {
        "at": step.index,
        "verdict": step.verdict,
        "pending": step.pending,
        "why": step.why,
        "ratio": step.ratio,
        "low": step.low,
        "high": step.high,
        "p_value": step.p_value,
        "good": step.good.commit,
        "bad": step.bad.commit,
        "suspects": [suspect.commit for suspect in step.suspects],
        "unlisted": step.unlisted,
    }
