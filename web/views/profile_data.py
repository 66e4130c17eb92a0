# SPDX-License-Identifier: GPL-2.0-or-later
"""Profiles as files, at addresses that stay: for the viewer, for other tools, and to quote in a mail.

    /profiles/<run>.<form>                                one boot, under the compiler's names
    /experiments/<e>/profile/<case>/variant.<form>        ?variant= all its boots, under the names of the source
    /experiments/<e>/profile/<case>/difference.<form>     ?base= &variant= json, folded (two counts) or svg
    /experiments/<e>/profile/<case>/callers.txt           ?symbols= &variant= the text trees of the kernfs mail
    /experiments/<e>/profile/<case>/symbol.json           ?symbol= its callers and callees, per variant

<form>: tree (lab/analysis/frametree.py), folded, script.txt, speedscope.json, pb.gz (pprof), svg. ?idle=1 keeps idle CPUs.
A refusal is one line of plain text.
"""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import asdict
from functools import wraps
from typing import Concatenate, ParamSpec, TypeVar

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from lab.analysis.frametree import TreeDamaged
from lab.errors import UnknownRow
from lab.exports.forms import DIFFERENCE_FORMS, TREE_FORMS
from lab.exports.stacks import ExportTooLarge
from lab.queries.difference import caller_text, difference, variant_tree
from lab.queries.profile import neighbours
from lab.queries.profiled import run_tree

TEXT, JSON, BINARY, SVG = (
    "text/plain; charset=utf-8",
    "application/json",
    "application/octet-stream",
    "image/svg+xml",
)
_SYMBOLS_AT_MOST = 8
# Smaller answers are sent as they are.
_WORTH_SQUEEZING = 4096

# By the last part of a form's name.
KINDS = {"tree": BINARY, "folded": TEXT, "txt": TEXT, "json": JSON, "gz": BINARY, "svg": SVG}
# form → its media type, and how a tree of some title, or a difference, becomes it.
FORMS = {form: (KINDS[form.rpartition(".")[2]], write) for form, write in TREE_FORMS.items()}
DIFFERENCES = {form: (KINDS[form.rpartition(".")[2]], write) for form, write in DIFFERENCE_FORMS.items()}
P = ParamSpec("P")
T = TypeVar("T")


def plainly(
    view: Callable[Concatenate[HttpRequest, P], HttpResponse],
) -> Callable[Concatenate[HttpRequest, P], HttpResponse]:
    """Turn what a file cannot be made for into one line: programs read these, not people."""

    @wraps(view)
    def answer(request: HttpRequest, /, *args: P.args, **kwargs: P.kwargs) -> HttpResponse:
        try:
            return view(request, *args, **kwargs)
        except UnknownRow as exc:
            return HttpResponse(f"{exc}\n", content_type=TEXT, status=404)
        except (ExportTooLarge, TreeDamaged) as exc:
            return HttpResponse(f"{exc}\n", content_type=TEXT, status=422)

    return answer


@require_safe
@plainly
def run_profile(request: HttpRequest, run_id: int, form: str) -> HttpResponse:
    """One boot's profile in one of FORMS."""
    kind, write = _form(FORMS, form)
    profile, tree = run_tree(run_id)
    if form == "tree":
        return _file(request, bytes(profile.tree), kind, f"profile-{run_id}.tree")
    run = profile.run
    return _file(
        request, write(tree, f"{run.case}: {run.variant}, run {run_id}"), kind, f"profile-{run_id}.{form}"
    )


@require_safe
@plainly
def variant_profile(request: HttpRequest, experiment_id: int, case_id: int, form: str) -> HttpResponse:
    """All boots of a variant in one of FORMS."""
    kind, write = _form(FORMS, form)
    name = request.GET.get("variant", "")
    title, tree = variant_tree(experiment_id, case_id, variant=name, idle=_idle(request))
    return _file(
        request, write(tree, title), kind, f"profile-{experiment_id}-{case_id}-{name or 'base'}.{form}"
    )


@require_safe
@plainly
def variants_differ(request: HttpRequest, experiment_id: int, case_id: int, form: str) -> HttpResponse:
    """Two variants over each other in one of DIFFERENCES."""
    kind, write = _form(DIFFERENCES, form)
    base, variant = request.GET.get("base", ""), request.GET.get("variant", "")
    found = difference(experiment_id, case_id, base=base, variant=variant, idle=_idle(request))
    return _file(request, write(found), kind, f"difference-{experiment_id}-{case_id}-{variant}.{form}")


@require_safe
@plainly
def callers(request: HttpRequest, experiment_id: int, case_id: int) -> HttpResponse:
    """The text trees of who calls some symbols, to read in the browser and to quote."""
    symbols = tuple(request.GET.get("symbols", "").replace(",", " ").split()[:_SYMBOLS_AT_MOST])
    text = caller_text(experiment_id, case_id, variant=request.GET.get("variant", ""), symbols=symbols)
    return _file(request, text, TEXT, f"callers-{experiment_id}-{case_id}.txt", inline=True)


@require_safe
@plainly
def symbol(request: HttpRequest, experiment_id: int, case_id: int) -> HttpResponse:
    """A symbol's callers and callees: lab/queries/profile.py's Neighbours as JSON."""
    found = neighbours(experiment_id, case_id, request.GET.get("symbol", ""))
    return _file(request, json.dumps(asdict(found)), JSON, "symbol.json", inline=True)


def _form(forms: Mapping[str, T], form: str) -> T:
    if form not in forms:
        raise UnknownRow(f'profiles have no form "{form[:40]}"; there are: {", ".join(forms)}')
    return forms[form]


def _idle(request: HttpRequest) -> bool:
    return request.GET.get("idle") == "1"


def _file(
    request: HttpRequest, body: str | bytes, kind: str, name: str, *, inline: bool = False
) -> HttpResponse:
    """An answer nobody takes for a page: its type is not guessed, and a browser saves it unless it is to be read."""
    data = body.encode() if isinstance(body, str) else body
    squeezed = (
        kind != BINARY
        and len(data) > _WORTH_SQUEEZING
        and "gzip" in request.headers.get("Accept-Encoding", "")
    )
    response = HttpResponse(gzip.compress(data, 3) if squeezed else data, content_type=kind)
    if squeezed:
        response.headers["Content-Encoding"] = "gzip"
    response.headers["Vary"] = "Accept-Encoding"
    response.headers["X-Content-Type-Options"] = "nosniff"
    safe = re.sub(r"[^A-Za-z0-9._+-]+", "_", name)[:120]
    response.headers["Content-Disposition"] = f'{"inline" if inline else "attachment"}; filename="{safe}"'
    return response
