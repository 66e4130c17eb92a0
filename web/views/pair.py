# SPDX-License-Identifier: GPL-2.0-or-later
"""Two experiments side by side."""

from __future__ import annotations

from dataclasses import dataclass

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from lab.comparisons.pair import PairPage, PairRow, pair_page
from lab.errors import UnknownRow
from lab.models import Comparison
from web.access import needs
from web.words import change, quantity

# Verdict, change and interval; all "" where an experiment does not have the patch.
ShownCell = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class ShownRow:
    """One metric in words. patches: by name, the cell of each side."""

    metric: str
    primary: bool
    bases: tuple[str, str]
    base_change: str
    patches: tuple[tuple[str, tuple[ShownCell, ShownCell]], ...]


@needs("read")
@require_safe
def show(request: HttpRequest) -> HttpResponse:
    """Compare ?first= and ?second=, or ask for them; all faults stand beside their fields."""
    typed = {name: request.GET.get(name, "").strip().removeprefix("#")[:20] for name in ("first", "second")}
    errors = {
        name: "Write the number of an experiment."
        for name, text in typed.items()
        if text and not _number(text)
    }
    if any(typed.values()):
        errors |= {name: "Write the number of an experiment." for name, text in typed.items() if not text}
    page = None
    if all(typed.values()) and not errors:
        page, errors = _read(typed)
    ctx = {"typed": typed, "errors": errors, "page": page, "cases": _shown(page) if page else ()}
    return render(request, "web/pair.html", ctx, status=422 if errors else 200)


def _number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 19 else None


def _read(typed: dict[str, str]) -> tuple[PairPage | None, dict[str, str]]:
    try:
        return pair_page(_number(typed["first"]) or 0, _number(typed["second"]) or 0), {}
    except UnknownRow as exc:
        said = str(exc)
        missing = [name for name, text in typed.items() if said.endswith(f" {int(text)}")]
        return None, dict.fromkeys(missing, f"{said[:1].upper()}{said[1:]}.")


def _shown(page: PairPage) -> list[tuple[str, list[ShownRow], list[ShownRow]]]:
    """Return each case with the rows of its primary metrics and those of the others, which are folded."""
    return [(title, *_folded([_row(row) for row in rows])) for title, rows in page.cases]


def _folded(rows: list[ShownRow]) -> tuple[list[ShownRow], list[ShownRow]]:
    first = [row for row in rows if row.primary] or rows
    return first, [row for row in rows if row not in first]


def _row(row: PairRow) -> ShownRow:
    return ShownRow(
        metric=row.metric,
        primary=row.primary,
        bases=(quantity(row.first_base, row.unit), quantity(row.second_base, row.unit)),
        base_change=change(row.base_ratio),
        patches=tuple((name, (_cell(first), _cell(second))) for name, (first, second) in row.patches),
    )


def _cell(one: Comparison | None) -> ShownCell:
    if one is None:
        return "", "", ""
    ends = "" if one.low is None or one.high is None else f"{change(one.low)} to {change(one.high)}"
    return one.verdict, change(one.ratio), ends
