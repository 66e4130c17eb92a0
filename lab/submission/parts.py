# SPDX-License-Identifier: GPL-2.0-or-later
"""Read each part of a description on its own: target, workloads, tree, base, and every switch.

All refusals are reported together: if one part prevents another from being read in full, the other is read as far as possible.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from django.db.models import F

from kernels.errors import PatchDamaged
from kernels.patches.series import read_series
from kernels.trees.tree import NamedRevision, SourceTree, is_imported, keep, resolve
from lab import models
from lab.errors import NeedsWorker, Refusals, SubmissionRejected
from lab.experiments.spec import LINE_SWITCHES, ExperimentSpec, LineSwitch, PatchSpec
from lab.submission.blame import submission_at_fault
from lab.submission.claimed_base import ClaimedBase, blamed_on_claims, claimed_base, with_note
from lab.submission.sources import (
    OnProgress,
    Source,
    Taken,
    blamed_on_switch,
    find_source,
    open_source,
    registered_sources,
    take_in,
)
from lab.targets.drivers import DRIVERS
from lab.validation_messages import nearest
from workloads.catalog import Workload, load_catalog


@dataclass(frozen=True, slots=True)
class PinnedBase:
    """The base commit of an experiment and its tree, for experiments that repeat it."""

    tree: str
    commit: str
    experiment: int


def pin_of(spec: ExperimentSpec, origin: models.Experiment | models.Standing | None) -> PinnedBase | None:
    """Return the commit for a re-run or a clone with the same base: a tag or branch may have moved since."""
    if not isinstance(origin, models.Experiment) or spec.base != origin.spec.get("base", ""):
        return None
    return PinnedBase(origin.tree.name, origin.base_commit, origin.pk)


@dataclass(frozen=True, slots=True)
class Parts:
    """The parts of a description, each valid on its own. claimed: the base, and what the mails say of it."""

    source: Source
    tree: SourceTree
    claimed: ClaimedBase
    target: models.Target
    workloads: tuple[Workload, ...]
    switches: Mapping[str, Taken]


def read_parts(
    spec: ExperimentSpec,
    root: Path,
    on_progress: OnProgress,
    pin: PinnedBase | None = None,
    *,
    only_at_hand: bool = False,
) -> Parts:
    """Read every part. pin: the base of the experiment that this one repeats.

    only_at_hand: do not import or fetch a tree: the description is refused anyway, and this is for the other refusals.
    Raises SubmissionRejected with all refusals, NeedsWorker where nothing but the tree is missing, KernelsError where the lab
    is at fault.
    """
    faults = Refusals()
    target = source = base = None
    workloads: tuple[Workload, ...] = ()
    switches: Mapping[str, Taken] = {}
    with faults.collect():
        target = find_target(spec.target)
        _check_clock(spec, target)
    with faults.collect():
        workloads = _workloads(spec)
    with faults.collect():
        source = find_source(spec, registered_sources())
    if source and (is_at_hand(source, root) or not (only_at_hand or faults.refused)):
        with faults.collect():
            tree, base = _opened(spec, source, root, on_progress, pin)
    if base is None:
        _check_texts(spec, faults)
    else:
        claimed = claimed_base(spec, tree, base, pinned=pin is not None)
        switches = _read_switches(spec, tree, claimed, on_progress, faults)
    faults.check()
    if source is None or target is None or base is None:
        raise NeedsWorker("the tree is not in the cache")
    return Parts(source, tree, claimed, target, workloads, switches)


def is_at_hand(source: Source, root: Path) -> bool:
    """Return whether the tree can be opened without an import or a fetch. Raises KernelsError for a broken one."""
    return source.kind == "archive" and is_imported(source.name, Path(source.location), root / "trees")


def _opened(
    spec: ExperimentSpec, source: Source, root: Path, on_progress: OnProgress, pin: PinnedBase | None
) -> tuple[SourceTree, NamedRevision]:
    with _blamed_on("tree" if spec.git is None else "git"):
        tree = open_source(source, root / "trees", on_progress)
    with _blamed_on("base"):
        return tree, _base(spec, source, tree, pin, on_progress)


def _read_switches(
    spec: ExperimentSpec, tree: SourceTree, claimed: ClaimedBase, on_progress: OnProgress, faults: Refusals
) -> dict[str, Taken]:
    switches = {}
    for place, switch in placed_switches(spec):
        on_progress(f"reading {switch.name}")
        with faults.collect(), _blamed_on(place), blamed_on_claims(claimed, tree):
            switches[switch.name] = with_note(take_in(switch, tree, claimed.base), claimed)
    return switches


def _check_texts(spec: ExperimentSpec, faults: Refusals) -> None:
    """Read the switches without a tree; a damaged diff may still be repaired once there is one."""
    for place, switch in placed_switches(spec):
        with faults.collect(), _blamed_on(place), blamed_on_switch(switch.name):
            if isinstance(switch, LineSwitch):
                switch.fragment()
            elif switch.text is not None:
                _check_series(switch.text, partial=switch.partial)


def _check_series(text: str, *, partial: bool) -> None:
    try:
        read_series(text.encode(), partial=partial)
    except PatchDamaged:
        return


def _base(
    spec: ExperimentSpec, source: Source, tree: SourceTree, pin: PinnedBase | None, on_progress: OnProgress
) -> NamedRevision:
    """Resolve the base, or take the base commit of the experiment that this one repeats; protect it from `git gc`."""
    name = spec.base or tree.default_revision
    if pin and pin.tree == source.name:
        pinned = resolve(tree, pin.commit)
        base = NamedRevision(pinned.commit, pinned.tree_id, name)
        on_progress(f"base {name} stays {pin.commit[:12]}, as in experiment {pin.experiment}")
    else:
        base = resolve(tree, name)
    keep(tree.repository, base.commit)
    return base


_CLOCK_NAMES = {"instructions": "instruction", "contention": "contention"}


def _check_clock(spec: ExperimentSpec, target: models.Target) -> None:
    if spec.measure.clock not in DRIVERS[target.driver].clocks:
        raise SubmissionRejected(
            f"measure.clock: {target.name} is a metal machine, which has no {_CLOCK_NAMES[spec.measure.clock]} clock; "
            'set "wall", or choose a guest as the target',
            place="measure.clock",
        )


def placed_switches(spec: ExperimentSpec) -> Iterator[tuple[str, PatchSpec | LineSwitch]]:
    """Yield the switches in the order they are applied, each with the field that says what it is."""
    for number, patch in enumerate(spec.patches):
        kind = "catalog" if patch.catalog is not None else "range" if patch.range is not None else "text"
        yield f"patches[{number}].{kind}", patch
    for field in LINE_SWITCHES:
        for number, switch in enumerate(getattr(spec, field)):
            yield f"{field}[{number}].text", switch


@contextmanager
def _blamed_on(place: str) -> Iterator[None]:
    """Say which field of the description is at fault, unless it is the lab."""
    try:
        with submission_at_fault(place=place):
            yield
    except SubmissionRejected as exc:
        exc.place = exc.place or place
        raise


def find_target(name: str) -> models.Target:
    """Return the target of that name, or one of the group of that name. Raises SubmissionRejected with the names there are."""
    enabled = list(
        models.Target.objects.filter(enabled=True).order_by(F("quarantined_at").asc(nulls_first=True), "name")
    )
    places = {target.group: target for target in reversed(enabled) if target.group}
    places |= {target.name: target for target in enabled}
    if name not in places:
        raise SubmissionRejected(
            f'target: there is no target "{name}"; {nearest(name, sorted(places))}', place="target"
        )
    return places[name]


def _workloads(spec: ExperimentSpec) -> tuple[Workload, ...]:
    known = load_catalog()
    workloads = tuple(known[case.workload] for case in spec.cases)
    if spec.measure.verify and not any(workload.verifies for workload in workloads):
        able = [name for name, workload in known.items() if workload.verifies]
        raise SubmissionRejected(
            f"measure.verify: none of the cases can be verified; those of {', '.join(able)} can",
            place="measure.verify",
        )
    return workloads
