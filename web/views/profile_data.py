# SPDX-License-Identifier: GPL-2.0-or-later
"""Profiles as files, at addresses that stay: for the viewer, for other tools, and to quote in a mail.

    /profiles/<run>.<form>                                one boot, under the compiler's names
    /experiments/<e>/profile/<case>/variant.<form>        ?variant= all its boots, under the names of the source
    /experiments/<e>/profile/<case>/difference.<form>     ?base= &variant= json, folded (two counts) or svg
    /experiments/<e>/profile/<case>/callers.txt           ?symbols= &variant= the text trees of the kernfs mail
    /experiments/<e>/profile/<case>/symbol.json           ?symbol= its callers and callees, per variant
    /experiments/<e>/profile/<case>/lines.json            where functions begin in the source

<form>: tree (lab/profiles/analysis/frame_tree.py), folded, script.txt, speedscope.json, pb.gz (pprof), svg. ?idle=1 keeps idle CPUs.
?callers= a symbol, or * for every one, and ?callees= a symbol: a variant or a difference as seen from there.
?kind= cpu, lock, off-cpu, exact or waiting: weights are samples, nanoseconds waited, instructions, or cycles waited per
operation; script.txt is a form of samples alone.
A refusal is one line of plain text.
"""

import gzip
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import asdict
from functools import wraps
from typing import Concatenate, ParamSpec

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from lab.errors import UnknownRow
from lab.profiles.analysis.frame_tree import TreeDamaged
from lab.profiles.analysis.source_lines import merged_lines
from lab.profiles.analysis.weight_unit import unit_of
from lab.profiles.case_profiles import CPU, case_profiles, kind_named, run_tree
from lab.profiles.difference import SeenFrom, caller_text, difference, variant_tree
from lab.profiles.exports.formats import BINARY, DIFFERENCE_FORMS, JSON, TEXT, TREE_FORMS, ProfileForm
from lab.profiles.exports.stacks import ExportTooLarge, NoSuchForm
from lab.profiles.page import neighbours

_SYMBOLS_AT_MOST = 8
# Smaller answers are sent as they are.
_WORTH_SQUEEZING = 4096

P = ParamSpec("P")


def plainly(
    view: Callable[Concatenate[HttpRequest, P], HttpResponse],
) -> Callable[Concatenate[HttpRequest, P], HttpResponse]:
    """Turn refusals into one line of plain text: programs read these answers, not people."""

    @wraps(view)
    def answer(request: HttpRequest, /, *args: P.args, **kwargs: P.kwargs) -> HttpResponse:
        try:
            return view(request, *args, **kwargs)
        except UnknownRow as exc:
            return HttpResponse(f"{exc}\n", content_type=TEXT, status=404)
        except (ExportTooLarge, NoSuchForm, TreeDamaged) as exc:
            return HttpResponse(f"{exc}\n", content_type=TEXT, status=422)

    return answer


@require_safe
@plainly
def run_profile(request: HttpRequest, run_id: int, form: str) -> HttpResponse:
    """One boot's profile in one of TREE_FORMS."""
    chosen = _form(TREE_FORMS, form)
    profile, tree = run_tree(run_id, kind=_kind(request))
    file = f"profile-{run_id}{_suffix(profile.kind)}.{form}"
    if form == "tree":
        return _file(request, bytes(profile.tree), chosen.media_type, file)
    run = profile.run
    kind = "" if profile.kind == CPU else f", {profile.kind}"
    title = f"{run.case}: {run.variant}, run {run_id}{kind}"
    body = chosen.write(tree, title=title, unit=unit_of(profile.kind), lines=merged_lines([profile.lines]))
    return _file(request, body, chosen.media_type, file)


@require_safe
@plainly
def variant_profile(request: HttpRequest, experiment_id: int, case_id: int, form: str) -> HttpResponse:
    """All boots of a variant in one of TREE_FORMS."""
    chosen = _form(TREE_FORMS, form)
    name, kind = request.GET.get("variant", ""), _kind(request)
    drawn = variant_tree(
        experiment_id, case_id, variant=name, idle=_idle(request), kind=kind, seen=_seen_from(request)
    )
    file = f"profile-{experiment_id}-{case_id}-{name or 'base'}{_suffix(kind)}.{form}"
    body = chosen.write(drawn.tree, **drawn.context)
    return _file(request, body, chosen.media_type, file)


@require_safe
@plainly
def variants_differ(request: HttpRequest, experiment_id: int, case_id: int, form: str) -> HttpResponse:
    """The difference of two variants in one of DIFFERENCE_FORMS."""
    chosen = _form(DIFFERENCE_FORMS, form)
    base, variant, kind = request.GET.get("base", ""), request.GET.get("variant", ""), _kind(request)
    comparison = difference(
        experiment_id,
        case_id,
        base=base,
        variant=variant,
        idle=_idle(request),
        kind=kind,
        seen=_seen_from(request),
    )
    file = f"difference-{experiment_id}-{case_id}-{variant}{_suffix(kind)}.{form}"
    return _file(request, chosen.write(comparison), chosen.media_type, file)


@require_safe
@plainly
def callers(request: HttpRequest, experiment_id: int, case_id: int) -> HttpResponse:
    """The text trees of the callers of some symbols, to read in the browser and to quote."""
    symbols = tuple(request.GET.get("symbols", "").replace(",", " ").split()[:_SYMBOLS_AT_MOST])
    kind = _kind(request)
    text = caller_text(
        experiment_id, case_id, variant=request.GET.get("variant", ""), symbols=symbols, kind=kind
    )
    file = f"callers-{experiment_id}-{case_id}{_suffix(kind)}.txt"
    return _file(request, text, TEXT, file, inline=True)


@require_safe
@plainly
def symbol(request: HttpRequest, experiment_id: int, case_id: int) -> HttpResponse:
    """A symbol's callers and callees: lab/profiles/page.py's Neighbours as JSON."""
    relatives = neighbours(experiment_id, case_id, request.GET.get("symbol", ""), kind=_kind(request))
    return _file(request, json.dumps(asdict(relatives)), JSON, "symbol.json", inline=True)


@require_safe
@plainly
def lines(request: HttpRequest, experiment_id: int, case_id: int) -> HttpResponse:
    """Return where each function begins in the source: {"link_path_walk": "fs/namei.c:2251"}; empty without line tables."""
    places = case_profiles(experiment_id, case_id, kind=_kind(request)).lines
    return _file(request, json.dumps(places), JSON, "lines.json", inline=True)


def _form(forms: Mapping[str, ProfileForm], form: str) -> ProfileForm:
    if form not in forms:
        raise UnknownRow(f'profiles have no format "{form[:40]}"; there are: {", ".join(forms)}')
    return forms[form]


def _kind(request: HttpRequest) -> str:
    """Return the requested kind of profiles; an unknown one is refused with a list of the kinds."""
    return kind_named(request.GET.get("kind", ""))


def _suffix(kind: str) -> str:
    """Return the suffix of file names of other kinds than cpu."""
    return "" if kind == CPU else f"-{kind}"


def _idle(request: HttpRequest) -> bool:
    return request.GET.get("idle") == "1"


def _seen_from(request: HttpRequest) -> SeenFrom:
    return SeenFrom(request.GET.get("callers", ""), request.GET.get("callees", ""))


def _file(
    request: HttpRequest, body: str | bytes, kind: str, name: str, *, inline: bool = False
) -> HttpResponse:
    """Return an answer that no browser treats as a page: its type is not guessed, and it is saved unless shown inline."""
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
