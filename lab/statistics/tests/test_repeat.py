# SPDX-License-Identifier: GPL-2.0-or-later
"""The tables of `bench.repeat`: how far boots of one kernel differ, and false alarms among them."""

from __future__ import annotations

import random

from bench.repeat import false_alarms, spread

METRICS = {"ns": {"name": "ns", "better": "lower", "margin": 0.0}}


def boots_of(number: int, middle: float = 100.0) -> list[tuple[float, ...]]:
    dice = random.Random(number)
    return [tuple(dice.gauss(middle, 1.0) for _ in range(3)) for _ in range(number)]


def test_every_two_groups_of_a_kernels_boots_are_compared_and_none_of_two_kernels() -> None:
    boots = {("walk", "base", "ns"): boots_of(13), ("walk", "patched", "ns"): boots_of(6, 200.0)}
    lines = list(false_alarms(boots, METRICS, 3))
    # Four groups of the base make six pairs, two groups of the other kernel one; the thirteenth boot is left over.
    assert lines[-1].split() == ["together", "7", "0"]


def test_groups_of_one_kernel_that_differ_are_false_alarms() -> None:
    boots = {("walk", "base", "ns"): [*boots_of(4, 100.0), *boots_of(5, 200.0)[:4]]}
    assert list(false_alarms(boots, METRICS, 4))[-1].split() == ["together", "1", "1"]


def test_the_spread_is_relative_to_the_middle_boot() -> None:
    line = list(spread({("walk", "base", "ns"): [(100.0,), (90.0,), (120.0,)]}))[1]
    assert line.split() == ["walk", "base", "ns", "3", "100", "-10.0%", "+20.0%", "14.78%"]
