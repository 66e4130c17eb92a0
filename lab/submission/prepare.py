# SPDX-License-Identifier: GPL-2.0-or-later
"""Check everything about a submission before anything is written."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from django.conf import settings

from kernels.builds.toolchain import Toolchain, detect_toolchain
from kernels.configs.request import Fragment, load_fragment, read_fragment
from kernels.trees.tree import NamedRevision, SourceTree
from kernels.trees.vouched import is_on_refs, is_own_archive
from lab import models
from lab.errors import Refusals, SubmissionRejected
from lab.experiments.expand import Clash, Combination, expand
from lab.experiments.measure import MeasureSpec
from lab.experiments.spec import ExperimentSpec
from lab.statistics.sequential import LOOKS
from lab.storage.withdrawals import last_withdrawal
from lab.submission.blame import lab_at_fault
from lab.submission.claimed_base import blamed_on_claims
from lab.submission.combinations import Applier
from lab.submission.parts import PinnedBase, placed_switches, read_parts
from lab.submission.sources import OnProgress, Source, Taken, with_catalogue_rules
from lab.targets.drivers import DRIVERS
from lab.trends.base_points import WORKLOAD_FRAGMENT
from workloads.catalog import Workload, load_catalog

CONFIG_BASE = "tiny"
GUEST_FRAGMENT = "guest"
# Workloads whose needs every kernel meets, so that experiments with different ones share a base build. A workload that is
# not listed here brings its needs to its own experiments alone: adding one here changes all kernels.
COMMON = ("bh-lookup", "cyclictest-bh", "showgids", "stat-walk")
# Moves nearly every function and changes none, so that only the code layout differs.
PLACEBO_FRAGMENT = Fragment("layout placebo", "CONFIG_DEBUG_FORCE_FUNCTION_ALIGN_64B=y\n")
# Fields of a request outside its digest: the base's names, which its tree id covers, and whether it is vouched for.
_NAMES = frozenset({"base_name", "base_commit", "vouched"})
# More boots than this is a mistake: at ten seconds each, a week.
MOST_RUNS = 60_000


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
    # Whether the operator vouches for the base: its compiled objects then serve every later build.
    vouched: bool
    # The last withdrawal of trust before that decision, which counts until the next one.
    withdrawal: str


@dataclass(frozen=True, slots=True)
class BuildInputs:
    """The inputs of a build before its config is resolved; equal inputs have equal digests."""

    revision: NamedRevision
    request: dict[str, Any]
    digest: str


@lab_at_fault()
def prepare(
    spec: ExperimentSpec,
    root: Path,
    on_progress: OnProgress,
    pin: PinnedBase | None = None,
    *,
    only_at_hand: bool = False,
) -> Prepared:
    """Open the tree, read the switches and apply the combinations. pin, only_at_hand: as read_parts takes them.

    Raises SpecError, SubmissionRejected, or LabUnable where the lab is at fault.
    """
    parts = read_parts(spec, root, on_progress, pin, only_at_hand=only_at_hand)
    ruled = with_catalogue_rules(spec.patches, {name: taken.toggle for name, taken in parts.switches.items()})
    switches = {name: replace(taken, toggle=ruled[name]) for name, taken in parts.switches.items()}
    base = parts.claimed.base
    applier = Applier(parts.tree, base, switches)

    def attempt(chosen: tuple[str, ...]) -> Clash | None:
        on_progress(f"applying {' + '.join(chosen) or 'nothing'}")
        return applier.try_to_apply(chosen)

    with blamed_on_claims(parts.claimed, parts.tree):
        combinations = tuple(expand([taken.toggle for taken in switches.values()], spec.design, attempt))
        faults = Refusals()
        for place, switch in placed_switches(spec):
            with faults.collect():
                _check_applies(switch.name, place, combinations, spec.design)
        faults.check()
        _check_size(spec, sum(1 for c in combinations if not c.clash))
        _check_names(spec, combinations)
    toolchain = detect_toolchain()
    withdrawal = last_withdrawal() if settings.FRONT else ""
    return Prepared(
        spec,
        parts.source,
        parts.tree,
        base,
        parts.target,
        switches,
        combinations,
        applier,
        parts.workloads,
        toolchain,
        _is_vouched_for(parts.source, parts.tree, base),
        withdrawal,
    )


def _is_vouched_for(source: Source, tree: SourceTree, base: NamedRevision) -> bool:
    """Return whether the base is vouched for; decided on the fetched tree, as a builder's copy may lack branches and tags."""
    if not settings.FRONT:
        return False
    return is_own_archive(tree, base) or is_on_refs(tree, base, settings.VOUCHED.get(source.location, ()))


def group_asked(name: str, target: models.Target) -> str:
    """The group that a description names; "" where it names the target itself."""
    return "" if target.name == name else name


def _check_applies(name: str, place: str, combinations: tuple[Combination, ...], design: str) -> None:
    """Refuse a switch that no variant has on."""
    holding = [c for c in combinations if name in c.switches]
    clashes = [c.clash for c in holding if c.clash]
    if len(clashes) < len(holding):
        return
    # A hunk that does not apply is the better explanation.
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
            f"at most {MOST_RUNS:,} are allowed; lower measure.boots or choose another design"
        )


def _check_names(spec: ExperimentSpec, combinations: tuple[Combination, ...]) -> None:
    """Refuse a variant whose name, which joins those of its switches, is longer than the table stores."""
    most = models.Variant._meta.get_field("name").max_length
    longest = max(combinations, key=lambda combination: len(combination.name))
    if most is not None and len(longest.name) > most:
        raise SubmissionRejected(
            f"design: {spec.design} has a variant of {len(longest.switches)} switches, whose joined names have "
            f"{len(longest.name)} characters, at most {most} are allowed; give the switches shorter names",
            place="design",
        )


def build_inputs(prepared: Prepared, chosen: tuple[str, ...], *more: Fragment) -> BuildInputs:
    """Return the inputs of the build of these switches, with the lab's own config fragments."""
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
        "vouched": prepared.vouched,
        # Absent before the first withdrawal, so that builds of older rows keep their digests.
        **({"withdrawal": prepared.withdrawal} if prepared.withdrawal else {}),
    }
    return BuildInputs(revision, request, inputs_digest(revision.tree_id, request))


def inputs_digest(tree_id: str, request: Mapping[str, Any]) -> str:
    """Return 64 hex digits over every input of a build, including the base it is built over.

    Two builds of one digest are one row: objects of one base's code must not answer for another base.
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
    present = {(option.symbol, option.value) for fragment in common for option in read_fragment(fragment)}
    needs = {workload.name: _needs(workload) for workload in workloads if workload.name not in COMMON}
    return [
        fragment
        for _, fragment in sorted(needs.items())
        if not {(option.symbol, option.value) for option in read_fragment(fragment)} <= present
    ]


def _needs(workload: Workload) -> Fragment:
    return Fragment(f"{WORKLOAD_FRAGMENT}{workload.name}", "".join(f"{line}\n" for line in workload.config))
