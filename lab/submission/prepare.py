# SPDX-License-Identifier: GPL-2.0-or-later
"""Check everything about a submission before anything is written."""

import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from django.db.models import F

from kernels.builds.toolchain import Toolchain, detect_toolchain
from kernels.configs.request import Fragment, load_fragment, read_fragment
from kernels.errors import KernelsError
from kernels.trees.tree import NamedRevision, SourceTree, keep, resolve
from lab import models
from lab.errors import LabUnable, Refusals, SubmissionRejected
from lab.experiments.expand import Clash, Combination, expand
from lab.experiments.measure import MeasureSpec
from lab.experiments.spec import ConfigSpec, ExperimentSpec, PatchSpec
from lab.statistics.sequential import LOOKS
from lab.submission.claimed_base import blamed_on_claims, claimed_base, with_note
from lab.submission.combinations import Applier
from lab.submission.sources import (
    OnProgress,
    Source,
    Taken,
    find_source,
    open_source,
    take_in,
    with_catalogue_rules,
)
from lab.submission.tree_rows import registered_sources
from lab.targets.drivers import DRIVERS
from lab.trends.base_points import WORKLOAD_FRAGMENT
from lab.validation_messages import nearest
from workloads.catalog import Workload, load_catalog

CONFIG_BASE = "tiny"
GUEST_FRAGMENT = "guest"
# Workloads whose needs every kernel meets, so that experiments with different ones share a base build. A workload that is
# not listed here brings its needs to its own experiments alone: adding one here changes all kernels.
COMMON = ("bh-lookup", "cyclictest-bh", "showgids", "stat-walk")
# Moves nearly every function and changes none: what differs then is code layout.
PLACEBO_FRAGMENT = Fragment("layout placebo", "CONFIG_DEBUG_FORCE_FUNCTION_ALIGN_64B=y\n")
# Of a request: how its base is called, which has no say beside the base's tree id.
_NAMES = frozenset({"base_name", "base_commit"})
# More boots than this is a mistake: at ten seconds each, a week.
MOST_RUNS = 60_000


@dataclass(frozen=True, slots=True)
class PinnedBase:
    """The commit that an experiment stands on, and the tree it is of, for those that repeat it."""

    tree: str
    commit: str
    experiment: int


def pin_of(spec: ExperimentSpec, origin: models.Experiment | models.Standing | None) -> PinnedBase | None:
    """Return the commit that a re-run or a clone stands on, where it names the same base: a tag or branch may have moved since."""
    if not isinstance(origin, models.Experiment) or spec.base != origin.spec.get("base", ""):
        return None
    return PinnedBase(origin.tree.name, origin.base_commit, origin.pk)


@dataclass(frozen=True, slots=True)
class Prepared:
    """A submission that can be carried out. combinations: base first, pruned ones with their reason."""

    spec: ExperimentSpec
    source: Source
    tree: SourceTree
    base: NamedRevision
    target: models.Target
    switches: Mapping[str, Taken]
    combinations: tuple[Combination, ...]
    applier: Applier
    workloads: tuple[Workload, ...]
    toolchain: Toolchain


@dataclass(frozen=True, slots=True)
class BuildInputs:
    """The inputs of a build before its config is resolved; equal inputs have equal digests."""

    revision: NamedRevision
    request: dict[str, Any]
    digest: str


@contextmanager
def lab_at_fault() -> Iterator[None]:
    """Blame the lab, not the description, for faults of git and of the machine here."""
    try:
        yield
    except KernelsError as exc:
        raise LabUnable(f"the lab cannot take this in now: {exc}", exc.detail) from exc


@lab_at_fault()
def prepare(
    spec: ExperimentSpec, root: Path, on_progress: OnProgress, pin: PinnedBase | None = None
) -> Prepared:
    """Open the tree, read the switches and apply the combinations. pin: the base of the experiment that this one repeats.

    Raises SpecError, SubmissionRejected, or LabUnable where the lab is at fault.
    """
    faults = Refusals()
    with faults.collect():
        target = find_target(spec.target)
        _check_clock(spec, target)
    with faults.collect():
        workloads = _workloads(spec)
    with faults.collect():
        source = find_source(spec, registered_sources())
    faults.check()
    with _blamed_on("tree" if spec.git is None else "git"):
        tree = open_source(source, root / "trees", on_progress)
    with _blamed_on("base"):
        base = _base(spec, source, tree, pin, on_progress)
    claimed = claimed_base(spec, tree, base, pinned=pin is not None)
    base = claimed.base
    switches = {}
    for place, switch in _placed(spec):
        on_progress(f"reading {switch.name}")
        with faults.collect(), _blamed_on(place), blamed_on_claims(claimed, tree):
            switches[switch.name] = with_note(take_in(switch, tree, base), claimed)
    faults.check()
    ruled = with_catalogue_rules(spec.patches, {name: taken.toggle for name, taken in switches.items()})
    switches = {name: replace(taken, toggle=ruled[name]) for name, taken in switches.items()}
    applier = Applier(tree, base, switches)
    with blamed_on_claims(claimed, tree):
        combinations = _combine(spec, switches, applier, on_progress)
    toolchain = detect_toolchain()
    return Prepared(spec, source, tree, base, target, switches, combinations, applier, workloads, toolchain)


def _base(
    spec: ExperimentSpec, source: Source, tree: SourceTree, pin: PinnedBase | None, on_progress: OnProgress
) -> NamedRevision:
    """Resolve the base, or take the commit that it was for the experiment that this one repeats; keep it from `git gc`."""
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
            f"measure.clock: {target.name} is a machine, which has no {_CLOCK_NAMES[spec.measure.clock]} clock; "
            'take "wall", or a guest as the target',
            place="measure.clock",
        )


def _placed(spec: ExperimentSpec) -> Iterator[tuple[str, PatchSpec | ConfigSpec]]:
    """The switches in the order they are applied, each with the field that says what it is."""
    for number, patch in enumerate(spec.patches):
        kind = "catalog" if patch.catalog is not None else "range" if patch.range is not None else "text"
        yield f"patches[{number}].{kind}", patch
    for number, config in enumerate(spec.configs):
        yield f"configs[{number}].text", config


@contextmanager
def _blamed_on(place: str) -> Iterator[None]:
    """Say which field of the description is at fault, unless it is the lab."""
    try:
        yield
    except SubmissionRejected as exc:
        exc.place = exc.place or place
        raise
    except KernelsError as exc:
        if exc.blame != "submission":
            raise
        raise SubmissionRejected(str(exc), exc.detail, place) from exc


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


def group_asked(name: str, target: models.Target) -> str:
    """The group that a description names; "" where it names the target itself."""
    return "" if target.name == name else name


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


def _combine(
    spec: ExperimentSpec, switches: Mapping[str, Taken], applier: Applier, on_progress: OnProgress
) -> tuple[Combination, ...]:
    def attempt(chosen: tuple[str, ...]) -> Clash | None:
        on_progress(f"applying {' + '.join(chosen) or 'nothing'}")
        return applier.try_to_apply(chosen)

    combinations = tuple(expand([taken.toggle for taken in switches.values()], spec.design, attempt))
    faults = Refusals()
    for place, switch in _placed(spec):
        with faults.collect():
            _check_applies(switch.name, place, combinations, spec.design)
    faults.check()
    _check_size(spec, sum(1 for c in combinations if not c.clash))
    return combinations


def _check_applies(name: str, place: str, combinations: tuple[Combination, ...], design: str) -> None:
    """Refuse a switch that no variant has on."""
    holding = [c for c in combinations if name in c.switches]
    clashes = [c.clash for c in holding if c.clash]
    if len(clashes) < len(holding):
        return
    # A hunk that does not fit tells more than a rule of the description.
    worst = next((clash for clash in clashes if clash.detail), clashes[0])
    raise SubmissionRejected(
        f'switch "{name}" applies in no variant of design {design}: {worst.reason}', worst.detail, place
    )


def boots_at_most(measure: MeasureSpec) -> int:
    """Return how often each variant boots, at most where they may stop early."""
    return LOOKS[-1] if measure.boots == "auto" else measure.boots


def _check_size(spec: ExperimentSpec, live: int) -> None:
    variants = live + 1 + spec.measure.placebo
    boots = boots_at_most(spec.measure)
    runs = variants * len(spec.cases) * boots
    if runs > MOST_RUNS:
        raise SubmissionRejected(
            f"{variants} variants × {len(spec.cases)} cases × {boots} boots are {runs:,} boots, "
            f"at most {MOST_RUNS:,} are taken; lower measure.boots or choose another design"
        )


def build_inputs(prepared: Prepared, chosen: tuple[str, ...], *more: Fragment) -> BuildInputs:
    """Return what the variant of these switches is built from, with config fragments of the lab's own."""
    revision = prepared.applier.revision(chosen)
    common = _base_fragments()
    base_fragments = [
        *common,
        *_further_fragments(common, prepared.workloads),
        *_target_fragments(prepared.target),
    ]
    own = [prepared.switches[name].fragment for name in chosen]
    fragments = [*base_fragments, *(fragment for fragment in own if fragment), *more]
    with_modules = {w.name: w for w in prepared.workloads if w.modules}
    modules = {
        name: [
            [m.name, {f: hashlib.sha256(d).hexdigest() for f, d in sorted(m.files.items())}]
            for m in w.modules
        ]
        for name, w in sorted(with_modules.items())
    }
    request = {
        "tree": prepared.tree.name,
        "base_name": prepared.base.name,
        "base_commit": prepared.base.commit,
        "base_tree_id": prepared.base.tree_id,
        "config_base": CONFIG_BASE,
        "fragments": [[fragment.name, fragment.text] for fragment in fragments],
        "base_fragments": [[fragment.name, fragment.text] for fragment in base_fragments],
        "cc": prepared.toolchain.cc,
        "toolchain": prepared.toolchain.identity,
        "modules_of": sorted(with_modules),
        "modules": modules,
    }
    return BuildInputs(revision, request, inputs_digest(revision.tree_id, request))


def inputs_digest(tree_id: str, request: Mapping[str, Any]) -> str:
    """Return 64 hex digits over everything that has a say in a build, the base it is built over among it.

    Two builds of one digest are one row: what the base's code leaves behind must not answer for another base.
    """
    named = {name: value for name, value in request.items() if name not in _NAMES}
    return hashlib.sha256(json.dumps([tree_id, named], sort_keys=True).encode()).hexdigest()


def _target_fragments(target: models.Target) -> list[Fragment]:
    """Return the additional config of kernels for this machine, the same for all variants of an experiment."""
    machine = DRIVERS[target.driver].access == "machine"
    return [load_fragment(name) for name in target.access.get("fragments", ())] if machine else []


def _base_fragments() -> list[Fragment]:
    """Return the guest's fragment and what the workloads in COMMON need, the same for all experiments.

    Not only what this experiment's workloads need: one base build then serves most experiments on a
    revision, which saves a whole build each and costs a few dozen more symbols.
    """
    known = load_catalog()
    return [
        load_fragment(GUEST_FRAGMENT),
        *(_needs(known[name]) for name in COMMON if name in known and known[name].config),
    ]


def _further_fragments(common: list[Fragment], workloads: tuple[Workload, ...]) -> list[Fragment]:
    """Return what the workloads of this experiment need beyond the common fragments."""
    present = {(one.symbol, one.value) for fragment in common for one in read_fragment(fragment)}
    needs = {workload.name: _needs(workload) for workload in workloads if workload.name not in COMMON}
    return [
        fragment
        for _, fragment in sorted(needs.items())
        if not {(one.symbol, one.value) for one in read_fragment(fragment)} <= present
    ]


def _needs(workload: Workload) -> Fragment:
    return Fragment(f"{WORKLOAD_FRAGMENT}{workload.name}", "".join(f"{line}\n" for line in workload.config))
