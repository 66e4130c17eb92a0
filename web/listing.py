# SPDX-License-Identifier: GPL-2.0-or-later
"""The address of a filtered list: read, checked, and written again for sorting and paging."""

import re
from collections.abc import Callable, Mapping
from dataclasses import fields
from datetime import UTC, datetime
from functools import wraps
from typing import Any
from urllib.parse import parse_qsl, urlencode

from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect
from django.urls import reverse

from lab.experiments.list_page import NEWEST, ORDERS, ExperimentFilter, FilterChoices

LONGEST = 200
_CHOICES = {
    "state": "states",
    "tree": "trees",
    "verdict": "verdicts",
    "target": "targets",
    "workload": "workloads",
    "submitter": "submitters",
    "priority": "priorities",
}
NAMES = (*(field.name for field in fields(ExperimentFilter)), "page")


def read_asked(
    query: Mapping[str, str], choices: FilterChoices
) -> tuple[ExperimentFilter, int, dict[str, str]]:
    """Return the filter of an address, its page, and errors by field; an invalid field does not filter."""
    errors: dict[str, str] = {}
    texts = {name: query.get(name, "").strip().replace("\0", "")[:LONGEST] for name in NAMES}
    for name, attribute in _CHOICES.items():
        if texts[name] and texts[name] not in getattr(choices, attribute):
            errors[name] = f"There is no {name} “{texts[name][:60]}” here."
    since, wrong = _date(texts["created_after"])
    until, wrong_too = _date(texts["created_before"])
    errors |= {name: said for name, said in (("created_after", wrong), ("created_before", wrong_too)) if said}
    ordering = texts["ordering"] or NEWEST
    if ordering.removeprefix("-") not in ORDERS:
        errors["ordering"] = f"The list cannot be sorted by “{ordering[:60]}”."
        ordering = NEWEST
    page = int(texts["page"]) if re.fullmatch(r"[0-9]{1,9}", texts["page"]) else 1
    words = {name: "" if name in errors else texts[name] for name in ("search", *_CHOICES)}
    return (
        ExperimentFilter(**words, created_after=since, created_before=until, ordering=ordering),
        page,
        errors,
    )


def selects(
    query: Mapping[str, str], choices: FilterChoices, errors: Mapping[str, str]
) -> list[dict[str, Any]]:
    """Return the filters that are chosen from a list; filters that offer no choice are left out."""
    return [
        {
            "name": name,
            "label": name.capitalize(),
            "options": getattr(choices, attribute),
            "chosen": query.get(name, ""),
            "error": errors.get(name, ""),
        }
        for name, attribute in _CHOICES.items()
        if len(getattr(choices, attribute)) > 1 or query.get(name)
    ]


def columns(query: Mapping[str, str], ordering: str) -> list[dict[str, Any]]:
    """Return the heads of the table; a click on the sorted column reverses the order."""
    heads = [
        ("Name", "name", False),
        ("State", "state", False),
        ("Answer", "", False),
        ("Boots", "", True),
        ("Variants", "", True),
        ("Tree and base", "tree", False),
        ("Submitted", "created_at", False),
    ]
    return [_column(query, ordering, *head) for head in heads]


def address(query: Mapping[str, str], **changed: str) -> str:
    """Return the address of this list with some parameters changed; empty ones and the default order are left out."""
    params = {name: query.get(name, "") for name in NAMES if name != "page"} | changed
    kept = {name: value for name, value in params.items() if value and (name, value) != ("ordering", NEWEST)}
    return f"?{urlencode(kept)}" if kept else "?"


def _column(query: Mapping[str, str], ordering: str, label: str, key: str, numeric: bool) -> dict[str, Any]:
    """Return one head: the address that sorts by it, and how it is sorted now as aria-sort has it."""
    column: dict[str, Any] = {"label": label, "numeric": numeric}
    if not key:
        return column
    by, down = ordering.removeprefix("-") == key, ordering.startswith("-")
    # The order of the first click: the newest first, but names from A on.
    first = f"-{key}" if key == "created_at" else key
    turned = key if down else f"-{key}"
    now = ("descending" if down else "ascending") if by else ""
    return column | {"address": address(query, ordering=turned if by else first), "sorted": now}


def _date(text: str) -> tuple[datetime | None, str]:
    if not text:
        return None, ""
    try:
        moment = datetime.fromisoformat(text)
        # Databases keep times in UTC, which has no year 0 and no year 10000.
        return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC), ""
    except (ValueError, OverflowError):
        return None, f"“{text[:40]}” is not a date; write it as 2026-11-20."


def kept_filters(request: HttpRequest, without: str = "page") -> str:
    """Return the query string of a list's address without its page number, such as "state=running"; "" if it has no filter.

    without: the parameter with the page number, of a page with several lists.
    """
    return urlencode([pair for pair in parse_qsl(request.GET.urlencode()) if pair[0] != without])


def back_to_list(request: HttpRequest, route: str, *args: object) -> str:
    """Return the address of a list as it was shown beside the posted form, which has the list's query as `kept`."""
    kept = request.POST.get("kept", "")[:2000]
    return f"{reverse(route, args=args)}{'?' if kept else ''}{kept}"


def without_empty_filters(
    view: Callable[[HttpRequest], HttpResponse],
) -> Callable[[HttpRequest], HttpResponse]:
    """Redirect to the address without its empty filters, which a form also sends: an address to share has only those in use."""

    @wraps(view)
    def shortened(request: HttpRequest) -> HttpResponse:
        if "" not in request.GET.values():
            return view(request)
        kept = kept_filters(request)
        return redirect(f"{request.path}?{kept}" if kept else request.path)

    return shortened


def searched(query: QueryDict) -> str:
    """Return the words that a list is searched for."""
    return storable_word(query, "search").strip()[:LONGEST]


def storable_word(query: QueryDict, name: str, most: int = 1000) -> str:
    """Return a text of an address or a form without NUL, which PostgreSQL refuses; "" where it is not given."""
    return query.get(name, "").replace("\0", "")[:most]


def page_number(request: HttpRequest) -> int:
    """Return the page of a list that an address asks for, the first where it names none."""
    number = request.GET.get("page", "")
    return int(number) if re.fullmatch(r"[0-9]{1,9}", number) else 1


def row_number(text: str) -> int | None:
    """Return the number of a row that an address or a form has as text, None where it is none."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 19 else None
