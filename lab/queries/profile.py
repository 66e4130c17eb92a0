# SPDX-License-Identifier: GPL-2.0-or-later
"""Reads for the profile page: flame graphs, symbols side by side, and who called them."""

import zlib
from dataclasses import dataclass

from lab.analysis.flame import (
    CallerSplit,
    FlameNode,
    Stack,
    SymbolShare,
    caller_shares,
    flame_tree,
    normalise_stacks,
    read_folded,
    symbol_shares,
    without_idle,
)
from lab.errors import UnknownRow
from lab.models import Case, Profile
from lab.queries.description import CaseView, case_view
from lab.queries.experiments import get_experiment
from lab.states import Role
from workloads.catalog import load_catalog

# Frames thinner than this share cannot be seen, and a page of them cannot be sent.
LEAST = 0.0005
NOTHING = SymbolShare("", 0.0, 0.0)


@dataclass(frozen=True, slots=True)
class ProfileColumn:
    """One variant's profile; `callers` splits the share of the page's symbols by caller.

    samples: all of them. idle: the fraction of them in which a CPU idled; all shares leave it out.
    """

    variant_id: int
    variant: str
    base: bool
    run_id: int
    samples: int
    lost: int
    idle: float
    flame: FlameNode
    callers: CallerSplit


@dataclass(frozen=True, slots=True)
class SymbolRow:
    """One symbol over all columns, in their order; absent symbols have shares of zero."""

    symbol: str
    shares: tuple[SymbolShare, ...]


@dataclass(frozen=True, slots=True)
class CallerRow:
    """One caller of the asked-for symbols over all columns; shares are of all samples."""

    caller: str
    shares: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class ProfilePage:
    """Profiles of one case, all variants side by side; `asked` are the symbols split by caller."""

    experiment_id: int
    name: str
    case: CaseView
    cases: tuple[CaseView, ...]
    asked: tuple[str, ...]
    columns: tuple[ProfileColumn, ...]
    symbols: tuple[SymbolRow, ...]
    callers: tuple[CallerRow, ...]


def profile_page(
    experiment_id: int, case_id: int, *, asked: tuple[str, ...] = (), rows: int = 60
) -> ProfilePage:
    """Return the profiles of one case, at most `rows` symbols of them. Raises UnknownRow.

    asked: symbols whose share is split by caller; those the workload says to watch if none.
    """
    experiment = get_experiment(experiment_id)
    case = Case.objects.filter(pk=case_id, experiment=experiment).first()
    if case is None:
        raise UnknownRow(f"experiment {experiment_id} has no case {case_id}")
    asked = asked or _watched(case)
    found = (
        Profile.objects.filter(run__case=case, run__state="done")
        .select_related("run__variant")
        .order_by("run__variant__position", "run__position")
    )
    # One column a variant: the first of its profiled boots.
    profiles = {profile.run.variant_id: profile for profile in reversed(found)}
    ordered = sorted(profiles.values(), key=lambda profile: profile.run.variant.position)
    whole = [normalise_stacks(unpack_folded(profile)) for profile in ordered]
    stacks = [without_idle(folded) for folded in whole]
    idle = [1 - sum(s.values()) / max(1, sum(w.values())) for s, w in zip(stacks, whole, strict=True)]
    columns = tuple(
        _column(profile, folded, asked, share)
        for profile, folded, share in zip(ordered, stacks, idle, strict=True)
    )
    return ProfilePage(
        experiment_id=experiment.pk,
        name=experiment.name,
        case=case_view(case),
        cases=tuple(case_view(other) for other in experiment.cases.all()),
        asked=asked,
        columns=columns,
        symbols=_symbol_rows(stacks, rows),
        callers=_caller_rows(columns),
    )


def _watched(case: Case) -> tuple[str, ...]:
    workload = load_catalog().get(case.workload)
    return workload.watch if workload else ()


def unpack_folded(profile: Profile) -> dict[Stack, int]:
    """Return a stored profile's stacks."""
    return read_folded(zlib.decompress(bytes(profile.folded)).decode())


def _column(profile: Profile, folded: dict[Stack, int], asked: tuple[str, ...], idle: float) -> ProfileColumn:
    variant = profile.run.variant
    return ProfileColumn(
        variant_id=variant.pk,
        variant=variant.name,
        base=variant.role == Role.BASE,
        run_id=profile.run_id,
        samples=profile.samples,
        lost=profile.lost,
        idle=idle,
        flame=flame_tree(folded, least=LEAST),
        callers=caller_shares(folded, asked),
    )


def _symbol_rows(stacks: list[dict[Stack, int]], rows: int) -> tuple[SymbolRow, ...]:
    """Symbols by their greatest own share anywhere: what costs in any variant is on top."""
    shares = [symbol_shares(folded) for folded in stacks]
    names = {name for column in shares for name in column}

    def weight(name: str) -> tuple[float, str]:
        return -max(column.get(name, NOTHING).own for column in shares), name

    ranked = sorted(names, key=weight)[:rows]
    return tuple(
        SymbolRow(name, tuple(column.get(name, SymbolShare(name, 0.0, 0.0)) for column in shares))
        for name in ranked
    )


def _caller_rows(columns: tuple[ProfileColumn, ...]) -> tuple[CallerRow, ...]:
    shares = [{row.caller: row.share for row in column.callers.by_caller} for column in columns]
    names = sorted(
        {name for own in shares for name in own}, key=lambda n: (-max(s.get(n, 0.0) for s in shares), n)
    )
    return tuple(CallerRow(name, tuple(own.get(name, 0.0) for own in shares)) for name in names)
