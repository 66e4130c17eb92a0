# SPDX-License-Identifier: GPL-2.0-or-later
"""The submission form: one page, every fault beside the field it lies in, a preview before it is queued."""

from __future__ import annotations

from dataclasses import replace

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from lab.errors import LabError, SpecError
from lab.models import Experiment
from lab.queries.choices import submission_choices
from lab.queries.experiments import experiment_page, find_experiment
from lab.queue.priority import priorities_for
from lab.rerun import description_as_toml, without_defaults
from lab.spec import ExperimentSpec, read_spec, spec_from_mapping
from lab.submission.once import submit_once
from lab.submission.preview import Preview, preview_experiment
from web.access import needs, person
from web.cloned import typed_from
from web.formpage import FormPage, form_context, fresh
from web.forms import describe, read_form, sort_errors
from web.sources import receive
from web.views.missing import found


@needs("submit")
@require_http_methods(["GET", "HEAD", "POST"])
def submit(request: HttpRequest) -> HttpResponse:
    """The empty form, or one filled from an experiment; a posted one becomes an experiment or comes back."""
    if request.method != "POST":
        return _shown(request, _cloned(request) or FormPage(fresh(submission_choices())))
    if "toml" in request.POST:
        return _submit_toml(request)
    typed = read_form(request.POST.dict(), dict(request.POST.lists()))
    arrived = receive(typed, request.FILES.getlist("files"), person(request))
    typed = arrived.typed
    page = FormPage(typed, told=arrived.told, detail=arrived.detail)
    description = describe(typed)
    errors = description.errors | arrived.errors
    try:
        spec = spec_from_mapping(description.mapping)
    except SpecError as exc:
        lines = (exc.detail or str(exc)).splitlines()
        return _shown(request, replace(page, errors=sort_errors(lines, description.fields) | errors))
    if errors:
        return _shown(request, replace(page, errors=errors))
    try:
        if "preview" in request.POST:
            return _shown(request, replace(page, preview=_preview(request, spec)))
        return _accepted(request, spec, origin=typed.origin, form=typed.key)
    except LabError as exc:
        told = sort_errors([str(exc)], description.fields)
        return _shown(request, replace(page, errors=told, detail=exc.detail))


def _submit_toml(request: HttpRequest) -> HttpResponse:
    page = FormPage(fresh(submission_choices()), toml=request.POST["toml"])
    try:
        spec = read_spec(page.toml.encode(), None)
        if "preview" in request.POST:
            return _shown(request, replace(page, preview=_preview(request, spec)))
        return _accepted(
            request, spec, origin=request.POST.get("origin", ""), form=request.POST.get("key", "")
        )
    except LabError as exc:
        return _shown(request, replace(page, errors={"toml": str(exc)}, detail=exc.detail))


def _preview(request: HttpRequest, spec: ExperimentSpec) -> Preview:
    return preview_experiment(spec=spec, by=person(request))


def _accepted(request: HttpRequest, spec: ExperimentSpec, *, origin: str, form: str) -> HttpResponse:
    """Submit and go to the experiment's page; a second click leads to what the first one made.

    Raises LabError for whatever the submission is to blame for.
    """
    done = submit_once(spec=spec, by=person(request), form=form, origin=_origin(origin))
    said = f"Already queued as #{done.experiment.pk}: nothing was queued twice." if done.already else ""
    if said:
        messages.info(request, said)
    return redirect("experiment", done.experiment.pk)


def _origin(number: str) -> Experiment | None:
    return find_experiment(int(number)) if number.isdecimal() and len(number) < 19 else None


def _cloned(request: HttpRequest) -> FormPage | None:
    """The form filled from the experiment that `?from=` names."""
    number = request.GET.get("from", "")
    if not (number.isdecimal() and len(number) < 19):
        return None
    page = found(experiment_page, int(number))
    description = without_defaults(page.spec)
    texts = {switch.name: switch.text for switch in page.switches}
    typed, left_out = typed_from(description, texts, origin=page.id)
    told = [f"Filled from #{page.id}, {page.name}. Change what is to be another way."]
    told += [
        f"The form cannot say {line}. The description at the end of this page does." for line in left_out
    ]
    return FormPage(typed, told=told, toml=description_as_toml(description))


def _shown(request: HttpRequest, page: FormPage) -> HttpResponse:
    ctx = form_context(page, submission_choices(), priorities_for(request.user))
    return render(request, "web/submission.html", ctx, status=422 if page.errors else 200)
