# SPDX-License-Identifier: GPL-2.0-or-later
"""Everything about a submission that can be found out before anything is written."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from kernels.config import Fragment, load_fragment
from kernels.errors import KernelsError
from kernels.toolchain import Toolchain, detect_toolchain
from kernels.tree import Revision, Tree, resolve
from lab import models
from lab.analysis.sequential import LOOKS
from lab.combine import Applier
from lab.errors import LabUnable, SpecError, SubmissionRejected
from lab.expand import Clash, Combination, expand
from lab.intake import OnProgress, Source, Taken, find_source, open_source, take_in, with_catalogue_rules
from lab.spec import ExperimentSpec, MeasureSpec
from lab.spec_messages import nearest
from workloads.catalog import Workload, load_catalog

CONFIG_BASE = "tiny"
GUEST_FRAGMENT = "guest"
# Moves nearly every function and changes none: what differs then is code layout.
PLACEBO_FRAGMENT = Fragment("layout placebo", "CONFIG_DEBUG_FORCE_FUNCTION_ALIGN_64B=y\n")
# More boots than this is a mistake: at ten seconds each, a week.
MOST_RUNS = 60_000


@dataclass(frozen=True, slots=True)
class Prepared:
    """A submission that can be carried out. combinations: base first, pruned ones with their reason."""

    spec: ExperimentSpec
    source: Source
    tree: Tree
    base: Revision
    target: models.Target
    switches: Mapping[str, Taken]
    combinations: tuple[Combination, ...]
    applier: Applier
    workloads: tuple[Workload, ...]
    toolchain: Toolchain


@dataclass(frozen=True, slots=True)
class BuildInputs:
    """What decides a build before its config is resolved; digest is the same for the same."""

    revision: Revision
    request: dict[str, Any]
    digest: str


def prepare(spec: ExperimentSpec, root: Path, on_progress: OnProgress) -> Prepared:
    """Open the tree, read the switches and apply the combinations.

    Raises SpecError, SubmissionRejected, or LabUnable where the lab is at fault.
    """
    try:
        return _prepare(spec, root, on_progress)
    except KernelsError as exc:
        raise LabUnable(f"the lab cannot take this in now: {exc}", exc.detail) from exc


def _prepare(spec: ExperimentSpec, root: Path, on_progress: OnProgress) -> Prepared:
    target = find_target(spec.target)
    workloads = _workloads(spec)
    registered = {row.name: Source(row.name, row.kind, row.location) for row in models.Tree.objects.all()}
    source = find_source(spec, registered)
    try:
        tree = open_source(source, root / "trees", on_progress)
        base = resolve(tree, spec.base or tree.default_revision)
    except KernelsError as exc:
        if exc.blame != "submission":
            raise
        raise SubmissionRejected(str(exc), exc.detail) from exc
    switches = {}
    for switch in spec.switches:
        on_progress(f"reading {switch.name}")
        switches[switch.name] = take_in(switch, tree, base)
    ruled = with_catalogue_rules(spec.patches, {name: taken.toggle for name, taken in switches.items()})
    switches = {name: replace(taken, toggle=ruled[name]) for name, taken in switches.items()}
    applier = Applier(tree, base, switches)
    combinations = _combine(spec, switches, applier, on_progress)
    toolchain = detect_toolchain()
    return Prepared(spec, source, tree, base, target, switches, combinations, applier, workloads, toolchain)


def find_target(name: str) -> models.Target:
    """Return the target of that name. Raises SubmissionRejected with the names there are."""
    targets = {target.name: target for target in models.Target.objects.filter(enabled=True)}
    if name not in targets:
        raise SubmissionRejected(f'target: there is no target "{name}"; {nearest(name, targets)}')
    return targets[name]


def _workloads(spec: ExperimentSpec) -> tuple[Workload, ...]:
    known = load_catalog()
    workloads = tuple(known[case.workload] for case in spec.cases)
    if spec.measure.verify and not any(workload.verifies for workload in workloads):
        able = [name for name, workload in known.items() if workload.verifies]
        raise SpecError(f"measure.verify: none of the cases can be verified; those of {', '.join(able)} can")
    return workloads


def _combine(
    spec: ExperimentSpec, switches: Mapping[str, Taken], applier: Applier, on_progress: OnProgress
) -> tuple[Combination, ...]:
    def attempt(chosen: tuple[str, ...]) -> Clash | None:
        on_progress(f"applying {' + '.join(chosen) or 'nothing'}")
        return applier.try_to_apply(chosen)

    combinations = tuple(expand([taken.toggle for taken in switches.values()], spec.design, attempt))
    for name in switches:
        holding = [c for c in combinations if name in c.switches]
        clashes = [c.clash for c in holding if c.clash]
        if len(clashes) == len(holding):
            # A hunk that does not fit tells more than a rule of the description.
            worst = next((clash for clash in clashes if clash.detail), clashes[0])
            raise SubmissionRejected(
                f'switch "{name}" is on in no variant of design {spec.design}: {worst.reason}', worst.detail
            )
    _check_size(spec, sum(1 for c in combinations if not c.clash))
    return combinations


def boots_at_most(measure: MeasureSpec) -> int:
    """How often each variant boots, at most where they may stop early."""
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
    base_fragments = _base_fragments()
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
        "modules_of": sorted(with_modules),
    }
    # The base a variant is built over does not change its bytes, so it is not part of the digest.
    told = [
        prepared.tree.name,
        revision.tree_id,
        CONFIG_BASE,
        request["fragments"],
        prepared.toolchain.identity,
        modules,
    ]
    return BuildInputs(revision, request, hashlib.sha256(json.dumps(told).encode()).hexdigest())


def _base_fragments() -> list[Fragment]:
    """The guest's fragment and what every workload needs, the same for all experiments.

    Not only what this experiment's workloads need: one base build then serves all experiments on a
    revision, which saves a whole build each and costs a few dozen more symbols.
    """
    needs = {w.name: "".join(f"{line}\n" for line in w.config) for w in load_catalog().values() if w.config}
    wanted = [Fragment(f"workload {name}", text) for name, text in sorted(needs.items())]
    return [load_fragment(GUEST_FRAGMENT), *wanted]
