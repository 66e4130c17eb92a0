# SPDX-License-Identifier: GPL-2.0-or-later
"""Read regressions across experiments, and the decisions about them."""

from dataclasses import dataclass
from typing import Any

from django.core.paginator import Page
from django.db.models import Exists, F, OuterRef, Q, QuerySet, Subquery, Value
from django.db.models.functions import Coalesce

from lab.comparisons.triage import Regression
from lab.errors import UnknownRow
from lab.models import BisectionStep, Case, Comparison, Experiment, Target, Tree, Triage
from lab.models.bounded import distinct_values, leaf
from lab.models.states import Role
from lab.statistics.verdict_words import words_of

# Regressions in other states need no more attention.
OPEN = (Triage.State.NEW, Triage.State.ACKNOWLEDGED)
# The values of a filter by state: one state, or a word for several.
STATES = ("open", *Triage.State.values, "all")
PAGE_SIZE = 50


@dataclass(frozen=True, slots=True)
class RegressionFilter:
    """A filter of regressions: state is one of STATES; empty text filters nothing; primary: only primary metrics."""

    state: str = "open"
    tree: str = ""
    workload: str = ""
    target: str = ""
    search: str = ""
    primary: bool = True


@dataclass(frozen=True, slots=True)
class RegressionChoices:
    """The values that the filters offer."""

    states: tuple[str, ...]
    trees: tuple[str, ...]
    workloads: tuple[str, ...]
    targets: tuple[str, ...]


def regression_rows(chosen: RegressionFilter) -> QuerySet[Any]:
    """Return the stored comparisons that are regressions, the newest experiment's first.

    Each row carries its newest decision as `triaged` (the state), `fixed_by` and `decided_by`.
    Bisections are left out: they boot kernels that are known to be slower.
    """
    searched = BisectionStep.objects.filter(experiment=OuterRef("experiment"))
    rows = (
        Comparison.objects.filter(verdict__in=words_of("regression"), variant__role=Role.CANDIDATE)
        .filter(~Exists(searched))
        .annotate(
            triaged=F("triage"),
            fixed_by=_newest("fixed_by"),
            decided_by=_newest("author__username"),
        )
        .select_related("experiment__tree", "experiment__target", "case", "variant")
        .defer("experiment__spec", "case__params", "case__metrics", "notes")
    )
    named = {
        "experiment__tree__name": chosen.tree,
        "case__workload": chosen.workload,
        "experiment__target__name": chosen.target,
    }
    rows = rows.filter(**{field: value for field, value in named.items() if value})
    if chosen.primary:
        rows = rows.filter(primary=True)
    if chosen.search:
        text = chosen.search
        condition = Q(experiment__name__icontains=text) | Q(variant__name__icontains=text)
        rows = rows.filter(condition | Q(metric__icontains=text))
    if chosen.state != "all":
        rows = rows.filter(triage__in=OPEN if chosen.state == "open" else (chosen.state,))
    return rows.order_by("-experiment_id", "case__position", "variant__position", "-primary", "metric")


def regression_page(chosen: RegressionFilter, number: int) -> Page[Any]:
    """Return one page of `regression_rows`; a number beyond the last gives the last page."""
    return leaf(regression_rows(chosen), PAGE_SIZE, number)


def regression_choices() -> RegressionChoices:
    """Return the values to filter by: all trees, and the workloads and targets that experiments used."""
    return RegressionChoices(
        states=STATES,
        trees=tuple(Tree.objects.order_by("name").values_list("name", flat=True)),
        workloads=tuple(distinct_values(Case, "workload")),
        targets=tuple(
            Target.objects.filter(pk__in=distinct_values(Experiment, "target_id"))
            .order_by("name")
            .values_list("name", flat=True)
        ),
    )


def triage_states(experiment_id: int) -> dict[int, str]:
    """Return by comparison the state of each regression of an experiment."""
    rows = regression_rows(RegressionFilter(state="all", primary=False)).filter(experiment=experiment_id)
    return dict(rows.values_list("pk", "triaged"))


def decisions(on: Regression) -> list[Triage]:
    """Return all decisions about a regression, the newest first."""
    rows = Triage.objects.filter(case=on.case_id, variant=on.variant_id, metric=on.metric)
    return list(rows.select_related("author").order_by("-pk"))


def comparison_of(on: Regression) -> tuple[int, int]:
    """Return the ids of a regression's experiment and present comparison. Raises UnknownRow."""
    comparisons = Comparison.objects.filter(case=on.case_id, variant=on.variant_id, metric=on.metric)
    row = comparisons.values_list("experiment", "pk").first()
    if row is None:
        raise UnknownRow(
            f"there is no comparison of {on.metric} for case {on.case_id}, variant {on.variant_id}"
        )
    return row


def _newest(field: str) -> Coalesce:
    own = Triage.objects.filter(case=OuterRef("case"), variant=OuterRef("variant"), metric=OuterRef("metric"))
    return Coalesce(Subquery(own.order_by("-pk").values(field)[:1]), Value(""))
