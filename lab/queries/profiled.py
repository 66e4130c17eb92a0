# SPDX-License-Identifier: GPL-2.0-or-later
"""A case's profiles, loaded and laid over each other: what every page and file about profiles starts from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from lab.analysis.framealign import Flags, Integers, UnitedTree, align
from lab.analysis.frametree import FrameTree, unpack
from lab.analysis.profilediff import sides_of
from lab.analysis.shareshift import Sides
from lab.errors import UnknownRow
from lab.models import Case, Experiment, Profile
from lab.queries.experiments import get_experiment
from lab.states import Role
from workloads.catalog import load_catalog


@dataclass(frozen=True, slots=True)
class ProfiledBoot:
    """One boot with a profile. truncated: why its end is missing. doubts: why its surroundings make it suspect."""

    run_id: int
    block: int
    samples: int
    lost: int
    truncated: str = ""
    doubts: tuple[str, ...] = ()


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

    owners: int64[profiles], index into variants.
    """

    experiment: Experiment
    case: Case
    variants: tuple[ProfiledVariant, ...]
    owners: Integers
    tree: UnitedTree

    def of(self, variant: int) -> Flags:
        """bool[profiles]: the columns of one variant."""
        return np.asarray(self.owners == variant, dtype=bool)

    @property
    def base(self) -> int | None:
        """The base's place among the variants."""
        return self._with_role(Role.BASE)

    @property
    def twin(self) -> int | None:
        """The place of the base once more."""
        return self._with_role(Role.AA)

    def _with_role(self, role: Role) -> int | None:
        return next((place for place, one in enumerate(self.variants) if one.role == role), None)

    def place(self, name: str) -> int:
        """The place of a variant by its name. Raises UnknownRow."""
        for place, one in enumerate(self.variants):
            if one.name == name:
                return place
        known = ", ".join(one.name for one in self.variants) or "none"
        raise UnknownRow(f'no profile of a variant "{name}" in this case; there are: {known}')

    def sides(self, *, base: int, candidate: int) -> Sides:
        """Two variants against each other; what boots of the others differ by helps to tell chance."""
        twin = self.twin if base == self.base else None
        return sides_of(self.owners, base=base, candidate=candidate, twin=twin)


def case_profiles(experiment_id: int, case_id: int, *, idle: bool = False) -> CaseProfiles:
    """Load the profiles of one case. idle: count idle CPUs' samples like others. Raises UnknownRow.

    Boots outside their validity gates are left out, unless a variant has no other.
    """
    experiment = get_experiment(experiment_id)
    case = Case.objects.filter(pk=case_id, experiment=experiment).first()
    if case is None:
        raise UnknownRow(f"experiment {experiment_id} has no case {case_id}")
    rows = (
        Profile.objects.filter(run__case=case, run__state="done")
        .select_related("run__variant")
        .order_by("run__variant__position", "run__position")
    )
    by_variant: dict[int, list[Profile]] = {}
    for row in rows:
        by_variant.setdefault(row.run.variant_id, []).append(row)
    variants, counted = [], []
    owners: list[int] = []
    for place, profiles in enumerate(by_variant.values()):
        valid = [one for one in profiles if not one.run.invalid] or profiles
        variants.append(_variant(profiles, valid))
        owners += [place] * len(valid)
        counted += valid
    blobs = tuple(bytes(profile.tree) for profile in counted)
    return CaseProfiles(experiment, case, tuple(variants), np.array(owners, np.int64), _aligned(blobs, idle))


def run_tree(run_id: int) -> tuple[Profile, FrameTree]:
    """One run's profile, by itself and under the compiler's own names. Raises UnknownRow."""
    profile = Profile.objects.filter(run=run_id).select_related("run__variant", "run__case").first()
    if profile is None:
        raise UnknownRow(f"run {run_id} has no profile")
    return profile, unpack(bytes(profile.tree))


# Profiles never change, and a page asks for the same ones several times: by its diff, its tables, each opened row.
@lru_cache(maxsize=6)
def _aligned(blobs: tuple[bytes, ...], idle: bool) -> UnitedTree:
    return align([unpack(blob) for blob in blobs], idle=idle)


def _variant(profiles: Sequence[Profile], valid: Sequence[Profile]) -> ProfiledVariant:
    variant = profiles[0].run.variant
    return ProfiledVariant(
        id=variant.pk,
        name=variant.name,
        role=variant.role,
        boots=tuple(_boot(one) for one in valid),
        left_out=tuple(_boot(one) for one in profiles if one not in valid),
    )


def _boot(profile: Profile) -> ProfiledBoot:
    run = profile.run
    return ProfiledBoot(
        run.pk, run.block, profile.samples, profile.lost, profile.truncated, tuple(run.invalid)
    )


def watched(case: Case) -> tuple[str, ...]:
    """Symbols that the case's workload asks to look at."""
    workload = load_catalog().get(case.workload)
    return workload.watch if workload else ()
