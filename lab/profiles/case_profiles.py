# SPDX-License-Identifier: GPL-2.0-or-later
"""Load and align the profiles of a case, for every page and file about profiles."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from statistics import median

import numpy as np

from lab.errors import UnknownRow, one_row
from lab.from_attributes import from_attributes
from lab.models import Case, Experiment, Profile
from lab.models.states import Role
from lab.profiles.analysis.frame_alignment import Flags, Integers, UnitedTree, align
from lab.profiles.analysis.frame_shifts import sides_of
from lab.profiles.analysis.frame_tree import FrameTree, unpack
from lab.profiles.analysis.share_shifts import Sides
from lab.profiles.analysis.source_lines import merged_lines
from lab.profiles.analysis.symbol_counts import symbol_counts
from lab.profiles.analysis.weight_unit import Unit, is_waited, unit_of
from workloads.catalog import load_catalog

CPU: str = Profile.Kind.CPU.value
EXACT: str = Profile.Kind.EXACT.value
WAITING: str = Profile.Kind.WAITING.value
# The number of symbols to split by caller: those in which most of the waiting ends.
MOST_WATCHED = 6


@dataclass(frozen=True, slots=True)
class ProfiledBoot:
    """One boot with a profile. truncated: why its end is missing. doubts: why its surroundings make it suspect.

    samples: nanoseconds where the profile is one of waits; waits: their number. overhead: elapsed time with this profiler
    over that without, minus 1; None where it was not measured.
    """

    run_id: int
    block: int
    samples: int
    lost: int
    truncated: str = ""
    doubts: tuple[str, ...] = ()
    waits: int = 0
    overhead: float | None = None


@dataclass(frozen=True, slots=True)
class ProfilingCost:
    """The overhead of one kind of profiles of a case: the median over its boots and the range, None if not measured."""

    kind: str
    boots: int
    lost: int
    overhead: float | None = None
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class ProfiledVariant:
    """A variant with the boots whose profiles count, and those left out."""

    id: int
    name: str
    role: str
    boots: tuple[ProfiledBoot, ...]
    left_out: tuple[ProfiledBoot, ...] = ()


@dataclass(frozen=True, eq=False)
class CaseProfiles:
    """All profiles of a case. tree: one column a counted boot, variant by variant, in `variants`' order.

    owners: int64[profiles], index into variants. kind: of Profile.Kind. line_tables: of each counted boot, as stored.
    """

    experiment: Experiment
    case: Case
    kind: str
    variants: tuple[ProfiledVariant, ...]
    owners: Integers
    tree: UnitedTree
    line_tables: tuple[bytes | None, ...] = ()

    @cached_property
    def lines(self) -> dict[str, str]:
        """Return where functions begin, "fs/namei.c:2251": in the base's source, or in a variant's if the base lacks the function."""
        firsts = [int(np.argmax(self.of(place))) for place in range(len(self.variants))]
        if self.base is not None:
            firsts.insert(0, firsts.pop(self.base))
        return merged_lines(self.line_tables[at] for at in firsts)

    def of(self, variant: int) -> Flags:
        """bool[profiles]: the columns of one variant."""
        return np.asarray(self.owners == variant, dtype=bool)

    @property
    def waits(self) -> bool:
        """Return whether the trees' weights are nanoseconds or cycles waited, not samples."""
        return is_waited(self.unit)

    @property
    def unit(self) -> Unit:
        """The unit of the trees' weights."""
        return unit_of(self.kind)

    def drawn(self, own: Flags) -> Flags:
        """bool[profiles]: the profiles to add up, out of `own`.

        Of exact ones it is the first, since each boot is complete; of modelled waiting the median boot, since weights
        are per operation.
        """
        places = np.flatnonzero(own)
        if self.kind not in (EXACT, WAITING) or not places.size:
            return own
        by_size = places[np.argsort(self.tree.samples[places], kind="stable")]
        drawn = np.zeros_like(own)
        drawn[places[0] if self.kind == EXACT else by_size[(len(by_size) - 1) // 2]] = True
        return drawn

    @property
    def base(self) -> int | None:
        """The base's place among the variants."""
        return self._with_role(Role.BASE)

    @property
    def twin(self) -> int | None:
        """The place of the base's A/A twin."""
        return self._with_role(Role.AA)

    def _with_role(self, role: Role) -> int | None:
        return next((place for place, variant in enumerate(self.variants) if variant.role == role), None)

    def place(self, name: str) -> int:
        """The place of a variant by its name. Raises UnknownRow."""
        for place, variant in enumerate(self.variants):
            if variant.name == name:
                return place
        known = ", ".join(variant.name for variant in self.variants) or "none"
        raise UnknownRow(f'no {called(self.kind)} of a variant "{name}" in this case; there are: {known}')

    def sides(self, *, base: int, candidate: int) -> Sides:
        """Return the sides for comparing two variants; other variants' boots help to estimate chance."""
        twin = self.twin if base == self.base else None
        return sides_of(self.owners, base=base, candidate=candidate, twin=twin)


def case_profiles(experiment_id: int, case_id: int, *, kind: str = CPU, idle: bool = False) -> CaseProfiles:
    """Load one kind of profiles of one case. Raises UnknownRow, also for a kind that does not exist.

    idle: count idle CPUs' samples like others; waits are never idle. Boots outside their validity gates are left out,
    unless a variant has no other.
    """
    kind = kind_named(kind) if kind else _usual_kind(case_id)
    case = one_row(
        Case.objects.select_related("experiment").filter(pk=case_id, experiment__pk=experiment_id),
        f"case {case_id} of experiment {experiment_id}",
    )
    rows = (
        Profile.objects.filter(run__case=case, run__state="done", kind=kind)
        .select_related("run__variant")
        .order_by("run__variant__position", "run__position")
    )
    by_variant: dict[int, list[Profile]] = {}
    for row in rows:
        by_variant.setdefault(row.run.variant_id, []).append(row)
    variants, counted = [], []
    owners: list[int] = []
    for place, profiles in enumerate(by_variant.values()):
        valid = [profile for profile in profiles if not profile.run.invalid] or profiles
        variants.append(_variant(profiles, valid))
        owners += [place] * len(valid)
        counted += valid
    blobs = tuple(bytes(profile.tree) for profile in counted)
    tree = _aligned(blobs, idle or is_waited(unit_of(kind)), kind == EXACT)
    tables = tuple(bytes(profile.lines) if profile.lines else None for profile in counted)
    return CaseProfiles(
        case.experiment, case, kind, tuple(variants), np.array(owners, np.int64), tree, tables
    )


def kind_named(name: str) -> str:
    """Return the kind of profiles of that name; running CPUs if it is empty. Raises UnknownRow."""
    if not name:
        return CPU
    if name not in Profile.Kind.values:
        raise UnknownRow(f'profiles have no kind "{name[:40]}"; there are: {", ".join(Profile.Kind.values)}')
    return name


def called(kind: str) -> str:
    """A profile of that kind in words: "profile", "lock profile"."""
    return "profile" if kind == CPU else f"{kind} profile"


def profiling_costs(case_id: int) -> tuple[ProfilingCost, ...]:
    """Return the overhead of each kind of profiles of a case, in the order of Profile.Kind."""
    rows = Profile.objects.filter(run__case__pk=case_id, run__state="done").values_list(
        "kind", "lost", "overhead"
    )
    costs = []
    for kind in Profile.Kind.values:
        own = [(lost, overhead) for row_kind, lost, overhead in rows if row_kind == kind]
        overheads = [overhead for _, overhead in own if overhead is not None]
        ends = (median(overheads), min(overheads), max(overheads)) if overheads else ()
        if own:
            costs.append(ProfilingCost(kind, len(own), sum(lost for lost, _ in own), *ends))
    return tuple(costs)


def profiled_variants(case_id: int, *, kind: str) -> set[str]:
    """Return the names of the variants that have profiles of a kind."""
    rows = Profile.objects.filter(run__case=case_id, run__state="done", kind=kind)
    return set(rows.values_list("run__variant__name", flat=True))


def run_tree(run_id: int, *, kind: str = CPU) -> tuple[Profile, FrameTree]:
    """One run's profile of a kind, by itself and under the compiler's own names. Raises UnknownRow."""
    kind = kind_named(kind)
    profiles = Profile.objects.filter(run__pk=run_id, kind=kind).select_related("run__variant", "run__case")
    profile = one_row(profiles, f"{called(kind)} of run {run_id}")
    return profile, unpack(bytes(profile.tree))


# Profiles never change, and one page reads the same ones several times: diff, tables, each opened row.
@lru_cache(maxsize=6)
def _aligned(blobs: tuple[bytes, ...], idle: bool, exact: bool) -> UnitedTree:
    return align([unpack(blob) for blob in blobs], idle=idle, exact=exact)


def _usual_kind(case_id: int) -> str:
    """Return the kind of profile to show first: running CPUs, or the kind that exists."""
    kinds = set(
        Profile.objects.filter(run__case__pk=case_id, run__state="done").values_list("kind", flat=True)
    )
    return next((kind for kind in (CPU, EXACT, WAITING) if kind in kinds), CPU)


def _variant(profiles: Sequence[Profile], valid: Sequence[Profile]) -> ProfiledVariant:
    return from_attributes(
        ProfiledVariant,
        profiles[0].run.variant,
        boots=tuple(_boot(profile) for profile in valid),
        left_out=tuple(_boot(profile) for profile in profiles if profile not in valid),
    )


def _boot(profile: Profile) -> ProfiledBoot:
    return from_attributes(ProfiledBoot, profile, block=profile.run.block, doubts=tuple(profile.run.invalid))


def watched(profiles: CaseProfiles) -> tuple[str, ...]:
    """Return the symbols to split by caller by default: for running CPUs those that the workload says to watch,
    for waiting those in which most of it ends, since their callers are of interest."""
    if profiles.kind in (CPU, EXACT):
        workload = load_catalog().get(profiles.case.workload)
        return workload.watch if workload else ()
    own = symbol_counts(profiles.tree).own.sum(axis=1)
    most = sorted(np.flatnonzero(own), key=lambda place: -own[place])[:MOST_WATCHED]
    return tuple(profiles.tree.names[place] for place in most)
