# SPDX-License-Identifier: GPL-2.0-or-later
"""Profiles of a case: a flame graph, and symbols and callers of all variants side by side."""

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_safe

from lab.experiments.page import get_experiment
from lab.models.states import Role
from lab.profiles.analysis.symbol_counts import ITSELF, NO_CALLER
from lab.profiles.case_profiles import ProfiledBoot
from lab.profiles.exports.formats import DIFFERENCE_FORMS, TREE_FORMS
from lab.profiles.page import neighbours, profile_page
from lab.profiles.shape import CallerRow, ProfileColumn, ProfilePage, ShareCell
from web.views.claims import claim_table
from web.views.exact import exact_table
from web.views.profile_kinds import WORDS, idle_of, kind_links, taken
from web.words import number, quantity, share, times_between

_ASKED_AT_MOST = 8
# Below this share of a variant's samples a symbol says nothing.
_LEAST_OWN = 0.0005
# The most symbols that are shown: by default, and when all are requested.
_ROWS, _ALL_ROWS = 20, 1000
_KEPT = ("kind", "variant", "boot", "against", "symbols", "rows")


@require_safe
def first(request: HttpRequest, experiment_id: int) -> HttpResponse:
    """Redirect to the first profiled case, or else to the first case."""
    row = get_experiment(experiment_id)
    runs = row.runs.filter(purpose="profiled", state="done")
    profiled = set(runs.values_list("case", flat=True))
    cases = sorted(row.cases.all(), key=lambda case: case.pk not in profiled)
    if not cases:
        return redirect("experiment", experiment_id)
    return redirect("profile", experiment_id, cases[0].pk)


@require_safe
def show(request: HttpRequest, experiment_id: int, case_id: int) -> HttpResponse:
    """The profiles of one case. ?kind= the kind of profile, ?variant= the variant to draw, ?boot= one boot of it, ?against= the
    variant to compare it with (by default, the first patch against the base), ?symbols= the symbols to split by caller,
    ?around= the symbol whose callers and callees to show, ?rows=all every symbol. web/front/flame-state.js reads the rest.
    """
    asked = tuple(request.GET.get("symbols", "").replace(",", " ").split()[:_ASKED_AT_MOST])
    kind = request.GET.get("kind", "")
    page = profile_page(experiment_id, case_id, asked=asked, rows=_ALL_ROWS, kind=kind)
    chosen, against = _sides(page, request.GET)
    around = request.GET.get("around", "")
    boot = _boot(chosen, request.GET.get("boot", "")) if chosen else None
    symbols = _symbols(page, around)
    shown = symbols if request.GET.get("rows") == "all" else _first(symbols)
    files = _files(page, chosen, boot) if chosen else {}
    differences = _differences(page, against, chosen) if against and chosen else {}
    opened = next((line for line in symbols if line.get("opened")), None)
    ctx = {
        "page": page,
        "words": WORDS[page.kind],
        "key": experiment_id,
        "tab": "profile",
        "asked": " + ".join(page.asked),
        "symbols_field": " ".join(page.asked),
        "chosen": chosen,
        "samples": taken(chosen, page.unit) if chosen else "",
        "idle": idle_of(chosen, waits=page.waits) if chosen else "",
        "against": against,
        "around": around,
        "opened": opened,
        "halves": _halves(differences or files, around) if opened and not boot else [],
        "boot": boot,
        "files": files,
        "differences": differences,
        "doubts": [(column.variant, column.doubt) for column in page.columns if column.doubt],
        **_links(page, request.GET, chosen, against),
        **_tables(page, request.GET, chosen, against),
        "here": "?kind=exact",
        "symbols": shown,
        "hidden": len(symbols) - len(shown),
        "every": len(symbols),
        "symbols_first": _ROWS,
        # Links to open a symbol keep what is chosen, not what the viewer has written into its address.
        "kept": _query(request, *_KEPT),
        "kept_rows": _query(request, *_KEPT[:-1], "around"),
    }
    return render(request, "web/profile.html", ctx)


def _tables(
    page: ProfilePage, asked: Mapping[str, str], chosen: ProfileColumn | None, against: ProfileColumn | None
) -> dict[str, object]:
    """Return the tables below the graph, and which of them is open: what the address asks for, else what the patch claims."""
    ctx = {
        "callers": _callers(page),
        "callers_told": _shares_line(page),
        "moved": sum(any(cell.certain for cell in (*row.own, *row.total)) for row in page.symbols),
        "exact": [exact_table(exact) for exact in page.changes],
        "kind_at": f"?{urlencode({'kind': page.kind})}",
    }
    claims = [] if page.changes else [claim_table(claim) for claim in page.claims]
    sides = [column.variant for column in (chosen, against) if column]
    tables = [claim["variant"] for claim in claims] or [change.variant for change in page.changes]
    first = next((name for name in tables if name in sides), "")
    if "symbols" in asked:
        return ctx | {"claimed": claims, "open": "callers"}
    if "around" in asked or "rows" in asked or not first:
        return ctx | {"claimed": claims, "open": "symbols"}
    return ctx | {"claimed": claims, "opened_claims": first}


def _shares_line(page: ProfilePage) -> str:
    """Return the share of the symbols split by caller, side by side: "base 68.03 %, p 26.07 %"."""
    total = page.splits[0].total if page.splits else ()
    return ", ".join(
        f"{column.variant} {share_of(cell)['text']}"
        for column, cell in zip(page.columns, total, strict=False)
    )


def _links(
    page: ProfilePage, asked: Mapping[str, str], chosen: ProfileColumn | None, against: ProfileColumn | None
) -> dict[str, object]:
    """Return the links to other kinds, variants and cases: they show the same function, split by the same symbols."""
    columns = {"variant": chosen, "against": against}
    sides = {name: column.variant for name, column in columns.items() if column}
    seen = {name: asked[name] for name in ("symbols", "around") if name in asked}
    return {
        "kinds": kind_links(page, sides | seen),
        "opposites": _opposites(page, chosen, against, seen) if chosen else [],
        "seen": urlencode(seen),
        "other_case": urlencode(_of_kind(page) | sides | seen),
    }


def _query(request: HttpRequest, *names: str) -> str:
    return urlencode([(name, request.GET[name]) for name in names if name in request.GET])


def _first(symbols: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The first rows, and the one that is open."""
    return [line for place, line in enumerate(symbols) if place < _ROWS or line.get("opened")]


def _boot(chosen: ProfileColumn, asked: str) -> ProfiledBoot | None:
    """The boot whose tree alone is drawn, if one is asked for."""
    return next((boot for boot in chosen.boots if str(boot.run_id) == asked), None)


def _sides(page: ProfilePage, asked: Mapping[str, str]) -> tuple[ProfileColumn | None, ProfileColumn | None]:
    """Return the variant to draw and the one to compare it with; by default the first patch and the base."""
    if "variant" not in asked and "against" not in asked:
        base = next((column for column in page.columns if column.base), None)
        patch = next((column for column in page.columns if column.role == Role.CANDIDATE), None)
        if base and patch:
            return patch, base
    wanted = [column for column in page.columns if column.variant == asked.get("variant", "")]
    chosen = next(iter([*wanted, *page.columns]), None)
    others = (column for column in page.columns if column.variant == asked.get("against", ""))
    return chosen, next((column for column in others if column is not chosen), None)


def _opposites(
    page: ProfilePage, chosen: ProfileColumn, against: ProfileColumn | None, seen: dict[str, str]
) -> list[tuple[str, str, bool]]:
    """Return the variants to compare with: a label, a query, whether it is shown now. The base is always the second side."""
    links = []
    for column in page.columns:
        if column is chosen:
            continue
        sides = (column, chosen) if chosen.base else (chosen, column)
        shown = column is against
        asked = (
            _of_kind(page) | {"variant": sides[0].variant} | ({} if shown else {"against": sides[1].variant})
        )
        links.append((column.variant, urlencode(asked | seen), shown))
    return links


def _files(page: ProfilePage, chosen: ProfileColumn, boot: ProfiledBoot | None) -> dict[str, str]:
    """Addresses of one profile by the first word of its form: of one boot, or of all of a variant's."""
    forms = [form for form in TREE_FORMS if page.sampled or form != "script.txt"]
    if boot:
        kind = f"?{urlencode({'kind': page.kind})}" if not page.sampled else ""
        return {
            form.partition(".")[0]: reverse("run_profile", args=(boot.run_id, form)) + kind for form in forms
        }
    asked = urlencode(_of_kind(page) | {"variant": chosen.variant})
    files = {
        form.partition(".")[0]: reverse("variant_profile", args=(page.experiment_id, page.case.id, form))
        + f"?{asked}"
        for form in forms
    }
    # The viewer leaves idle CPUs out itself, so that it can show them.
    return files | {"tree": files["tree"] + "&idle=1"}


def _of_kind(page: ProfilePage) -> dict[str, str]:
    """Return the additional query of addresses of another kind than cpu."""
    return {} if page.sampled else {"kind": page.kind}


def _differences(page: ProfilePage, base: ProfileColumn, chosen: ProfileColumn) -> dict[str, str]:
    asked = urlencode(_of_kind(page) | {"base": base.variant, "variant": chosen.variant})
    return {
        form: reverse("difference", args=(page.experiment_id, page.case.id, form)) + f"?{asked}"
        for form in DIFFERENCE_FORMS
    }


def _halves(files: dict[str, str], around: str) -> list[dict[str, str]]:
    """Return the addresses of the halves of a sandwich by form, each with a label."""
    return [
        {"label": half} | {form: f"{files[form]}&{urlencode({half: around})}" for form in ("svg", "folded")}
        for half in ("callers", "callees")
    ]


def share_of(cell: ShareCell) -> dict[str, Any]:
    """One cell in words, and as a width of 100; its 95 % interval, and ▲ or ▼ for a significant change.

    part: for waits, whose text is an amount, their share.
    """
    part = share(cell.share, 1.0)
    words: dict[str, Any] = {"text": part, "width": round(100 * min(max(cell.share, 0.0), 1.0), 2)}
    if cell.certain and cell.log_ratio:
        words["mark"] = "▲" if cell.log_ratio > 0 else "▼"
    if cell.waited is None:
        if cell.low is not None and cell.high is not None:
            words["interval"] = f"{100 * cell.low:.2f} to {100 * cell.high:.2f}"
        return words
    words["text"] = quantity(cell.waited, "ns" if cell.unit == "ns" else "")
    if cell.waited:
        words["part"] = part
        if cell.unit == "ns":
            words["interval"] = times_between(cell.low, cell.high)
        elif cell.low is not None:
            words["interval"] = f"{number(cell.low)} to {number(cell.high)}"
    return words


def _symbols(page: ProfilePage, around: str) -> list[dict[str, Any]]:
    """Return the symbols worth a line, in themselves and with what they call.

    The requested symbol is always included and open: its callers and callees follow.
    """
    rows: list[dict[str, Any]] = [
        {
            "name": row.symbol,
            "raw": " ".join(row.raw),
            "shares": _pairs(row.own, row.total),
            "line": row.line,
        }
        for row in page.symbols
        if row.symbol == around
        or max(cell.share for cell in row.own) >= _LEAST_OWN
        or any(cell.certain for cell in row.total)
    ]
    if not around:
        return rows
    near = neighbours(page.experiment_id, page.case.id, around, kind=page.kind)
    if not near.total:
        return rows
    own = next((row.cells for row in near.callees if row.caller == ITSELF), ())
    shares = next((row["shares"] for row in rows if row["name"] == around), None)
    opened = {
        "name": around,
        "raw": " ".join(near.raw),
        "shares": shares or _pairs(own or near.total, near.total),
        "callers": [_neighbour(row) for row in near.callers],
        "callees": [_neighbour(row) for row in near.callees],
        "opened": True,
        "line": near.line,
    }
    if shares is None:
        return [opened, *rows]
    return [opened if row["name"] == around else row for row in rows]


def _row(name: str, level: int, cells: Sequence[ShareCell]) -> dict[str, Any]:
    """Return one symbol or caller over all variants; level 1 is indented below what it calls."""
    return {"name": name, "level": level, "shares": [share_of(cell) for cell in cells]}


def _neighbour(row: CallerRow) -> dict[str, Any]:
    """Return a caller or callee. around: whether its own callers and callees can be requested."""
    return _row(row.caller, 1, row.cells) | {"around": row.caller not in (NO_CALLER, ITSELF)}


def _pairs(
    own: Sequence[ShareCell], total: Sequence[ShareCell]
) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    return [(share_of(own_cell), share_of(other)) for own_cell, other in zip(own, total, strict=True)]


def _callers(page: ProfilePage) -> list[dict[str, Any]]:
    """The split as in the kernfs mail: all asked symbols by caller, then each symbol by caller."""
    rows = []
    for split in page.splits:
        rows.append(_row(" + ".join(split.symbols), 0, split.total))
        rows += [_row(row.caller, 1, row.cells) for row in split.rows]
    return rows
