# SPDX-License-Identifier: GPL-2.0-or-later
"""Counters of profiled boots, all variants side by side; the same as CSV and JSON."""

from collections.abc import Sequence
from dataclasses import asdict

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from lab.profiles.counters import CounterCell, CounterPage, counter_page
from web.views.profile_kinds import WORDS, cost_of
from web.views.trend_data import csv_file
from web.words import NONE, change, number

_FIRST = 20
_HEADS = (
    *("source", "counter", "variant", "median", "low", "high", "ratio", "ratio_low", "ratio_high", "q"),
    "certain",
)


@require_safe
def show(request: HttpRequest, experiment_id: int, case_id: int) -> HttpResponse:
    """The first counters of one case; all of them with ?rows=all."""
    page = counter_page(experiment_id, case_id)
    lines = [{"source": row.source, "name": row.name, "cells": _texts(page, row.cells)} for row in page.rows]
    shown = lines if request.GET.get("rows") == "all" else lines[:_FIRST]
    ctx = {
        "page": page,
        "key": experiment_id,
        "tab": "profile",
        "lines": shown,
        "hidden": len(lines) - len(shown),
        "every": len(lines),
        "first": _FIRST,
        "costs": [(WORDS[cost.kind].label, cost.kind, cost_of(cost)) for cost in page.costs],
        "kinds": [(cost.kind, WORDS[cost.kind].label) for cost in page.costs],
        "iterations": [(column.variant, column.boots, number(column.iterations)) for column in page.columns],
    }
    return render(request, "web/counters.html", ctx)


@require_safe
def as_csv(request: HttpRequest, experiment_id: int, case_id: int) -> HttpResponse:
    """One line per counter and variant; numbers are per timed iteration."""
    page = counter_page(experiment_id, case_id)
    rows: list[Sequence[object]] = [_HEADS]
    for row in page.rows:
        for column, cell in zip(page.columns, row.cells, strict=True):
            moved = (cell.ratio, cell.ratio_low, cell.ratio_high, cell.q)
            names = (row.source, row.name, column.variant)
            rows.append((*names, cell.median, cell.low, cell.high, *moved, cell.certain))
    return csv_file(rows, f"counters-{experiment_id}-{case_id}.csv")


@require_safe
def as_json(request: HttpRequest, experiment_id: int, case_id: int) -> JsonResponse:
    """lab/profiles/counters.py's CounterPage."""
    page = counter_page(experiment_id, case_id)
    document = asdict(page)
    for row, counter in zip(document["rows"], page.rows, strict=True):
        for cell, own in zip(row["cells"], counter.cells, strict=True):
            cell["certain"] = own.certain
    return JsonResponse(document | {"per": "timed iteration"})


def _texts(page: CounterPage, cells: tuple[CounterCell, ...]) -> list[dict[str, str]]:
    return [
        counter_text(cell, base=column.role == "base")
        for column, cell in zip(page.columns, cells, strict=True)
    ]


def counter_text(cell: CounterCell, *, base: bool) -> dict[str, str]:
    """One cell in words: median and its interval, change and its interval, ▲, ▼ or ◆ for a significant change."""
    if cell.median is None:
        return {"value": NONE}
    words = {
        "value": number(cell.median),
        "range": f"{number(cell.low)} to {number(cell.high)}" if cell.low != cell.high else "",
    }
    if base:
        return words
    if cell.certain:
        words["mark"] = "◆" if cell.ratio is None else "▲" if cell.ratio > 1 else "▼"
    if cell.ratio_low is not None and cell.ratio_high is not None:
        words["between"] = f"{change(cell.ratio_low)} to {change(cell.ratio_high)}"
    return words | {"change": "" if cell.ratio is None else change(cell.ratio)}
