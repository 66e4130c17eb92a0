# SPDX-License-Identifier: GPL-2.0-or-later
"""Name the queues, and find those with work that a worker can take now."""

from collections import Counter
from collections.abc import Mapping, Set
from datetime import timedelta
from typing import Any

from django.db.models import Count, Exists, OuterRef, Q, QuerySet
from django.db.models.expressions import RawSQL
from django.utils import timezone

from kernels.architecture import BUILT
from lab.models import Build, Experiment, Run, Target, Worker
from lab.models.hardware import GONE_S
from lab.models.states import OPEN_EXPERIMENT, BuildState, RunState, VariantState
from lab.runs.order import OPEN_BUILD
from lab.targets.health_checks import due_checks
from lab.targets.usable import usable_targets

TARGET = "target."
# The number of boots of an experiment that any target may take, counted up to a limit.
_FIRST_UNASSIGNED = """(SELECT count(*) FROM (SELECT 1 FROM lab_run q
  WHERE q.experiment_id = lab_experiment.id AND q.state = 'queued' AND q.target_id IS NULL
    AND (SELECT v.state = 'ready' AND (SELECT b.state = 'built' FROM lab_build b WHERE b.id = v.build_id)
      FROM lab_variant v WHERE v.id = q.variant_id) LIMIT %s) few)"""


def target_queue(name: str) -> str:
    """The queue of a target."""
    return f"{TARGET}{name}"


def build_queue(request: Mapping[str, Any]) -> str:
    """The queue of the workers that can make what a build asks for."""
    return f"build.{BUILT.name}.{request['cc']}"[:100]


def queues_to_wake() -> list[str]:
    """Return the queues with waiting work that a worker can take; of a group's queues, at most one for each waiting boot.

    A queue of builds appears once for each free builder, as far as builds wait, so that all of them begin at once. A group's targets
    are chosen again each time, since the worker of one may be gone. Called each second: it reads only the targets that open
    experiments ask for, of a group no more than may take a boot, and those whose health check is due.
    """
    idle = _idle_queues()
    queued = (
        Build.objects.filter(state=BuildState.QUEUED).order_by().values_list("queue", flat=True).distinct()
    )
    builds = [queue for queue in queued if queue not in idle for _ in range(_builders_to_wake(queue))]
    checks = [queue for queue in map(target_queue, due_checks()) if queue not in idle]
    return [*builds, *dict.fromkeys([*checks, *map(target_queue, _targets_to_wake(idle))])]


def _builders_to_wake(queue: str) -> int:
    """Return how many builds of a queue open experiments wait for, counted up to the number of its free builders, at least one."""
    waiting = Build.objects.filter(queue=queue, state=BuildState.QUEUED)
    wanted = (
        waiting.filter(variants__experiment__state__in=OPEN_EXPERIMENT).order_by().values("pk").distinct()
    )
    if (few := len(wanted[:2])) < 2:
        return few
    seen_at = timezone.now() - timedelta(seconds=GONE_S)
    taking = Worker.objects.filter(seen_at__gt=seen_at, idle_reason="").values_list("queues", flat=True)
    building = Build.objects.filter(queue=queue, state=BuildState.BUILDING).count()
    free = sum(queue in queues for queues in taking) - building
    return len(wanted[: max(1, free)])


def _targets_to_wake(idle: Set[str]) -> list[str]:
    """Return the names of free targets that have a boot ready, or may take one of their group. idle: queues to leave alone."""
    building = Build.objects.filter(variants__experiment=OuterRef("pk"), state__in=OPEN_BUILD)
    asking = Experiment.objects.filter(~Exists(building), state__in=OPEN_EXPERIMENT).order_by()
    asked = set(asking.values_list("target", "group").distinct())
    if not asked:
        return []
    groups = {group for _, group in asked if group}
    alone = Q(pk__in={target for target, group in asked if not group})
    # A target's own block goes on, whatever the others of its group do, and even if an operator moved the target.
    own = _ready_runs().filter(target__isnull=False).values("target")
    free = _free_targets(idle).filter(alone | Q(group__in=groups) | Q(pk__in=own))
    begun = set(_ready_runs().filter(target__in=free).order_by().values_list("target", flat=True).distinct())
    rest = free.exclude(pk__in=begun)
    sizes = dict(rest.filter(group__in=groups).values_list("group").annotate(number=Count("pk")))
    wanted = Q(group="", target__in=rest.filter(alone)) | Q(group__in=sizes.keys())
    some = RawSQL(_FIRST_UNASSIGNED, [max(sizes.values(), default=1)])  # noqa: S611  our text
    waiting: Counter[str] = Counter()
    counted = asking.filter(wanted).annotate(some=some).values_list("target", "group", "some")
    for target, group, number in counted:
        if group:
            waiting[group] += number
        elif number:
            begun.add(target)
    names = list(free.filter(pk__in=begun).values_list("name", flat=True)) if begun else []
    for group, number in waiting.items():
        if number:
            names += rest.filter(group=group).order_by("?").values_list("name", flat=True)[:number]
    return names


def _free_targets(idle: Set[str]) -> QuerySet[Target]:
    """Return the targets that may boot, boot nothing now, and whose queue is not among `idle`."""
    boots = Run.objects.filter(target=OuterRef("pk"), state=RunState.RUNNING)
    names = [queue.removeprefix(TARGET) for queue in idle if queue.startswith(TARGET)]
    return usable_targets().filter(~Exists(boots)).exclude(name__in=names).order_by()


def _ready_runs() -> QuerySet[Run]:
    """Return the boots that a target may take now."""
    building = Build.objects.filter(variants__experiment=OuterRef("experiment"), state__in=OPEN_BUILD)
    return Run.objects.filter(
        ~Exists(building),
        state=RunState.QUEUED,
        experiment__state__in=OPEN_EXPERIMENT,
        variant__state=VariantState.READY,
        variant__build__state=BuildState.BUILT,
    )


def _idle_queues() -> set[str]:
    """Return the queues all of whose workers report why they take nothing now."""
    alive = Worker.objects.filter(seen_at__gt=timezone.now() - timedelta(seconds=GONE_S))
    if not alive.exclude(idle_reason="").exists():
        return set()
    idle: set[str] = set()
    busy: set[str] = set()
    for queues, reason in alive.values_list("queues", "idle_reason"):
        (idle if reason else busy).update(queues)
    return idle - busy
