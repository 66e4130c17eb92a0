# SPDX-License-Identifier: GPL-2.0-or-later
"""The exit code of an experiment for pipelines: labctl exits with it, reports contain it."""

from __future__ import annotations

from collections.abc import Mapping

from lab.comparisons.page import ComparisonPage
from lab.statistics.verdict_words import VERDICTS

EXIT_OK, EXIT_REGRESSION, EXIT_UNKNOWN, EXIT_LAB = 0, 1, 2, 3


def exit_code(page: ComparisonPage) -> int:
    """0: no regression. 1: one. 2: the data cannot tell, or a variant has no verdict at all. 3: the lab failed."""
    return code_of(page.state, page.verdicts, all_judged=not _without_verdict(page))


def code_of(state: str, verdicts: Mapping[str, int], *, all_judged: bool) -> int:
    """The same from counts: of verdicts on candidates' primary metrics, and whether each candidate has one."""
    if state in {"failed", "cancelled"}:
        return EXIT_LAB
    codes = {VERDICTS[word].exit_code for word, count in verdicts.items() if count}
    if EXIT_REGRESSION in codes:
        return EXIT_REGRESSION
    return EXIT_UNKNOWN if EXIT_UNKNOWN in codes or not codes or not all_judged else EXIT_OK


def _without_verdict(page: ComparisonPage) -> bool:
    """Return whether a candidate that was to be judged never was: it does not compile, boot or survive."""
    judged = {
        cell.variant
        for case in page.cases
        for metric in case.metrics
        if metric.primary
        for cell in metric.cells
        if cell
    }
    return any(side.name not in judged for side in page.candidates if not side.control)
