# SPDX-License-Identifier: GPL-2.0-or-later
"""Start a bisection of a step on a page, and let the lab's upkeep carry it out step by step."""

from pathlib import Path

from django.conf import settings
from django.db import transaction

from lab.bisections.outcome import refused
from lab.bisections.search import attach, conclude_step, settle_step, step_spec, take_step
from lab.bisections.start import BisectionRequest, unfinished_or_new
from lab.errors import FieldRefused, LabError, SpecError, SubmissionRejected, UnknownRow
from lab.from_attributes import attributes
from lab.models import Bisection, BisectionStep, Experiment, Tree, User
from lab.models.states import BisectionState, ExperimentState
from lab.people.permissions import check_may
from lab.submission.blame import field_at_fault
from lab.submission.parts import find_target
from lab.submission.submit import find_unfinished, submit_experiment
from lab.trends.page import StepView, TrendLine, trend_page

_OVER = (ExperimentState.DONE, ExperimentState.FAILED, ExperimentState.CANCELLED)


def bisect_step(*, by: User, trend: str, commit: str) -> Bisection:
    """Return the bisection of the step of a trend that begins with a commit, a new one unless one is under way.

    Raises NotAllowed, UnknownRow, and FieldRefused for "bisect" where there is nothing to search.
    """
    check_may(by, "submit", "start bisections")
    page = trend_page(trend)
    step = next((view for view in page.steps if view.bad.commit == commit), None)
    if step is None:
        raise UnknownRow(f"trend {trend} has no step at {commit[:12]} any more")
    if why := why_not_searched(step):
        raise FieldRefused("bisect", why)
    with field_at_fault("bisect"):
        target = find_target(page.line.target)
    line = [step.good.commit, *(suspect.commit for suspect in step.suspects)]
    with transaction.atomic():
        # Two people who press the button at once wait for each other here.
        tree = Tree.objects.select_for_update().get(pk=page.line.tree_id)
        return unfinished_or_new(request_of(page.line, step), tree, target, line, automatic=True, starter=by)


def why_not_searched(step: StepView) -> str:
    """Return why a step cannot be bisected from a page; "" if it can."""
    if step.pending:
        return f"the step is pending: {step.why}"
    if step.unlisted:
        return f"{step.unlisted} commits of the range are not known to this lab; run labctl bisect --trend"
    if len(step.suspects) < 2:
        return "one commit is in the range, so there is nothing to search"
    return ""


def request_of(line: TrendLine, step: StepView) -> BisectionRequest:
    """Return what `labctl bisect --trend` asks about the same step."""
    return BisectionRequest(
        good=step.good.commit,
        bad=step.bad.commit,
        verdict=step.verdict,
        **attributes(line, ("tree", "workload", "preset", "params", "metric", "clock", "target")),
    )


def advance_bisections(home: Path | None = None) -> list[str]:
    """Conclude the finished steps of automatic bisections and submit the next ones; returns a line for each change."""
    running = Bisection.objects.filter(automatic=True, state=BisectionState.RUNNING).order_by("pk")
    return [line for row in running if (line := _advance(row, home or settings.HOME))]


def _advance(row: Bisection, home: Path) -> str:
    step = take_step(row.pk)
    if step is None:
        return f"bisection {row.pk} is over"
    if step.experiment_id is None:
        return _submit(step, home)
    if not Experiment.objects.filter(pk=step.experiment_id, state__in=_OVER).exists():
        return ""
    return f"bisection {row.pk}, step {step.number}: {conclude_step(step.pk).outcome}"


def _submit(step: BisectionStep, home: Path) -> str:
    what = f"bisection {step.bisection_id}, step {step.number}"
    try:
        find_target(step.bisection.target.name)
    except SubmissionRejected as exc:
        # Disabled for a while: that says nothing about the revision.
        return f"{what} waits: {exc}"
    try:
        spec = step_spec(step)
        # A process that was killed may have submitted it without noting its number.
        queued = find_unfinished(spec, home=home)
        queued = queued or submit_experiment(spec=spec, by=step.bisection.starter, home=home)
    except (SpecError, SubmissionRejected) as exc:
        settle_step(step.pk, refused(exc))
        return f"{what}: {exc}"
    except LabError as exc:
        # Retried at the next turn.
        return f"{what} waits: {exc}"
    attach(step.pk, queued.pk)
    return f"{what}: experiment {queued.pk} queued"
