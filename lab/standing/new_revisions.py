# SPDX-License-Identifier: GPL-2.0-or-later
"""Look for a standing experiment's new revision, and submit its experiment.

One experiment runs at a time: revisions pushed meanwhile wait, and only the newest of them is taken. Skipped revisions are
counted in a remark, and measured later if `backfill` is set, the newest first, when nothing newer waits.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from django.conf import settings
from django.db.models import Q
from django.utils import timezone

from kernels.errors import KernelsError, UnknownRevision, suggest
from kernels.trees.branches import place_on_branch
from kernels.trees.history import Logged, line, logged
from kernels.trees.remote import branches
from kernels.trees.tree import SourceTree, resolve
from lab.audit.log import note_refusal, rule_of
from lab.errors import LabError, SpecError, SubmissionRejected
from lab.experiments.spec import ExperimentSpec, spec_from_mapping
from lab.models import Experiment, Run, Standing, Tree
from lab.models.states import OPEN_EXPERIMENT, RunState
from lab.people.permissions import may
from lab.standing.quiet_hours import is_quiet
from lab.submission.git_addresses import tree_address
from lab.submission.parts import find_target
from lab.submission.prepare import boots_at_most
from lab.submission.submit import submit_experiment
from lab.submission.tree_history import open_named, remember

SHORT = 12
BUDGET_OVER = timedelta(hours=24)
# Of skipped revisions; each takes as long as a preview.
TRIED_AT_ONCE = 10

OnProgress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class LookOutcome:
    """The outcome of a look at a branch: an experiment's number or None, and a message."""

    standing: str
    experiment: int | None
    problem: str

    def __str__(self) -> str:
        queued = f"experiment {self.experiment} queued" if self.experiment else "nothing queued"
        return f"standing {self.standing}: {queued}{f'; {self.problem}' if self.problem else ''}"


def due_standings(*, now: datetime | None = None) -> list[int]:
    """Return the standing experiments whose branch is due for a check: after a push, or after their interval."""
    moment = now or timezone.now()
    enabled = Standing.objects.filter(enabled=True).order_by("polled_at", "pk")
    return [
        standing.pk for standing in enabled if _is_due(standing, moment) and not is_quiet(standing, moment)
    ]


def look(
    *,
    standing_id: int,
    now: datetime | None = None,
    home: Path | None = None,
    on_progress: OnProgress = lambda _: None,
) -> LookOutcome | None:
    """Look at the branch of a standing experiment and queue what is new; None if another process just did.

    A reason why nothing is queued is stored in the row and returned; no exception is raised for it.
    """
    moment = now or timezone.now()
    standing = Standing.objects.select_related("tree", "owner").get(pk=standing_id)
    if not _claim(standing, moment):
        return None
    try:
        outcome = _Look(standing, moment, home or settings.HOME, on_progress).go()
    except (LabError, KernelsError) as exc:
        outcome = LookOutcome(standing.name, None, str(exc))
        if exc.blame == "submission":
            note_refusal("standing", rule_of(exc), person=standing.owner)
    Standing.objects.filter(pk=standing.pk).update(problem=outcome.problem)
    return outcome


def _is_due(standing: Standing, now: datetime) -> bool:
    if standing.due or standing.polled_at is None:
        return True
    return standing.polled_at + timedelta(seconds=standing.poll_every_s) <= now


def _claim(standing: Standing, now: datetime) -> bool:
    """Return whether this process may look; of two processes that read the same row only one may."""
    mine = Standing.objects.filter(
        Q(polled_at=standing.polled_at) if standing.polled_at else Q(polled_at=None),
        pk=standing.pk,
        due=standing.due,
        enabled=True,
    )
    return mine.update(polled_at=now, due=False) == 1


@dataclass(frozen=True, slots=True)
class _Look:
    """One look at a branch."""

    standing: Standing
    now: datetime
    home: Path
    say: OnProgress

    def go(self) -> LookOutcome:
        """Queue the newest revision if it is new, else one that was skipped."""
        standing = self.standing
        tip = self._tip()
        measured = tip == standing.last_commit
        # The message about the last revision stays until there is another revision, unless it was a wait.
        waited = f"{tip[:SHORT]} waits" in standing.problem
        said = standing.problem if measured and not waited and tip[:SHORT] in standing.problem else ""
        running = standing.experiments.filter(state__in=OPEN_EXPERIMENT).order_by("pk").first()
        if measured and (running or not standing.backfill):
            return self._nothing(said)
        if running:
            return self._nothing(f"{tip[:SHORT]} waits for experiment {running.pk}")
        if problem := self._must_wait(tip):
            return self._nothing(problem)
        spec = spec_from_mapping(standing.spec)
        row, tree = open_named(spec, self.home, self.say)
        if measured:
            return self._measure_skipped(spec, tree, said)
        new, problem = self._new(tree, tip)
        remember(row, new, place_on_branch(tree, tip, self.standing.branch))
        try:
            # In one transaction: a process that is killed between the two would have it measured twice.
            return self._submit(spec, new[-1], problem, on_written=lambda _: self._note_last(tip))
        except (SpecError, SubmissionRejected) as exc:
            # This revision is not retried; the next one may be accepted.
            self._note_last(tip)
            return self._nothing(self._note_refused(new[-1], exc))

    def _tip(self) -> str:
        """Return the newest commit of the branch, without fetching it."""
        tree = self.standing.tree
        if tree.kind == Tree.Kind.ARCHIVE:
            opened = open_named(spec_from_mapping(self.standing.spec), self.home, self.say)[1]
            return resolve(opened, "").commit
        branch = self.standing.branch or tree.default_revision
        heads = branches(tree_address(tree.location))
        if branch not in heads and not self.standing.branch:
            # The default is not known yet, or was renamed there.
            branch = self._default_branch()
        if branch not in heads:
            raise UnknownRevision(f'{tree.name} has no branch "{branch}". {suggest(branch, heads)}')
        return heads[branch]

    def _default_branch(self) -> str:
        return open_named(spec_from_mapping(self.standing.spec), self.home, self.say)[1].default_revision

    def _must_wait(self, tip: str) -> str:
        """Return why nothing may be queued now; "" if something may."""
        standing = self.standing
        if standing.owner and not may(standing.owner, "submit"):
            return f"{standing.owner.username} may no longer submit: another user must take it over"
        try:
            find_target(spec_from_mapping(standing.spec).target)
        except SubmissionRejected as exc:
            # Disabled for a while: that is no reason to refuse a revision for good.
            return f"{tip[:SHORT]} waits: {exc}"
        return self._over_budget(tip)

    def _over_budget(self, tip: str) -> str:
        budget = self.standing.tree.boots_a_day
        if budget is None:
            return ""
        spent = boots_of_a_day(self.standing.tree, self.now)
        asked = self._boots_asked()
        if spent + asked <= budget:
            return ""
        return (
            f"{tip[:SHORT]} waits for the budget of {self.standing.tree.name}: {spent} of {budget} boots in 24 hours "
            f"are used, it takes {asked}"
        )

    def _boots_asked(self) -> int:
        """Return how many boots an experiment takes: as many as the last one, else an estimate from its description."""
        last = self.standing.experiments.order_by("-pk").first()
        if last is not None and last.runs.exists():
            return last.runs.count()
        spec = spec_from_mapping(self.standing.spec)
        variants = 2 + spec.measure.placebo + len(spec.switches)
        return variants * len(spec.cases) * boots_at_most(spec.measure)

    def _new(self, tree: SourceTree, tip: str) -> tuple[list[Logged], str]:
        """Return the revisions since the last measured one, the newest last, and a remark on them."""
        last, newest = self.standing.last_commit, logged(tree, tip)
        if not last:
            return [newest], ""
        try:
            new = list(line(tree, resolve(tree, last), resolve(tree, tip)))
        except UnknownRevision:
            return [
                newest
            ], f"before {tip[:SHORT]} the branch was rewritten: {last[:SHORT]} is no longer in it"
        over = len(new) - 1
        if not over:
            return new, ""
        later = "; they are measured later" if self.standing.backfill else ""
        return (
            new,
            f"{over} {'revision' if over == 1 else 'revisions'} before {tip[:SHORT]} skipped{later}",
        )

    def _measure_skipped(self, spec: ExperimentSpec, tree: SourceTree, said: str) -> LookOutcome:
        """Queue the newest of the skipped revisions that is not refused: a patch need not apply to each."""
        for revision in reversed(self._skipped(tree)[-TRIED_AT_ONCE:]):
            try:
                return self._submit(spec, revision, said)
            except (SpecError, SubmissionRejected) as exc:
                said = self._note_refused(revision, exc)
        return self._nothing(said)

    def _skipped(self, tree: SourceTree) -> list[Logged]:
        """Return the revisions between the first and the last measured one that were neither measured nor refused, the newest last."""
        measured = self.standing.experiments.order_by("pk").values_list("base_commit", flat=True)
        done = {*measured, *self.standing.refused}
        for first in dict.fromkeys(measured):
            try:
                between = line(tree, resolve(tree, first), resolve(tree, self.standing.last_commit))
            except UnknownRevision:
                # Before a rewritten branch's first revision, or the last one itself.
                continue
            return [revision for revision in between if revision.commit not in done]
        return []

    def _note_refused(self, revision: Logged, exc: Exception) -> str:
        """Note that a revision is not to be retried; return why in words."""
        self.standing.refused.append(revision.commit)
        Standing.objects.filter(pk=self.standing.pk).update(refused=self.standing.refused)
        return f"{_named(revision)} is not measured: {exc}"

    def _note_last(self, tip: str) -> None:
        Standing.objects.filter(pk=self.standing.pk).update(last_commit=tip)

    def _submit(
        self,
        spec: ExperimentSpec,
        revision: Logged,
        problem: str,
        *,
        on_written: Callable[[Experiment], None] = lambda _: None,
    ) -> LookOutcome:
        name = f"{self.standing.name}: {_named(revision)}"[:200]
        experiment = submit_experiment(
            spec=spec.model_copy(update={"base": revision.commit, "name": name}),
            by=self.standing.owner,
            origin=self.standing,
            home=self.home,
            on_progress=self.say,
            on_written=on_written,
        )
        return LookOutcome(self.standing.name, experiment.pk, problem)

    def _nothing(self, problem: str) -> LookOutcome:
        return LookOutcome(self.standing.name, None, problem)


def boots_of_a_day(tree: Tree, now: datetime) -> int:
    """Return how many boots standing experiments asked for on a tree in the last 24 hours."""
    recent = Experiment.objects.filter(tree=tree, created_at__gte=now - BUDGET_OVER).exclude(standing=None)
    return Run.objects.filter(experiment__in=recent).exclude(state=RunState.CANCELLED).count()


def _named(revision: Logged) -> str:
    return f"{revision.commit[:SHORT]} {revision.subject}"
