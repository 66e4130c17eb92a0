# SPDX-License-Identifier: GPL-2.0-or-later
"""Changes to an experiment: cancel it, run it again, keep it, set its priority."""

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.text import capfirst
from django.views.decorators.http import require_http_methods, require_POST

from lab.errors import FieldRefused, LabError, NeedsWorker, Outdated
from lab.experiments.never_delete import keep_for
from lab.experiments.page import get_experiment
from lab.experiments.priority import set_priority
from lab.experiments.progress import progress
from lab.models.states import OPEN_EXPERIMENT
from lab.people.permissions import may_change
from lab.submission.rerun import cancel_for, hand_over_rerun, rerun_experiment
from web.access import needs, person
from web.buttons import pressed
from web.words import count


@needs("submit")
@require_http_methods(["GET", "HEAD", "POST"])
def cancel(request: HttpRequest, experiment_id: int) -> HttpResponse:
    """Ask whether to cancel an experiment, or do so; a finished one stays as it is, and a message says so."""
    page = get_experiment(experiment_id)
    if (
        request.method != "POST"
        and page.state in OPEN_EXPERIMENT
        and may_change(person(request), page.submitter)
    ):
        left = progress(experiment_id)
        open_now = (
            (left.boots_total - left.boots_over, "boot"),
            (left.builds_total - left.builds_over, "build"),
        )
        said = " and ".join(count(amount, noun) for amount, noun in open_now if amount)
        return render(request, "web/cancel.html", {"page": page, "left": said or "Nothing"})
    try:
        cancel_for(experiment_id=experiment_id, by=person(request))
    except Outdated as exc:
        messages.info(request, f"{capfirst(str(exc))}.")
    else:
        messages.success(request, "The experiment is cancelled. Its results so far are kept.")
    return redirect("experiment", experiment_id)


@needs("submit")
@require_POST
def rerun(request: HttpRequest, experiment_id: int) -> HttpResponse:
    """Queue the same description once more, and go there."""
    get_experiment(experiment_id)
    by = person(request)
    try:
        try:
            done = rerun_experiment(experiment_id=experiment_id, by=by)
        except NeedsWorker:
            # A worker has to fetch the tree first.
            return redirect("fetch", hand_over_rerun(experiment_id=experiment_id, by=by).pk)
    except LabError as exc:
        messages.error(request, f"It was not submitted again: {exc}")
        return redirect("experiment", experiment_id)
    again = "Already queued" if done.already else "Queued"
    messages.success(
        request,
        f"{again} as #{done.experiment.pk}, a new experiment of the same description as #{experiment_id}.",
    )
    return redirect("experiment", done.experiment.pk)


@needs("submit")
@require_POST
def keep(request: HttpRequest, experiment_id: int) -> HttpResponse:
    """Keep an experiment's files and kernels, or leave them to the retention policy again."""
    kept = pressed(request, "kept", ("yes", "no")) == "yes"
    keep_for(experiment_id=experiment_id, by=person(request), kept=kept)
    said = (
        "The experiment is kept: the retention policy does not delete its logs, profiles and kernels."
        if kept
        else "The retention policy applies again: numbers and verdicts are kept, old logs and kernels are deleted."
    )
    messages.success(request, said)
    return redirect("experiment", experiment_id)


@needs("submit")
@require_POST
def change_priority(request: HttpRequest, experiment_id: int) -> HttpResponse:
    """Set the priority of an experiment; a finished one stays as it is, and a message says so."""
    asked = request.POST.get("priority", "")
    try:
        set_priority(experiment_id=experiment_id, priority=asked, by=person(request))
    except FieldRefused as exc:
        messages.error(request, f"{capfirst(str(exc))}.")
    except Outdated as exc:
        messages.info(request, f"{capfirst(str(exc))}.")
    else:
        messages.success(request, f"Its priority is {asked} now.")
    return redirect("experiment", experiment_id)
