# SPDX-License-Identifier: GPL-2.0-or-later
"""The list of experiments: searched, filtered, sorted, a page at a time, in a fixed number of queries."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Exists, F, OuterRef, Q, QuerySet

from lab.experiments.counts import ExperimentCounts, count_experiments
from lab.experiments.priority import PRIORITIES
from lab.models import Case, Comparison, Experiment, Switch, Target, Tree, User
from lab.models.bounded import AHEAD, MOST_COUNTED, bounded_count, distinct_values
from lab.models.states import ExperimentState, Role
from lab.statistics.verdict_words import VERDICTS

PAGE_SIZE = 50
MOST_WORDS = 8
# The orders of the list, with their columns; a minus in front reverses an order.
ORDERS = {
    "created_at": ("pk",),
    "name": ("name", "pk"),
    "state": ("state", "pk"),
    "tree": ("tree__name", "pk"),
    "submitter": ("submitter__username", "pk"),
    "finished_at": ("finished_at", "pk"),
}
NEWEST = "-created_at"


@dataclass(frozen=True, slots=True)
class ExperimentFilter:
    """A filter of the list; "" and None do not narrow it. ordering: one of ORDERS, a minus before it or not."""

    search: str = ""
    state: str = ""
    tree: str = ""
    verdict: str = ""
    target: str = ""
    workload: str = ""
    submitter: str = ""
    priority: str = ""
    digest: str = ""
    created_after: datetime | None = None
    created_before: datetime | None = None
    ordering: str = NEWEST


@dataclass(frozen=True, slots=True)
class ExperimentLine:
    """One row of the list, with the names of its switches."""

    row: Experiment
    counts: ExperimentCounts
    switches: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ListPage:
    """One page: its lines, its number from 1, the numbers of matching pages and experiments; more: there are uncounted ones."""

    lines: tuple[ExperimentLine, ...]
    page: int
    pages: int
    total: int
    more: bool = False


@dataclass(frozen=True, slots=True)
class FilterChoices:
    """The existing values to filter the list by."""

    states: tuple[str, ...]
    trees: tuple[str, ...]
    verdicts: tuple[str, ...]
    targets: tuple[str, ...]
    workloads: tuple[str, ...]
    submitters: tuple[str, ...]
    priorities: tuple[str, ...]


def experiments_found(asked: ExperimentFilter) -> QuerySet[Experiment]:
    """Return the experiments that fit, in the order asked for."""
    rows = Experiment.objects.filter(_equal(asked))
    for word in asked.search.split()[:MOST_WORDS]:
        rows = rows.filter(_holds(word))
    if asked.verdict:
        judged = Comparison.objects.filter(
            experiment=OuterRef("pk"), primary=True, variant__role=Role.CANDIDATE, verdict=asked.verdict
        )
        rows = rows.filter(Exists(judged))
    if asked.workload:
        rows = rows.filter(Exists(Case.objects.filter(experiment=OuterRef("pk"), workload=asked.workload)))
    down = asked.ordering.startswith("-")
    columns = ORDERS.get(asked.ordering.removeprefix("-"), ORDERS["created_at"])
    if columns == ("pk",):
        return rows.order_by("-pk" if down else "pk")
    if not down:
        return rows.order_by(*(F(column).asc(nulls_last=True) for column in columns))
    # In the order of an index read backwards: open experiments come first, those without a submitter last.
    side = {"nulls_last": True} if columns == ORDERS["submitter"] else {"nulls_first": True}
    return rows.order_by(*(F(column).desc(**side) for column in columns))


def list_page(asked: ExperimentFilter, page: int = 1, *, size: int = PAGE_SIZE) -> ListPage:
    """Return one page of what fits; a number beyond the last page means the last."""
    rows = experiments_found(asked)
    # Searches in other tables are counted only some pages ahead of the shown one.
    searching = asked.search or asked.verdict or asked.workload
    most = min(MOST_COUNTED, (max(1, page) + AHEAD) * size) if searching else MOST_COUNTED
    total = bounded_count(rows, most)
    more, total = total > most, min(total, most)
    pages = max(1, -(-total // size))
    page = min(max(1, page), pages)
    return ListPage(lines(rows[(page - 1) * size : page * size]), page, pages, total, more)


def lines(rows: QuerySet[Experiment]) -> tuple[ExperimentLine, ...]:
    """Return rows as the list shows them, in six queries."""
    experiments = list(rows.select_related("tree", "target", "submitter").defer("spec"))
    ids = [row.pk for row in experiments]
    counted = count_experiments(ids)
    switches: dict[int, list[str]] = {experiment: [] for experiment in ids}
    for experiment, name in Switch.objects.filter(experiment__in=ids).values_list("experiment_id", "name"):
        switches[experiment].append(name)
    return tuple(ExperimentLine(row, counted[row.pk], tuple(switches[row.pk])) for row in experiments)


def filter_choices() -> FilterChoices:
    """Return the existing values to choose from, in five queries."""
    used = User.objects.filter(pk__in=distinct_values(Experiment, "submitter_id"))
    groups = [name for name in distinct_values(Experiment, "group") if name]
    return FilterChoices(
        states=tuple(ExperimentState.values),
        trees=_names(Tree.objects.order_by("name"), "name"),
        verdicts=tuple(VERDICTS),
        targets=(*_names(Target.objects.order_by("name"), "name"), *groups),
        workloads=tuple(distinct_values(Case, "workload")),
        submitters=_names(used.order_by("username"), "username"),
        priorities=tuple(PRIORITIES),
    )


def _names(rows: QuerySet[Tree] | QuerySet[Target] | QuerySet[User], column: str) -> tuple[str, ...]:
    names: Sequence[str] = list(rows.values_list(column, flat=True))
    return tuple(names)


def _equal(asked: ExperimentFilter) -> Q:
    columns = {
        "state": "state",
        "tree": "tree__name",
        "submitter": "submitter__username",
        "digest": "digest",
    }
    wanted: dict[str, Any] = {
        column: getattr(asked, name) for name, column in columns.items() if getattr(asked, name)
    }
    if asked.priority:
        wanted["priority"] = PRIORITIES[asked.priority]
    if asked.created_after:
        wanted["created_at__gte"] = asked.created_after
    if asked.created_before:
        wanted["created_at__lt"] = asked.created_before
    # No target has the name of a group.
    place = Q()
    if asked.target:
        targets = Target.objects.filter(name=asked.target).values_list("pk", flat=True)
        place = Q(group=asked.target) | Q(target__in=list(targets))
    return Q(**wanted) & place


def _holds(word: str) -> Q:
    """Match a word in the experiment's name or number, its base, who submitted it, a switch's title or author."""
    number = word.removeprefix("#")
    own = Q(name__icontains=word) | Q(submitter__username__icontains=word) | Q(base_name__icontains=word)
    if len(word) >= 4:
        own |= Q(base_commit__startswith=word.lower())
    if number.isascii() and number.isdecimal() and len(number) < 19:
        own |= Q(pk=int(number))
    switches = Switch.objects.filter(experiment=OuterRef("pk")).filter(
        Q(title__icontains=word) | Q(author__icontains=word) | Q(name__icontains=word)
    )
    return own | Q(Exists(switches))
