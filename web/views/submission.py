# SPDX-License-Identifier: GPL-2.0-or-later
"""The submission form: one page, every fault beside the field it lies in, a preview before it is queued."""

from collections.abc import Mapping
from dataclasses import asdict, replace

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from lab.errors import LabError, NeedsWorker
from lab.experiments.page import get_experiment
from lab.experiments.priority import priorities_for
from lab.experiments.spec import ExperimentSpec, spec_from_mapping, toml_mapping
from lab.experiments.stored_spec import description_as_toml, without_defaults
from lab.models import Experiment, Fetch
from lab.submission.choices import submission_choices, usual_choices
from lab.submission.fetches.requests import FetchRequest, request_fetch
from lab.submission.fetches.series import WantedSeries
from lab.submission.web_process import every_fault_here, preview_here, series_faults, submit_here
from web.access import needs, person
from web.cloned import typed_from
from web.faults import fault_lines, form_faults
from web.formpage import FormPage, form_context, fresh
from web.forms import Description, TypedForm, describe, read_form
from web.listing import row_number, storable_word
from web.sources import receive, wanted_series


@needs("submit")
@require_http_methods(["GET", "HEAD", "POST"])
def submit(request: HttpRequest) -> HttpResponse:
    """The empty form, or one filled from an experiment; a posted one becomes an experiment or comes back."""
    if request.method != "POST":
        return show_form(
            request, _cloned(request) or FormPage(fresh(submission_choices(), usual_choices(person(request))))
        )
    if "toml" in request.POST:
        return _submit_toml(request)
    typed = read_form(request.POST.dict(), dict(request.POST.lists()))
    arrived = receive(typed, request.FILES.getlist("files"))
    typed = arrived.typed
    previewing = "preview" in request.POST
    page = FormPage(typed, notes=arrived.notes, detail=arrived.detail, previewing=previewing)
    description = describe(typed)
    errors = description.errors | arrived.errors
    wanted = wanted_series(typed)
    if wanted is not None:
        errors |= series_faults(wanted, person(request))
    try:
        return _taken(request, page, description, errors)
    except LabError as exc:
        errors = {**form_faults(exc, description), **errors}
        return show_form(request, replace(page, errors=errors, detail=exc.detail or page.detail))


def _taken(
    request: HttpRequest, page: FormPage, description: Description, errors: Mapping[str, str]
) -> HttpResponse:
    """Preview or submit the form here, or hand it to a worker. errors: faults that the form itself finds. Raises LabError."""
    typed, by = page.typed, person(request)
    wanted = wanted_series(typed)
    try:
        with every_fault_here(description.mapping, by):
            spec = spec_from_mapping(description.mapping)
            if errors or wanted is not None:
                raise NeedsWorker("only the other parts are checked here")
            if page.previewing:
                preview = preview_here(spec=spec, by=by, origin=_origin(typed.origin))
                return show_form(request, replace(page, preview=preview))
            return _accepted(request, spec, origin=typed.origin, form=typed.key)
    except NeedsWorker:
        if errors:
            return show_form(request, replace(page, errors=errors))
    wanted = wanted or WantedSeries({})
    wanted = replace(wanted, description=description.mapping, each=typed.each, form_key=typed.key)
    return _handed_over(request, wanted, typed)


def _submit_toml(request: HttpRequest) -> HttpResponse:
    previewing = "preview" in request.POST
    key = storable_word(request.POST, "key")
    origin, by = request.POST.get("origin", ""), person(request)
    typed = replace(fresh(submission_choices()), origin=origin)
    page = FormPage(typed, toml=request.POST["toml"], previewing=previewing)
    try:
        mapping = toml_mapping(page.toml.encode())
        try:
            with every_fault_here(mapping, by):
                spec = spec_from_mapping(mapping)
                if page.previewing:
                    preview = preview_here(spec=spec, by=by, origin=_origin(origin))
                    return show_form(request, replace(page, preview=preview))
                return _accepted(request, spec, origin=origin, form=key)
        except NeedsWorker:
            wanted = WantedSeries(spec.model_dump(mode="json"), form_key=key)
            return _handed_over(request, wanted, page.toml, origin=origin)
    except LabError as exc:
        faults = "\n".join(fault_lines(exc))
        return show_form(request, replace(page, errors={"toml": faults}, detail=exc.detail))


def _handed_over(
    request: HttpRequest, wanted: WantedSeries, typed: TypedForm | str, origin: str = ""
) -> HttpResponse:
    """Hand the form to a worker, and redirect to the page that shows its progress. Raises TooManyFetches."""
    form = {"toml": typed} if isinstance(typed, str) else {"typed": asdict(typed)}
    asked = FetchRequest(
        kind=Fetch.Kind.PREVIEW if "preview" in request.POST else Fetch.Kind.SUBMIT,
        wanted=wanted,
        form=form,
        origin=_origin(origin if isinstance(typed, str) else typed.origin),
    )
    return redirect("fetch", request_fetch(by=person(request), asked=asked).pk)


def _accepted(request: HttpRequest, spec: ExperimentSpec, *, origin: str, form: str) -> HttpResponse:
    """Submit and go to the experiment's page; a second click leads to what the first one made.

    Raises LabError for faults of the submission.
    """
    done = submit_here(spec=spec, by=person(request), form=form, origin=_origin(origin))
    said = f"Already queued as #{done.experiment.pk}: nothing was queued twice." if done.already else ""
    if said:
        messages.info(request, said)
    return redirect("experiment", done.experiment.pk)


def _origin(number: str) -> Experiment | None:
    return Experiment.objects.filter(pk=row_number(number) or 0).first()


def _cloned(request: HttpRequest) -> FormPage | None:
    """The form filled from the experiment that `?from=` names."""
    number = row_number(request.GET.get("from", ""))
    if number is None:
        return None
    row = get_experiment(number)
    description = without_defaults(row.spec)
    texts = {switch.name: switch.text for switch in row.switches.all()}
    typed, sentences = typed_from(description, texts, origin=row.pk)
    notes = [f"Filled from #{row.pk}, {row.name}. Change what should differ."]
    return FormPage(typed, notes=[*notes, *sentences], toml=description_as_toml(description))


def show_form(request: HttpRequest, page: FormPage) -> HttpResponse:
    """Return the page of the form; with faults its status is 422."""
    ctx = form_context(page, submission_choices(), priorities_for(request.user))
    return render(request, "web/submission.html", ctx, status=422 if page.errors else 200)
