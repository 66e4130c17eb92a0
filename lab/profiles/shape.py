# SPDX-License-Identifier: GPL-2.0-or-later
"""The read models of a case's profiles, for pages, the API and labctl: all variants side by side."""

from dataclasses import dataclass

from lab.experiments.shown_description import CaseView
from lab.models.states import Role
from lab.profiles.analysis.share_shifts import CERTAIN
from lab.profiles.analysis.weight_unit import Unit, is_waited, unit_of
from lab.profiles.case_profiles import CPU, ProfiledBoot, ProfilingCost
from lab.profiles.claims import VariantClaims
from lab.profiles.exact import ExactChange


@dataclass(frozen=True, slots=True)
class ShareCell:
    """One variant's share of a row; fractions. low, high: 95 % interval, None where boots are too few for one.

    log_ratio: binary logarithm of the share over the base's; q: how certain that is, None where it was not tested.
    Both None for the base. waited: by unit, nanoseconds a boot of waits, instructions of an exact profile, or cycles per operation of
    modelled waiting; low, high, log_ratio and q are then of this amount.
    """

    share: float
    low: float | None = None
    high: float | None = None
    log_ratio: float | None = None
    q: float | None = None
    waited: float | None = None
    unit: Unit = "samples"

    @property
    def size(self) -> float:
        """Return the compared value: time waited, or the share."""
        return self.share if self.waited is None else self.waited

    @property
    def certain(self) -> bool:
        """Return whether the share differs from the base's for more than chance."""
        return self.q is not None and self.q <= CERTAIN


@dataclass(frozen=True, slots=True)
class ProfileColumn:
    """One variant. run_id: its first boot. samples, waits, lost: of all counted boots. idle: the fraction left out.

    doubt: why no share of it can differ significantly from the base's, or nothing; always nothing for the base.
    """

    variant_id: int
    variant: str
    role: str
    boots: tuple[ProfiledBoot, ...]
    left_out: tuple[ProfiledBoot, ...]
    idle: float
    doubt: str

    @property
    def base(self) -> bool:
        """Return whether the other columns are compared with this one."""
        return self.role == Role.BASE

    @property
    def run_id(self) -> int:
        """The first boot."""
        return self.boots[0].run_id

    @property
    def samples(self) -> int:
        """Return the sum of all samples, idle ones too."""
        return sum(boot.samples for boot in self.boots)

    @property
    def waits(self) -> int:
        """Return how often anything waited, where samples are nanoseconds."""
        return sum(boot.waits for boot in self.boots)

    @property
    def lost(self) -> int:
        """Samples that the kernels dropped."""
        return sum(boot.lost for boot in self.boots)


@dataclass(frozen=True, slots=True)
class SymbolRow:
    """One symbol over all columns, in their order: in itself (own), and in it or in what it calls (total).

    raw: the compiler's names of it, where they differ. line: where its code begins ("fs/namei.c:2251"), if that is known.
    """

    symbol: str
    raw: tuple[str, ...]
    own: tuple[ShareCell, ...]
    total: tuple[ShareCell, ...]
    line: str = ""


@dataclass(frozen=True, slots=True)
class CallerRow:
    """One caller, or callee, over all columns."""

    caller: str
    cells: tuple[ShareCell, ...]


@dataclass(frozen=True, slots=True)
class CallerSplit:
    """The share of some symbols, in total and by caller; the rows add up to the total."""

    symbols: tuple[str, ...]
    total: tuple[ShareCell, ...]
    rows: tuple[CallerRow, ...]


@dataclass(frozen=True, slots=True)
class ProfilePage:
    """Profiles of one case, all variants side by side.

    asked: the symbols split by caller. splits: of all of them together, then of each; empty where no sample holds one.
    costs: of each kind of profiles that the case has. changes: of an exact profile, what each candidate changed. claims: the
    functions in each candidate's diffs beside what was measured in them.
    """

    experiment_id: int
    name: str
    kind: str
    costs: tuple[ProfilingCost, ...]
    case: CaseView
    cases: tuple[CaseView, ...]
    asked: tuple[str, ...]
    columns: tuple[ProfileColumn, ...]
    symbols: tuple[SymbolRow, ...]
    splits: tuple[CallerSplit, ...]
    changes: tuple[ExactChange, ...] = ()
    claims: tuple[VariantClaims, ...] = ()

    @property
    def unit(self) -> Unit:
        """The unit of what is compared, if not shares of samples."""
        return unit_of(self.kind)

    @property
    def waits(self) -> bool:
        """Return whether it is about waiting."""
        return is_waited(self.unit)

    @property
    def sampled(self) -> bool:
        """Return whether it is about samples of running CPUs."""
        return self.kind == CPU


@dataclass(frozen=True, slots=True)
class Neighbours:
    """One symbol's callers and callees; `(itself)` among the callees is what it spends in itself. line: as SymbolRow has it."""

    symbol: str
    raw: tuple[str, ...]
    variants: tuple[str, ...]
    total: tuple[ShareCell, ...]
    callers: tuple[CallerRow, ...]
    callees: tuple[CallerRow, ...]
    line: str = ""
