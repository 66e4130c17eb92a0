# SPDX-License-Identifier: GPL-2.0-or-later
"""Health checks: boot a known-good kernel on a target with a calibration workload, and store its figure.

Checks run when an operator asks, after a release from quarantine, and on an idle target whose last check is old.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import Exists, F, OuterRef, Q
from django.utils import timezone

from lab.errors import FieldRefused, LabError, StoreRefused, StoreUnreachable
from lab.leases.prepared import after
from lab.models import Build, HealthCheck, Run, Target, Tree, User, Variant
from lab.models.states import BuildState, ExperimentState, Outcome, Role, RunState
from lab.people.permissions import check_may
from lab.storage.artifacts import is_kept
from lab.targets.changes import get_target
from lab.targets.quarantine import note_fault, note_success
from lab.targets.usable import usable_targets

WORKLOAD, PRESET = "showgids", "smoke"
ITERATIONS, WARMUP = 5, 1
# A check whose reservation is not renewed for this long is over: its process was killed.
HELD_S = 300.0
# The search for a kernel gives up after this many experiments.
_LOOKED_AT = 20
# How many due targets are looked at in one call: finding a known kernel takes some statements for each.
LOOKED_AT_ONCE = 20
_CHOSEN_HERE = (
    Q(experiment__submitter=None)
    | Q(experiment__submitter__role=User.Role.OPERATOR)
    | Q(
        experiment__tree__kind=Tree.Kind.ARCHIVE,
        experiment__base_name=F("experiment__tree__default_revision"),
    )
)


@dataclass(frozen=True, slots=True)
class Checked:
    """The result of a check. value: of the metric, median over its iterations; None if it was not measured."""

    ok: bool
    problem: str = ""
    metric: str = ""
    value: float | None = None
    environment: Mapping[str, Any] = field(default_factory=dict)


def ask_check(*, by: User | None, target_id: int) -> Target:
    """Have a target checked as soon as it boots nothing. Raises NotAllowed, UnknownRow, FieldRefused."""
    check_may(by, "operate", "request health checks")
    target = get_target(target_id)
    known_kernel(target)
    if target.quarantined_at is not None or not target.enabled:
        raise FieldRefused(
            "target", f"{target.name} is out of service: release or enable it, then it is checked"
        )
    Target.objects.filter(pk=target.pk).update(check_asked_at=timezone.now())
    return target


def known_kernel(target: Target) -> str:
    """Return the artifact to check with: the configured one, that of the last check that went well, else of the last experiment.

    The same one as long as it is kept: figures of different kernels show no drift. Only bases that an operator chose, or
    an archive's own base: a stranger's kernel may behave well once and badly in every check.
    Raises FieldRefused where there is none, and what the store raises.
    """
    if settings.CHECK_KERNEL:
        return str(settings.CHECK_KERNEL)
    built = Build.objects.filter(state=BuildState.BUILT).exclude(artifact_key="")
    last = HealthCheck.objects.filter(target=target, ok=True).order_by("-at", "-pk").first()
    key = last.environment.get("artifact_key", "") if last else ""
    if key and built.filter(artifact_key=key).exists() and is_kept(key, settings.HOME):
        return str(key)
    good = Variant.objects.filter(
        role=Role.BASE,
        build__in=built,
        experiment__state=ExperimentState.DONE,
        runs__target=target,
        runs__outcome=Outcome.FINISHED,
    )
    newest = good.filter(_CHOSEN_HERE).order_by("-experiment__finished_at", "-pk")
    for artifact_key in newest.values_list("build__artifact_key", flat=True)[:_LOOKED_AT]:
        if is_kept(artifact_key, settings.HOME):
            return str(artifact_key)
    raise FieldRefused(
        "target",
        f"{target.name} has no known-good kernel: "
        "a successful experiment there by an operator, or on an archive's own revision, provides one",
    )


def due_checks(now: datetime | None = None, name: str | None = None) -> list[str]:
    """Return the names of idle targets that are due: a check was requested, or the last one is CHECK_HOURS old.

    name: only this target. If very many may be due, only some are looked at, others the next time.
    """
    at = now or timezone.now()
    wanted = Q(check_asked_at__isnull=False)
    if settings.CHECK_HOURS:
        wanted |= Q(unchecked_since__lt=at - timedelta(hours=settings.CHECK_HOURS))
    boots = Run.objects.filter(target=OuterRef("pk"), state=RunState.RUNNING)
    # Called each second: two indexes find the wanted targets, so that no others are read.
    rows = usable_targets().filter(
        wanted, ~Exists(boots), Q(checked_until=None) | Q(checked_until__lt=after(0.0))
    )
    some = (rows if name is None else rows.filter(name=name)).order_by("?")[:LOOKED_AT_ONCE]
    names = []
    for row in sorted(some, key=lambda row: row.name):
        try:
            known_kernel(row)
        except FieldRefused:
            continue
        except (StoreUnreachable, StoreRefused):
            # Checks wait for the store, but not the other work of the caller.
            break
        names.append(row.name)
    return names


def claim_check(name: str, *, force: bool = False) -> Target | None:
    """Reserve a target for a check; None if it is not due, or is booting. force: due or not, in quarantine too."""
    if not force and not due_checks(name=name):
        return None
    with transaction.atomic():
        row = Target.objects.select_for_update().filter(name=name).first()
        if row is None or Run.objects.filter(target=row, state=RunState.RUNNING).exists():
            return None
        # By the database's clock, as the claims of boots.
        free = Target.objects.filter(pk=row.pk).exclude(checked_until__gt=after(0.0))
        return row if free.update(checked_until=after(HELD_S)) else None


def hold_check(target_id: int) -> None:
    """Keep a running check's reservation."""
    Target.objects.filter(pk=target_id).update(checked_until=after(HELD_S))


def leave_check(target_id: int) -> None:
    """Let a target boot again whose check was stopped: it stays due, and says nothing about the target."""
    Target.objects.filter(pk=target_id).update(checked_until=None)


def record_check(target_id: int, checked: Checked) -> HealthCheck:
    """Store the result of a check, and let the target boot again; a failed check counts as a fault of the lab."""
    at = timezone.now()
    with transaction.atomic():
        over = {"checked_until": None, "check_asked_at": None, "unchecked_since": at}
        Target.objects.filter(pk=target_id).update(**over)
        if checked.ok:
            note_success(target_id)
        else:
            note_fault(target_id, f"health check: {checked.problem}")
        return HealthCheck.objects.create(target_id=target_id, at=at, **asdict(checked))


def has_kernel(target: Target) -> bool:
    """Return whether there is a kernel to check a target with, as far as the store says."""
    try:
        known_kernel(target)
    except LabError:
        return False
    return True
