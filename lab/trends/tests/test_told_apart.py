# SPDX-License-Identifier: GPL-2.0-or-later
"""Trends of one title, and the words that distinguish them in lists."""

from dataclasses import replace

from lab.trends.tests.test_step_groups import LINE
from lab.trends.told_apart import told_apart


def test_namesakes_are_told_apart_by_what_differs() -> None:
    lines = [
        replace(LINE, key="alone", preset="large"),
        replace(LINE, key="2", params={"opens": 10, "threads": 2}),
        replace(LINE, key="8", params={"opens": 10, "threads": 8}),
        replace(LINE, key="branch", branch="stable"),
    ]
    assert told_apart(lines) == {"alone": "", "2": "threads=2", "8": "threads=8", "branch": ""}


def test_namesakes_of_the_same_parameters_have_other_configs() -> None:
    lines = [replace(LINE, key="old"), replace(LINE, key="new", config="12345678")]
    assert told_apart(lines) == {"old": "config c0ffee00", "new": "config 12345678"}
