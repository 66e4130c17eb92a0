# SPDX-License-Identifier: GPL-2.0-or-later
"""Two experiments side by side."""

from collections.abc import Sequence

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.text import capfirst
from django.views.decorators.http import require_safe

from lab.comparisons.pair import PairPage, PairRow, pair_page
from lab.errors import UnknownRow
from web.access import needs
from web.listing import row_number


@needs("read")
@require_safe
def show(request: HttpRequest) -> HttpResponse:
    """Compare ?first= and ?second=, or ask for them; all faults stand beside their fields."""
    typed = {name: request.GET.get(name, "").strip().removeprefix("#")[:20] for name in ("first", "second")}
    errors = {
        name: "Write the number of an experiment."
        for name, text in typed.items()
        if text and not row_number(text)
    }
    if any(typed.values()):
        errors |= {name: "Write the number of an experiment." for name, text in typed.items() if not text}
    page = None
    if all(typed.values()) and not errors:
        page, errors = _read(typed)
    ctx = {"typed": typed, "errors": errors, "page": page, "cases": _shown(page) if page else ()}
    return render(request, "web/pair.html", ctx, status=422 if errors else 200)


def _read(typed: dict[str, str]) -> tuple[PairPage | None, dict[str, str]]:
    try:
        return pair_page(row_number(typed["first"]) or 0, row_number(typed["second"]) or 0), {}
    except UnknownRow as exc:
        said = str(exc)
        missing = [name for name, text in typed.items() if said.endswith(f" {int(text)}")]
        return None, dict.fromkeys(missing, f"{capfirst(said)}.")


def _shown(page: PairPage) -> list[tuple[str, list[PairRow], list[PairRow]]]:
    """Return each case with the rows of its primary metrics and those of the others, which are folded."""
    return [(title, *_folded(rows)) for title, rows in page.cases]


def _folded(rows: Sequence[PairRow]) -> tuple[list[PairRow], list[PairRow]]:
    first = [row for row in rows if row.primary] or list(rows)
    return first, [row for row in rows if row not in first]
