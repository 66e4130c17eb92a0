# SPDX-License-Identifier: GPL-2.0-or-later
"""Add blocks of boots to an experiment, and repeat boots that do not count.

A block boots every variant of every case once, in shuffled order. Where boots may stop early, cells
that are undecided get further blocks, in which the base boots too. A boot that ran outside its
validity gates is kept and, within a budget, taken once more at the end of the queue.
"""

from collections.abc import Sequence

from django.db import IntegrityError, transaction
from django.db.models import Max

from lab.experiments.expand import block_order
from lab.from_attributes import attributes
from lab.models import Case, Comparison, Experiment, Run, Target, Variant
from lab.models.states import Purpose, Role, RunState, VariantState
from lab.statistics.sequential import next_blocks

Cell = tuple[Variant, Case]
# Retakes at each place of a block, and over the experiment as a share of its measured boots.
MOST_RETAKES = 2
RETAKE_SHARE = 0.2
LEAST_BUDGET = 3
# The beginning of the line that says why a boot of a moved block does not count.
MOVED = "its block moved to"


def add_runs(experiment: Experiment, order: Sequence[tuple[Purpose, int, Cell]]) -> None:
    """Queue boots, in this order, behind those there are."""
    Run.objects.bulk_create(
        (
            Run(
                experiment=experiment,
                variant=variant,
                case=case,
                purpose=purpose,
                block=block,
                position=position,
            )
            for position, (purpose, block, (variant, case)) in enumerate(order, _next_position(experiment.pk))
        ),
        batch_size=500,
    )


def add_blocks(experiment: Experiment) -> int:
    """Queue the next look's blocks for what the comparisons leave undecided; returns how many boots wait.

    The caller has locked the experiment and seen that none of its boots is open.
    """
    if not experiment.sequential:
        return 0
    done = blocks_done(experiment.pk)
    until = next_blocks(done)
    cells = _undecided(experiment)
    if until is None or not cells:
        return 0
    order = block_order(cells, range(done, until), experiment.seed)
    add_runs(experiment, [(Purpose.MEASURED, block, cell) for block, cell in order])
    return len(order)


def blocks_done(experiment_id: int) -> int:
    """Return how many blocks have been queued so far."""
    measured = Run.objects.filter(experiment=experiment_id, purpose=Purpose.MEASURED)
    last = measured.aggregate(last=Max("block"))["last"]
    return 0 if last is None else last + 1


def _undecided(experiment: Experiment) -> list[Cell]:
    """Candidates whose primary metrics are inconclusive so far, with the base and its twin beside them.

    A comparison that more boots would not decide (no ratio at all) asks for none. Nor does one of kernels that have not
    finished a boot of the case: they would only fail again.
    """
    boots = Run.objects.filter(experiment=experiment, purpose=Purpose.MEASURED, state=RunState.DONE)
    finished = set(boots.values_list("variant__role", "variant", "case"))
    bases = {case for role, _, case in finished if role == Role.BASE}
    booted = {(variant, case) for _, variant, case in finished if case in bases}
    open_cells = Comparison.objects.filter(
        experiment=experiment,
        primary=True,
        verdict="inconclusive",
        boots_needed__isnull=False,
        variant__role=Role.CANDIDATE,
        variant__state=VariantState.READY,
    ).select_related("variant", "case")
    judged = {(row.variant, row.case) for row in open_cells if (row.variant_id, row.case_id) in booted}
    ground = experiment.variants.filter(role__in=(Role.BASE, Role.AA), state=VariantState.READY)
    cases = {case for _, case in judged}
    cells = judged | {(variant, case) for variant in ground for case in cases}
    return sorted(cells, key=lambda cell: (cell[1].position, cell[0].position))


def take_again(run: Run) -> bool:
    """Queue a boot again that ran outside its gates; False once the budget is spent."""
    measured = Run.objects.filter(experiment=run.experiment_id, purpose=Purpose.MEASURED)
    budget = max(LEAST_BUDGET, int(RETAKE_SHARE * measured.filter(retake=0).count()))
    # A moved block is not the fault of the kernels that booted in it.
    moved = [
        (variant, case, block)
        for variant, case, block, why in measured.exclude(invalid=[]).values_list(
            "variant", "case", "block", "invalid"
        )
        if any(str(line).startswith(MOVED) for line in why)
    ]
    own = run.retake - moved.count((run.variant_id, run.case_id, run.block))
    if own >= MOST_RETAKES or measured.filter(retake__gt=0).count() - len(moved) >= budget:
        return False
    _retake(run, run.target if run.experiment.group else None)
    return True


def take_elsewhere(run: Run, target: Target | None) -> None:
    """Keep a boot whose block another target has now, say that it does not count, and queue it again there."""
    where = target.name if target else "another target"
    Run.objects.filter(pk=run.pk).update(invalid=[f"{MOVED} {where}: a block is compared within one target"])
    _retake(run, target)


def _retake(run: Run, target: Target | None) -> None:
    while True:
        position = _next_position(run.experiment_id)
        try:
            with transaction.atomic():
                Run.objects.create(
                    target=target,
                    retake=run.retake + 1,
                    position=position,
                    **attributes(run, ("experiment_id", "variant_id", "case_id", "purpose", "block")),
                )
        except IntegrityError:
            # Another target of the group may have taken this position meanwhile. A lock on the experiment would be waited
            # for while rows of boots are held; code that changes a whole experiment locks them in the other order.
            if not Run.objects.filter(experiment=run.experiment_id, position=position).exists():
                raise
        else:
            return


def _next_position(experiment_id: int) -> int:
    last = Run.objects.filter(experiment=experiment_id).aggregate(last=Max("position"))["last"]
    return 0 if last is None else last + 1
