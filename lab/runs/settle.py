# SPDX-License-Identifier: GPL-2.0-or-later
"""Apply the end of a build or boot to its variant and experiment: fail, cancel, compare, finish."""

from typing import Any

from django.db import transaction
from django.db.models import Exists, OuterRef, QuerySet
from django.utils import timezone

from lab.comparisons.compare import compute_comparisons, store_comparisons
from lab.comparisons.conclusion.collect import experiment_facts
from lab.comparisons.conclusion.conclude import conclude
from lab.experiments.kernel_notes import note_kernels
from lab.hooks.events import tell_experiment
from lab.leases.deadlocks import without_deadlock
from lab.models import Build, Experiment, Run, Standing, User, Variant
from lab.models.states import (
    OPEN_EXPERIMENT,
    BuildState,
    ExperimentState,
    Outcome,
    Purpose,
    Role,
    RunState,
    VariantState,
    move,
)
from lab.runs.claim import UNCLAIMED
from lab.runs.order import OPEN_BUILD
from lab.runs.rounds import add_blocks

# A kernel that failed this often without one success is not booted again for the same case.
GIVE_UP_AFTER = 2
# These concern the kernel as such, whatever the workload.
OF_THE_KERNEL = (Outcome.BOOT_FAILED, Outcome.WRONG_KERNEL)


def build_made(build_id: int) -> None:
    """Make the variants that waited for a build ready, and write the notes on its kernel."""
    for variant in Variant.objects.filter(build=build_id, state=VariantState.PLANNED):
        move(Variant, variant.pk, VariantState.PLANNED, VariantState.READY)
    for experiment_id in experiments_of(build_id):
        note_kernels(experiment_id)


def build_failed(build_id: int) -> None:
    """Fail the variants of a build and cancel their boots; without a base, everything else too."""
    build = Build.objects.get(pk=build_id)
    variants = Variant.objects.filter(build=build_id)
    for variant in variants.filter(state=VariantState.PLANNED):
        fail_variant(variant, build.problem, build.problem_detail)
    # Kernels built before and lost from the store: results stay, but boots that wait for them would wait forever.
    for variant in variants.filter(state=VariantState.READY, experiment__state__in=OPEN_EXPERIMENT):
        _cancel_boots(variant, f"{variant.name} was not rebuilt: {build.problem}")


def fail_variant(variant: Variant, problem: str, detail: str) -> None:
    """Fail a variant that waits for its build. There is nothing to compare without the base."""
    move(
        Variant,
        variant.pk,
        VariantState.PLANNED,
        VariantState.FAILED,
        problem=problem,
        problem_detail=detail,
    )
    _cancel_boots(variant, f"{variant.name} was not built: {problem}")


def _cancel_boots(variant: Variant, why: str) -> None:
    """Cancel the boots that wait for a kernel that will not come; if it is the base's, all boots."""
    cancel_runs(Run.objects.filter(variant=variant), why)
    if variant.role == Role.BASE:
        cancel_runs(Run.objects.filter(experiment=variant.experiment_id), why)
        cancel_builds(variant.experiment_id)


def run_failed(run_id: int) -> None:
    """Stop booting a kernel that keeps failing, and everything if it is the base's."""
    run = Run.objects.select_related("variant").get(pk=run_id)
    alike = Run.objects.filter(variant=run.variant_id)
    if run.outcome not in OF_THE_KERNEL:
        alike = alike.filter(case=run.case_id)
    failures = alike.filter(state=RunState.FAILED).exclude(blame="lab").count()
    if failures >= GIVE_UP_AFTER and not alike.filter(state=RunState.DONE).exists():
        last = run.problem or run.outcome
        why = f"no longer booted: {run.variant.name} failed {failures} times, last: {last}"
        if run.variant.role == Role.BASE:
            # Without the base's boots there is nothing to compare the others' with.
            alike = _compared_with(run)
        cancel_runs(alike, why)


def _compared_with(run: Run) -> QuerySet[Run]:
    runs = Run.objects.filter(experiment=run.experiment_id)
    return runs if run.outcome in OF_THE_KERNEL else runs.filter(case=run.case_id)


def cancel_runs(runs: QuerySet[Run], problem: str, *, running: bool = False) -> None:
    """Cancel waiting boots; with `running` also those under way, whose workers then lose their claim."""
    states = [RunState.QUEUED, RunState.RUNNING] if running else [RunState.QUEUED]
    # Repeated until none is left, since another process may claim or return a run between the query and the update.
    while open_runs := list(runs.filter(state__in=states).values_list("pk", "state")):
        ended = {"problem": problem, "finished_at": timezone.now(), **UNCLAIMED}
        for pk, state in open_runs:
            move(Run, pk, RunState(state), RunState.CANCELLED, **ended)


def cancel_builds(experiment_id: int, *, running: bool = False) -> None:
    """Cancel builds of an experiment that no other open experiment asks for; one whose base failed boots nothing any more."""
    states = [BuildState.QUEUED, BuildState.BUILDING] if running else [BuildState.QUEUED]
    without_base = Variant.objects.filter(
        experiment=OuterRef("pk"), role=Role.BASE, state=VariantState.FAILED
    )
    wanted_elsewhere = Experiment.objects.filter(
        ~Exists(without_base), variants__build=OuterRef("pk"), state__in=OPEN_EXPERIMENT
    )
    ours = Build.objects.filter(variants__experiment=experiment_id, state__in=states)
    ours = ours.exclude(Exists(wanted_elsewhere.exclude(pk=experiment_id))).distinct()
    # Read again for the same reason.
    while open_builds := list(ours.order_by("pk").values_list("pk", "state")):
        for pk, state in open_builds:
            with transaction.atomic():
                # An experiment that is being submitted holds the lock on its builds until it is seen here.
                Build.objects.select_for_update(no_key=True).only("pk").get(pk=pk)
                if ours.filter(pk=pk).exists():
                    now = timezone.now()
                    move(Build, pk, BuildState(state), BuildState.CANCELLED, finished_at=now, **UNCLAIMED)


def cancel_experiment(experiment_id: int, *, by: User | None = None) -> bool:
    """Cancel an experiment and all its unfinished work, running or not; False if it is already over.

    by: None at this machine's own terminal.
    What was measured stays and is compared, marked partial. A worker notices when it renews its lease.
    """
    if not Experiment.objects.filter(pk=experiment_id, state__in=OPEN_EXPERIMENT).exists():
        return False
    # Before the lock, as in settle().
    measured = _measured(experiment_id)
    compared = compute_comparisons(experiment_id)

    # A build or boot that is recorded meanwhile takes the same rows in another order.
    @without_deadlock
    def cancel() -> bool:
        now = timezone.now()
        moved = any(
            move(Experiment, experiment_id, start, ExperimentState.CANCELLED, finished_at=now)
            for start in OPEN_EXPERIMENT
        )
        if moved:
            runs = Run.objects.filter(experiment=experiment_id)
            cancel_runs(runs, "the experiment was cancelled", running=True)
            cancel_builds(experiment_id, running=True)
            latest = compared if _measured(experiment_id) == measured else compute_comparisons(experiment_id)
            store_comparisons(experiment_id, latest)
            _tell_over(experiment_id, by)
        return moved

    moved = cancel()
    if moved:
        _keep_headline(experiment_id)
    return moved


def _measured(experiment_id: int) -> tuple[list[Any], int]:
    """Return the inputs of a comparison that boots change: those done, with why they do not count, and the number of kernels."""
    done = Run.objects.filter(experiment=experiment_id, state=RunState.DONE)
    ready = Variant.objects.filter(experiment=experiment_id, state=VariantState.READY)
    return list(done.order_by("pk").values_list("pk", "invalid")), ready.count()


def experiments_of(build_id: int) -> list[int]:
    """Return the open experiments that use a build."""
    experiments = Experiment.objects.filter(variants__build=build_id, state__in=OPEN_EXPERIMENT)
    return list(experiments.order_by("pk").values_list("pk", flat=True).distinct())


def settle(experiment_id: int) -> bool:
    """End an experiment with its comparisons once nothing of it is open; True if this call did.

    Where boots may stop early, the comparisons decide whether further blocks are queued instead.
    Called after every record; calling it again is harmless, and finishes the work of a killed process.
    """
    if _work_left(experiment_id):
        return False
    # Everything may have been over before the first claim, as when every run was cancelled.
    move(Experiment, experiment_id, ExperimentState.QUEUED, ExperimentState.RUNNING)
    if Experiment.objects.get(pk=experiment_id).state != ExperimentState.RUNNING:
        return False
    runs = Run.objects.filter(experiment=experiment_id)
    boots = runs.count()
    # Hundreds of comparisons take many seconds, so nothing is locked meanwhile.
    compared = compute_comparisons(experiment_id)
    with transaction.atomic():
        # Of two processes that see the last work end, one waits here, and then finds it settled or with more boots than it compared.
        experiment = Experiment.objects.select_for_update(no_key=True).get(pk=experiment_id)
        if experiment.state != ExperimentState.RUNNING or _work_left(experiment_id) or runs.count() != boots:
            return False
        store_comparisons(experiment_id, compared)
        problem = _without_base(experiment)
        if not problem and add_blocks(experiment):
            return False
        to = ExperimentState.FAILED if problem else ExperimentState.DONE
        now = timezone.now()
        ended = move(Experiment, experiment_id, ExperimentState.RUNNING, to, problem=problem, finished_at=now)
        _tell_over(experiment_id)
    _keep_headline(experiment_id)
    return ended


def _work_left(experiment_id: int) -> bool:
    """Return whether a boot or build is open. In one statement: between two, a running boot may end and be queued again."""
    runs = Run.objects.filter(experiment=OuterRef("pk"))
    open_builds = Build.objects.filter(variants__experiment=OuterRef("pk"), state__in=OPEN_BUILD)
    return Experiment.objects.filter(
        # Each state has an index of its own.
        Exists(runs.filter(state=RunState.QUEUED))
        | Exists(runs.filter(state=RunState.RUNNING))
        | Exists(open_builds),
        pk=experiment_id,
    ).exists()


def _keep_headline(experiment_id: int) -> None:
    """Store the conclusion in one line for lists. Called after the end is written, so that no error keeps an experiment open."""
    row = Experiment.objects.get(pk=experiment_id)
    Experiment.objects.filter(pk=experiment_id).update(headline=conclude(experiment_facts(row)).headline)


def _tell_over(experiment_id: int, by: User | None = None) -> None:
    """Notify hooks and the submitter of the end, and have the trends it feeds checked. by: who cancelled it."""
    tell_experiment(experiment_id, by=by)
    Standing.objects.filter(experiments=experiment_id).update(stale=True)


def settle_open() -> list[int]:
    """Settle every open experiment; return those that this ended, such as ones that a killed process left."""
    note_builds_over()
    still = OPEN_EXPERIMENT
    numbers = Experiment.objects.filter(state__in=still).order_by("pk").values_list("pk", flat=True)
    return [pk for pk in list(numbers) if settle(pk)]


def _without_base(experiment: Experiment) -> str:
    """Return why there is no base to compare with, or ""."""
    base = experiment.variants.get(role=Role.BASE)
    if base.state == VariantState.FAILED:
        return f"the base does not build: {base.problem}"
    measured = Run.objects.filter(variant=base, purpose=Purpose.MEASURED)
    if measured.exists() and not measured.filter(state=RunState.DONE).exists():
        last = measured.exclude(outcome="").order_by("-finished_at", "-pk").first()
        return f"no boot of the base finished: {(last.problem or last.outcome) if last else 'none ran'}"
    return ""


def note_queued_again(build_id: int) -> None:
    """Mark all open experiments that use a build as having builds left. Call it in the transaction that queued it."""
    # Also those that are marked already: another process may be removing the mark.
    wanting = Experiment.objects.filter(variants__build=build_id, state__in=OPEN_EXPERIMENT)
    wanting.update(builds_left=True)


def note_builds_over(build_id: int | None = None) -> None:
    """Unmark each open experiment, or each of those that use a build, that has no open build any more."""
    open_builds = Build.objects.filter(variants__experiment=OuterRef("pk"), state__in=OPEN_BUILD)
    over = Experiment.objects.filter(~Exists(open_builds), state__in=OPEN_EXPERIMENT, builds_left=True)
    if build_id is not None:
        over = over.filter(variants__build=build_id)
    for pk in list(over.order_by("pk").values_list("pk", flat=True).distinct()):
        with transaction.atomic():
            # The lock comes first: a process that requeues a build has then finished, and is seen, or waits and marks it again.
            Experiment.objects.select_for_update(no_key=True).only("pk").get(pk=pk)
            if not Build.objects.filter(variants__experiment=pk, state__in=OPEN_BUILD).exists():
                Experiment.objects.filter(pk=pk).update(builds_left=False)
