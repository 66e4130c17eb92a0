# SPDX-License-Identifier: GPL-2.0-or-later
"""Steps by cause, and the repeatability of alerts: tables of pure functions."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from lab.trends.page import RevisionView, StepView, TrendLine, TrendPage
from lab.trends.repeatability import is_confirmed
from lab.trends.step_groups import group_steps

LINE = TrendLine(
    key="a" * 12,
    tree="linux",
    tree_id=1,
    branch="",
    trunk="",
    workload="showgids",
    preset="smoke",
    params={"opens": 10},
    target="kvm1",
    clock="wall",
    config="c0ffee00",
    metric="ns_per_open",
    unit="ns",
    better="lower",
    margin=0.01,
    primary=True,
)


def revision(number: int) -> RevisionView:
    return RevisionView(f"{number:040x}", f"change {number}", "Ann", number)


STEP = StepView(
    index=1,
    good=revision(3),
    bad=revision(5),
    earliest=revision(5),
    latest=revision(5),
    suspects=(revision(4), revision(5)),
    unlisted=0,
    before=100.0,
    after=120.0,
    ratio=1.2,
    low=1.1,
    high=1.3,
    p_value=0.001,
    verdict="regression",
    pending=False,
    why="",
)


def page(steps: list[StepView], **line: Any) -> TrendPage:
    return TrendPage(replace(LINE, **line), (), tuple(steps), 0)


def keys(*pages: TrendPage) -> list[str]:
    return ["+".join(metric.line.metric for metric in group.metrics) for group in group_steps(pages)]


OTHER: dict[str, Any] = {"metric": "b", "key": "b" * 12}


@pytest.mark.parametrize(
    ("pages", "groups"),
    [
        ([], []),
        ([page([])], []),
        ([page([STEP])], ["ns_per_open"]),
        ([page([STEP]), page([STEP], **OTHER)], ["b+ns_per_open"]),
        ([page([STEP], metric=f"m{number:02}") for number in range(12)], ["+".join(f"m{n:02}" for n in range(12))]),
        ([page([STEP]), page([replace(STEP, bad=revision(6))], **OTHER)], ["ns_per_open", "b"]),
        ([page([STEP]), page([replace(STEP, good=revision(2))], **OTHER)], ["ns_per_open", "b"]),
        ([page([STEP]), page([STEP], **OTHER, target="kvm2")], ["ns_per_open", "b"]),
        ([page([STEP]), page([STEP], **OTHER, tree="other")], ["ns_per_open", "b"]),
        ([page([STEP]), page([STEP], **OTHER, workload="fork")], ["ns_per_open", "b"]),
        ([page([STEP]), page([STEP], **OTHER, preset="long")], ["ns_per_open", "b"]),
        ([page([STEP]), page([STEP], **OTHER, params={"opens": 11})], ["ns_per_open", "b"]),
        ([page([STEP]), page([STEP], **OTHER, clock="instructions")], ["ns_per_open", "b"]),
        ([page([STEP]), page([STEP], **OTHER, config="deadbeef")], ["ns_per_open", "b"]),
        # What decides leads, then the larger change, in either direction.
        ([page([STEP], primary=False), page([replace(STEP, ratio=1.01)], **OTHER)], ["b+ns_per_open"]),
        ([page([STEP]), page([replace(STEP, ratio=0.5)], **OTHER)], ["b+ns_per_open"]),
        ([page([replace(STEP, ratio=None)]), page([STEP], **OTHER)], ["b+ns_per_open"]),
        # What is sure comes before what is pending, worse before better, large before small.
        ([page([replace(STEP, pending=True)]), page([replace(STEP, bad=revision(6), ratio=1.01)], **OTHER)], ["b", "ns_per_open"]),
        ([page([replace(STEP, verdict="improvement", ratio=0.1)]), page([replace(STEP, bad=revision(6))], **OTHER)], ["b", "ns_per_open"]),
        ([page([STEP, replace(STEP, bad=revision(9), ratio=1.5)])], ["ns_per_open", "ns_per_open"]),
    ],
)  # fmt: skip
def test_one_change_of_one_case_on_one_target_is_one_row(pages: list[TrendPage], groups: list[str]) -> None:
    assert keys(*pages) == groups


@pytest.mark.parametrize(
    ("verdicts", "verdict"),
    [
        ([("regression", True)], "regression"),
        ([("improvement", True)], "improvement"),
        ([("improvement", True), ("regression", True)], "regression"),
        ([("improvement", True), ("regression", False)], "improvement"),
        ([("improvement", False), ("regression", False)], "regression"),
    ],
)
def test_a_row_is_called_by_what_decides(verdicts: list[tuple[str, bool]], verdict: str) -> None:
    pages = [
        page([replace(STEP, verdict=word)], metric=f"m{number}", primary=primary)
        for number, (word, primary) in enumerate(verdicts)
    ]
    assert [group.verdict for group in group_steps(pages)] == [verdict]


def test_a_row_is_picked_by_all_its_trends_and_its_revision() -> None:
    (group,) = group_steps([page([STEP]), page([STEP], **OTHER)])
    assert group.pick == f"{'b' * 12}-{'a' * 12}:{5:040x}"
    assert not group.pending


@pytest.mark.parametrize(
    ("before", "ratio", "boots", "confirmed"),
    [
        (100.0, 1.2, [120.0], True),
        (100.0, 1.2, [119.0, 121.0, 500.0], True),
        (100.0, 1.2, [100.0], False),
        (100.0, 1.2, [109.0], False),
        (100.0, 1.2, [110.0], True),
        (100.0, 1.2, [80.0], False),
        (100.0, 1.2, [150.0], True),
        (100.0, 0.8, [80.0], True),
        (100.0, 0.8, [95.0], False),
        (100.0, 0.8, [120.0], False),
        (100.0, 0.8, [60.0], True),
        (0.0, 1.2, [3.0], False),
        (-100.0, 1.2, [-119.0], True),
        (-100.0, 1.2, [-101.0], False),
    ],
)
def test_a_repetition_confirms_beyond_the_middle_of_the_step(
    before: float, ratio: float, boots: list[float], confirmed: bool
) -> None:
    assert is_confirmed(before, ratio, boots) is confirmed
