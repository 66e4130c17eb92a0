# SPDX-License-Identifier: GPL-2.0-or-later
"""The retention policy: which old files are removed, and which never are.

Run files and artifacts of experiments that ended more than KPERFLAB_KEEP_DAYS ago are removed, here and in the store. The files of
an experiment stay if somebody kept it, if it is open, a standing experiment's latest or compared by an open bisection, or if it
has an open regression, a triage or a note; so do the kernels that others are built over, and the one for health checks that
KPERFLAB_CHECK_KERNEL names. Rows are never removed.
A kernel that is needed again is built again.
"""

import json
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from time import monotonic
from typing import Any

from django.conf import settings
from django.db.models import Max, Q
from django.utils import timezone

from kernels.files.scratch import remove_tree
from lab.comparisons.regressions import RegressionFilter, regression_rows
from lab.models import BisectionStep, Build, Experiment, Note, Profile, Run, Triage, Variant
from lab.models.states import OPEN_EXPERIMENT, BisectionState, BuildState, ExperimentState, RunState
from lab.storage.artifacts import drop_artifact, unless_in_use
from lab.storage.inventory import KINDS, InventoryItem, Kind, inventory
from lab.storage.raw_profiles import raw_path
from lab.storage.store import Store, lab_store

# An upload that broke off this long ago will not be finished.
BROKEN_OFF = timedelta(days=1)
_AT_ONCE = 500
# Removing many files from a bucket takes long, and an experiment may be marked as kept meanwhile: needs are read again after this time.
ASK_AGAIN_S = 30.0


@dataclass(frozen=True, slots=True)
class Needs:
    """The files that must stay: experiments by id, and by name the files that they and running builds need."""

    experiments: frozenset[int]
    artifacts: frozenset[str]
    sources: frozenset[str]
    logs: frozenset[str]


@dataclass(frozen=True, slots=True)
class Expiry:
    """The files that the policy removes, and those that stay. before: later experiments are not considered."""

    going: tuple[InventoryItem, ...]
    staying: tuple[InventoryItem, ...]
    before: datetime | None


def plan_expiry(*, now: datetime | None = None, home: Path | None = None) -> Expiry:
    """Find the files to remove; none where KPERFLAB_KEEP_DAYS is 0. Raises StoreUnreachable, StoreRefused."""
    items = inventory(home or settings.HOME, lab_store())
    if not settings.KEEP_DAYS:
        return Expiry((), items, None)
    before = (now or timezone.now()) - timedelta(days=settings.KEEP_DAYS)
    going = set(_going(items, before, now or timezone.now()))
    return Expiry(
        tuple(holding for holding in items if (holding.kind, holding.name) in going),
        tuple(holding for holding in items if (holding.kind, holding.name) not in going),
        before,
    )


def expire(plan: Expiry, *, home: Path | None = None) -> tuple[InventoryItem, ...]:
    """Remove the files of a plan, except those that are needed by now or in use; return the removed ones.

    Raises StoreUnreachable, StoreRefused: files removed until then are noted.
    """
    if plan.before is None:
        return ()
    root, store = home or settings.HOME, lab_store()
    if store is not None:
        store.remove_drafts(timezone.now() - BROKEN_OFF)
    if not plan.going:
        return ()
    went: list[InventoryItem] = []
    still: set[tuple[Kind, str]] = set()
    asked_at = -ASK_AGAIN_S
    for place in range(0, len(plan.going), _AT_ONCE):
        if monotonic() - asked_at >= ASK_AGAIN_S:
            still, asked_at = set(_going(plan.going[place:], plan.before, timezone.now())), monotonic()
        removed: list[InventoryItem] = []
        try:
            # One by one, for a store may become unreachable at any of them.
            for holding in plan.going[place : place + _AT_ONCE]:
                if (holding.kind, holding.name) in still and _remove(holding, root, store):
                    removed.append(holding)  # noqa: PERF401  what was removed until then is noted
        finally:
            _note(removed)
        went += removed
    return tuple(went)


def needed_experiments(before: datetime) -> frozenset[int]:
    """The experiments of which nothing is removed."""
    rows = Experiment.objects
    needed = set(rows.filter(Q(kept=True) | Q(state__in=OPEN_EXPERIMENT)).values_list("pk", flat=True))
    needed |= set(
        rows.filter(Q(finished_at__isnull=True) | Q(finished_at__gte=before)).values_list("pk", flat=True)
    )
    for ended in ({}, {"state": ExperimentState.DONE}):
        standing = rows.filter(standing__isnull=False, **ended).order_by().values("standing")
        needed |= set(standing.annotate(latest=Max("pk")).values_list("latest", flat=True))
    searching = BisectionStep.objects.filter(
        bisection__state=BisectionState.RUNNING, experiment__isnull=False
    )
    needed |= set(searching.values_list("experiment", flat=True))
    called = regression_rows(RegressionFilter(state="open", primary=False))
    needed |= set(called.order_by().values_list("experiment", flat=True))
    needed |= set(Triage.objects.order_by().values_list("case__experiment", flat=True))
    for column in ("experiment", "run__experiment"):
        noted = Note.objects.filter(**{f"{column}__isnull": False}).order_by()
        needed |= set(noted.values_list(column, flat=True))
    return frozenset(needed)


def needs(before: datetime) -> Needs:
    """Everything that stays, whatever its age."""
    experiments = needed_experiments(before)
    used: set[int] = set()
    commits: set[str] = set()
    for experiment, build, commit, base in Variant.objects.order_by().values_list(
        "experiment", "build", "commit", "experiment__base_commit"
    ):
        if experiment in experiments:
            used.add(build)
            commits |= {commit, base}
    under_way = Q(state__in=(BuildState.QUEUED, BuildState.BUILDING)) | Q(finished_at__gte=before)
    used |= set(Build.objects.filter(under_way).values_list("pk", flat=True))
    builds = Build.objects.only("pk", "artifact_key", "log", "tree_id", "commit", "request").order_by()
    stood_upon = {_identity_of_base(row) for row in builds.iterator(chunk_size=_AT_ONCE) if row.pk in used}
    kept = [
        row for row in builds.iterator(chunk_size=_AT_ONCE) if row.pk in used or _identity(row) in stood_upon
    ]
    return Needs(
        experiments,
        frozenset(row.artifact_key for row in kept) | {settings.CHECK_KERNEL},
        frozenset(
            commits | {row.commit for row in kept} | {_request_field(row, "base_commit") for row in kept}
        ),
        frozenset(Path(row.log).stem for row in kept if row.log),
    )


def _going(items: tuple[InventoryItem, ...], before: datetime, now: datetime) -> Iterator[tuple[Kind, str]]:
    stays = needs(before)
    runs = _needed_runs([holding.name for holding in items if holding.kind == "run"], stays.experiments)
    profiles = _needed_profiles(
        [holding.name for holding in items if holding.kind == "profile"], stays.experiments
    )
    by_name = {
        "artifact": stays.artifacts,
        "source": stays.sources,
        "log": stays.logs,
        # Nobody needs a compiled file: it is compiled again.
        "compiled": frozenset(),
        "run": runs,
        "profile": profiles,
    }
    known = set(Build.objects.exclude(artifact_key="").values_list("artifact_key", flat=True))
    for holding in items:
        broken_off = (
            holding.kind == "artifact" and not holding.whole and holding.written_at < now - BROKEN_OFF
        )
        # A file without a row is removed by its own age.
        old = holding.written_at < before or (holding.kind == "artifact" and holding.name in known)
        if broken_off or (holding.name not in by_name[holding.kind] and old):
            yield holding.kind, holding.name


def _needed_runs(names: list[str], experiments: frozenset[int]) -> frozenset[str]:
    needed: set[int] = set()
    ids = sorted({int(name.partition("-")[0]) for name in names})
    for place in range(0, len(ids), _AT_ONCE):
        rows = Run.objects.filter(pk__in=ids[place : place + _AT_ONCE]).order_by()
        for pk, experiment, state in rows.values_list("pk", "experiment", "state"):
            if experiment in experiments or state in (RunState.QUEUED, RunState.RUNNING):
                needed.add(pk)
    return frozenset(name for name in names if int(name.partition("-")[0]) in needed)


def _needed_profiles(names: list[str], experiments: frozenset[int]) -> frozenset[str]:
    needed: set[str] = set()
    for place in range(0, len(names), _AT_ONCE):
        rows = Profile.objects.filter(perf_data_sha256__in=names[place : place + _AT_ONCE]).order_by()
        needed |= {
            sha256
            for sha256, owner in rows.values_list("perf_data_sha256", "run__experiment")
            if owner in experiments
        }
    return frozenset(needed)


def _identity(build: Build) -> str:
    """Return the identity of a base build: its sources and its configuration."""
    return json.dumps([build.tree_id, _request_field(build, "fragments"), _request_field(build, "cc")])


def _identity_of_base(build: Build) -> str:
    return json.dumps(
        [
            _request_field(build, "base_tree_id"),
            _request_field(build, "base_fragments"),
            _request_field(build, "cc"),
        ]
    )


def _request_field(build: Build, name: str) -> Any:
    return build.request.get(name, "")


def _remove(item: InventoryItem, home: Path, store: Store | None) -> bool:
    """Remove a thing here and in the store; False for one in use."""
    if item.kind == "artifact":
        with unless_in_use(home, item.name) as free:
            if not free:
                return False
            if store is not None:
                drop_artifact(store, item.name)
            for place in (home / "artifacts" / item.name, home / "papers" / item.name):
                if place.exists():
                    remove_tree(place)
        return True
    names = {
        "run": f"runs/{item.name}",
        "profile": f"profiles/{item.name[:2]}/{item.name}",
        "source": f"sources/{item.name}.bundle",
        "log": f"logs/{item.name}.log",
        "compiled": f"compiled/{item.name}",
    }
    if store is not None and item.stored:
        _remove_stored(store, item, names[item.kind])
    with suppress(FileNotFoundError):
        if item.kind == "run" and item.here:
            remove_tree(home / names["run"])
        elif item.kind == "profile":
            raw_path(home, item.name).unlink()
        elif item.kind == "log":
            (home / "objects" / "logs" / f"{item.name}.log").unlink()
    return True


def _remove_stored(store: Store, item: InventoryItem, name: str) -> None:
    if item.kind != "run":
        store.remove(name)
        return
    for entry in list(store.entries(name)):
        store.remove(entry.name)


def _note(removed: Sequence[InventoryItem]) -> None:
    """Write down when things were removed, for the pages that showed them: a statement a kind, since none has an index."""
    now = timezone.now()
    names: dict[Kind, list[str]] = {
        kind: [holding.name for holding in removed if holding.kind == kind] for kind in KINDS
    }
    if names["artifact"]:
        Build.objects.filter(artifact_key__in=names["artifact"]).update(expired_at=now)
    if names["run"]:
        Run.objects.filter(pk__in=[int(name.partition("-")[0]) for name in names["run"]]).update(
            expired_at=now
        )
    if names["log"]:
        Build.objects.filter(log__in=[f"objects/logs/{name}.log" for name in names["log"]]).update(
            expired_at=now
        )


def bytes_left(plan: Expiry, went: tuple[InventoryItem, ...]) -> dict[str, dict[str, int]]:
    """Return how much is left on this machine ("home") and in the store ("store"), by kind."""
    gone = {(holding.kind, holding.name) for holding in went}
    left = [holding for holding in (*plan.staying, *plan.going) if (holding.kind, holding.name) not in gone]
    return {
        "home": {kind: sum(holding.here for holding in left if holding.kind == kind) for kind in KINDS},
        "store": {kind: sum(holding.stored for holding in left if holding.kind == kind) for kind in KINDS},
    }
