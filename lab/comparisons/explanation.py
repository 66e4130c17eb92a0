# SPDX-License-Identifier: GPL-2.0-or-later
"""All that bears on one verdict: gates, other metrics, symbols, locks and counters that moved, the switches and the
configs' difference."""

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from lab.comparisons.page import cell_data, invalid_data
from lab.comparisons.shape import CellData, InvalidData
from lab.errors import one_row
from lab.experiments.environment import stored_artifact
from lab.experiments.shown_description import case_title
from lab.models import Comparison, Profile, Run, Switch, Variant
from lab.models.states import Purpose, Role
from lab.profiles.case_profiles import CaseProfiles, case_profiles
from lab.profiles.claims import VariantClaims
from lab.profiles.counters import CounterCell, CounterPage, Unavailable, change_of, counter_page
from lab.profiles.exact import ExactChange, exact_changes
from lab.profiles.page import variant_doubt
from lab.profiles.shape import ShareCell
from lab.profiles.symbol_table import symbol_table
from lab.statistics.verdict_words import CHANGES
from workloads.instruction_clock import UNIT

CPU: str = Profile.Kind.CPU.value
LOCK: str = Profile.Kind.LOCK.value
WAITING: str = Profile.Kind.WAITING.value
_MOST_SYMBOLS = 15


@dataclass(frozen=True, slots=True)
class MovedMetric:
    """Another metric of the same variant and case that was called; id addresses its own explanation."""

    id: int
    metric: str
    cell: CellData


@dataclass(frozen=True, slots=True)
class MovedSymbol:
    """A symbol whose share, or time waited, certainly moved: in itself and with what it calls, base first."""

    symbol: str
    own: tuple[ShareCell, ShareCell]
    total: tuple[ShareCell, ShareCell]


@dataclass(frozen=True, slots=True)
class MovedSymbols:
    """The evidence of profiles. doubt: why nothing can be significant, or ""; profiled: whether both sides have profiles.

    claims: the functions in the variant's diffs; None if they name none.
    """

    profiled: bool
    doubt: str
    rows: tuple[MovedSymbol, ...]
    claims: VariantClaims | None = None


@dataclass(frozen=True, slots=True)
class MovedCounter:
    """A counter that certainly moved, per timed iteration: the base's, and the variant's with its change."""

    source: str
    name: str
    base: CounterCell
    variant: CounterCell


@dataclass(frozen=True, slots=True)
class MovedCounters:
    """Counters, as in MovedSymbols. unavailable: missing data."""

    profiled: bool
    doubt: str
    rows: tuple[MovedCounter, ...]
    unavailable: tuple[Unavailable, ...]


@dataclass(frozen=True, slots=True)
class ConfigChange:
    """One symbol of the configuration; an empty value means that it does not exist there."""

    symbol: str
    base: str
    variant: str


@dataclass(frozen=True, slots=True)
class BootCount:
    """The number of a side's measured boots that count, and the requested number."""

    variant: str
    counted: int
    asked: int


@dataclass(frozen=True, slots=True)
class Explanation:
    """One verdict with all that bears on it. name: of the experiment. case: its title. why_no_configs: why the configs are not compared, or nothing."""

    row: Comparison
    name: str
    case: str
    base: str
    cell: CellData
    boots: tuple[BootCount, ...]
    invalid: tuple[InvalidData, ...]
    metrics: tuple[MovedMetric, ...]
    symbols: MovedSymbols
    locks: MovedSymbols
    waiting: MovedSymbols
    counters: MovedCounters
    exact: tuple[ExactChange, ...]
    switches: tuple[Switch, ...]
    configs: tuple[ConfigChange, ...]
    why_no_configs: str


def explanation(experiment_id: int, comparison_id: int, *, root: Path) -> Explanation:
    """Return one verdict explained. root: the state root, where artifacts are. Raises UnknownRow."""
    rows = Comparison.objects.select_related("experiment", "case", "variant__build")
    row = one_row(
        rows.filter(pk=comparison_id, experiment__pk=experiment_id),
        f"comparison {comparison_id} of experiment {experiment_id}",
    )
    bases = row.experiment.variants.select_related("build").filter(role=Role.BASE)
    base = one_row(bases, f"base of experiment {experiment_id}")
    configs, why = _configs(base, row.variant, root)
    measured = Run.objects.filter(
        case=row.case, purpose=Purpose.MEASURED, variant__in=(base, row.variant)
    ).select_related("variant")

    def moved(kind: str) -> MovedSymbols:
        return _symbols(case_profiles(experiment_id, row.case_id, kind=kind), base, row.variant)

    return Explanation(
        row=row,
        name=row.experiment.name,
        case=case_title(row.case),
        base=base.name,
        cell=cell_data(row),
        boots=tuple(_boots(variant, list(measured)) for variant in (base, row.variant)),
        invalid=tuple(invalid_data(run) for run in measured if run.invalid),
        metrics=_metrics(row),
        symbols=moved(CPU),
        locks=moved(LOCK),
        waiting=moved(WAITING),
        counters=_counters(counter_page(experiment_id, row.case_id), base, row.variant),
        exact=exact_changes(row.case_id, variant=row.variant.name) if row.unit == UNIT else (),
        switches=tuple(
            switch for switch in row.experiment.switches.all() if switch.name in row.variant.switches
        ),
        configs=configs,
        why_no_configs=why,
    )


def _boots(variant: Variant, measured: list[Run]) -> BootCount:
    own = [run for run in measured if run.variant_id == variant.pk]
    counted = [run for run in own if run.state == "done" and not run.invalid]
    return BootCount(variant.name, len(counted), len({run.block for run in own}))


def _metrics(row: Comparison) -> tuple[MovedMetric, ...]:
    others = Comparison.objects.filter(case=row.case, variant=row.variant, verdict__in=CHANGES)
    return tuple(
        MovedMetric(comparison.pk, comparison.metric, cell_data(comparison))
        for comparison in others.exclude(pk=row.pk).select_related("variant").order_by("-primary", "metric")
    )


def _symbols(profiles: CaseProfiles, base: Variant, variant: Variant) -> MovedSymbols:
    places = {profiled.id: place for place, profiled in enumerate(profiles.variants)}
    if base.pk not in places or variant.pk not in places:
        return MovedSymbols(False, "", ())
    ours, theirs = places[variant.pk], places[base.pk]
    table = symbol_table(profiles)
    moved = [
        MovedSymbol(row.symbol, (row.own[theirs], row.own[ours]), (row.total[theirs], row.total[ours]))
        for row in table.rows(table.moved(ours))
    ]
    moved.sort(
        key=lambda symbol: -max(abs(pair[1].size - pair[0].size) for pair in (symbol.own, symbol.total))
    )
    return MovedSymbols(True, variant_doubt(profiles, ours), tuple(moved[:_MOST_SYMBOLS]), table.claims(ours))


def _counters(page: CounterPage, base: Variant, variant: Variant) -> MovedCounters:
    places = {column.variant_id: place for place, column in enumerate(page.columns)}
    if base.pk not in places or variant.pk not in places:
        return MovedCounters(False, "", (), page.unavailable)
    moved = [
        MovedCounter(row.source, row.name, row.cells[places[base.pk]], row.cells[places[variant.pk]])
        for row in page.rows
        if row.cells[places[variant.pk]].certain
    ]
    moved.sort(key=lambda counter: -change_of(counter.variant))
    return MovedCounters(True, page.doubt, tuple(moved[:_MOST_SYMBOLS]), page.unavailable)


def _configs(base: Variant, variant: Variant, root: Path) -> tuple[tuple[ConfigChange, ...], str]:
    """Return the differences of the resolved configurations, or why they are unknown."""
    read = []
    for side in (base, variant):
        if side.build is None or not side.build.artifact_key:
            return (), f"{side.name} has no kernel"
        kernel = stored_artifact(side.build, root)
        try:
            read.append(_options(kernel.config if kernel else Path("/nonexistent")))
        except OSError:
            return (), _gone(side.name, side.build.expired_at)
    ours, theirs = read[1], read[0]
    return (
        tuple(
            ConfigChange(name, theirs.get(name, ""), ours.get(name, ""))
            for name in sorted({*ours, *theirs})
            if ours.get(name, "") != theirs.get(name, "")
        ),
        "",
    )


def _gone(name: str, removed_at: datetime | None) -> str:
    if removed_at is not None:
        return f"the kernel of {name} was removed on {removed_at:%Y-%m-%d} by the retention policy"
    return f"the kernel of {name} is no longer in the store"


def _options(path: Path) -> dict[str, str]:
    """Return the symbols that a .config sets; a symbol that is off counts as missing."""
    options = {}
    for line in path.read_text(errors="replace").splitlines():
        name, separator, value = line.partition("=")
        if separator and name.startswith("CONFIG_"):
            options[name.removeprefix("CONFIG_")] = value
    return options
