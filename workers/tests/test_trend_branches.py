# SPDX-License-Identifier: GPL-2.0-or-later
"""`labctl trend` says which branch a trend is of."""

from __future__ import annotations

import pytest
from rich.console import Console

from lab.trends.page import trend_list
from lab.trends.tests.test_trends import measured
from workers.ctl.trend_tables import show_trend, show_trends

pytestmark = pytest.mark.django_db

STABLE = "linux-6.1.y"


def test_trends_are_printed_with_their_branch() -> None:
    for number in range(4):
        measured(number, 100.0, 101.0)
    for number in range(4, 7):
        measured(number, 200.0, 201.0, base_branch=STABLE, base_fork=2)
    main, stable = sorted(trend_list(), key=lambda page: page.line.branch)
    console = Console(width=200, record=True)
    show_trends(console, [main, stable])
    text = console.export_text()
    assert f"tiny, branch {STABLE}, guest, wall" in text
    assert "tiny, guest, wall" in text
    show_trend(console, stable)
    text = console.export_text()
    assert f"tiny, branch {STABLE}, guest, wall clock" in text
    assert "the first 3 revisions are of the default branch, before this branch forked off" in text
