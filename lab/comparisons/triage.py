# SPDX-License-Identifier: GPL-2.0-or-later
"""Decisions about a regression: new, acknowledged, expected, or fixed by a commit. All decisions are stored."""

import re
from collections.abc import Iterable
from dataclasses import asdict, dataclass

from django.db import transaction

from lab.errors import FieldRefused, Outdated, UnknownRow
from lab.harmful_characters import check_field
from lab.models import Case, Comparison, Triage, User
from lab.models.states import Role
from lab.people.permissions import check_may
from lab.statistics.verdict_words import kind_of

# A commit as people write it, such as 1da177e4c3f4 ("mm: a subject"), or a link.
_FIXED_BY = re.compile(r"([0-9a-f]{7,64}\b|https?://\S+$)")
LONGEST = 2_000


@dataclass(frozen=True, slots=True)
class Regression:
    """The subject of a decision: a metric of a variant under a case. It stays when comparisons get new ids."""

    case_id: int
    variant_id: int
    metric: str


@dataclass(frozen=True, slots=True)
class Decision:
    """A person's decision; fixed_by: a commit or a link, only for fixed regressions."""

    state: str
    reason: str = ""
    fixed_by: str = ""


def decide(*, by: User, on: Regression, decision: Decision, seen: int | None) -> Triage:
    """Store a decision; earlier ones are kept. seen: the newest one that the person had seen, None if none.

    Raises NotAllowed, UnknownRow where no regression was called, Outdated where somebody has decided since,
    FieldRefused for "state", "fixed_by" and "reason".
    """
    check_may(by, "submit", "triage")
    kept = _checked(decision)
    with transaction.atomic():
        # Decisions on one case queue up at its row; SQLite has one writer anyway.
        Case.objects.select_for_update().filter(pk=on.case_id).first()
        newest = newest_decision(on)
        if newest is None:
            _must_be_one(on)
        if (newest.pk if newest else None) != seen:
            raise Outdated(_outdated(newest))
        Comparison.objects.filter(**asdict(on)).update(triage=kept.state)
        return Triage.objects.create(**asdict(on), **asdict(kept), author=by)


def newest_decision(on: Regression) -> Triage | None:
    """Return the decision that counts, None while the regression is new."""
    return Triage.objects.filter(**asdict(on)).select_related("author").order_by("-pk").first()


def note_decisions(experiment_id: int, comparisons: Iterable[Comparison]) -> None:
    """Write the newest decisions into comparisons of an experiment that are about to be stored."""
    rows = Triage.objects.filter(case__experiment=experiment_id).order_by("pk")
    decided = {(row.case_id, row.variant_id, row.metric): row.state for row in rows}
    for row in comparisons:
        row.triage = decided.get((row.case_id, row.variant_id, row.metric), Triage.State.NEW)


def _must_be_one(on: Regression) -> None:
    row = Comparison.objects.filter(**asdict(on), variant__role=Role.CANDIDATE).first()
    if row is None:
        raise UnknownRow(
            f"there is no comparison of {on.metric} for case {on.case_id}, variant {on.variant_id}"
        )
    if kind_of(row.verdict) != "regression":
        raise UnknownRow(f"there is no regression of {on.metric} here: its verdict is {row.verdict}")


def _checked(decision: Decision) -> Decision:
    if decision.state not in Triage.State.values:
        valid = ", ".join(Triage.State.values)
        raise FieldRefused("state", f'there is no state "{decision.state[:40]}"; valid: {valid}')
    reason, fixed_by = (text.replace("\0", "").strip() for text in (decision.reason, decision.fixed_by))
    if len(reason) > LONGEST:
        raise FieldRefused("reason", f"a reason has at most {LONGEST:,} characters, this one {len(reason):,}")
    check_field(reason, "reason", lines=True)
    check_field(fixed_by, "fixed_by")
    if decision.state != Triage.State.FIXED:
        return Decision(decision.state, reason)
    if not _FIXED_BY.match(fixed_by) or len(fixed_by) > 500:
        raise FieldRefused(
            "fixed_by", "name the commit that fixes it by 7 hex digits or more, or give a link"
        )
    return Decision(decision.state, reason, fixed_by)


def _outdated(newest: Triage | None) -> str:
    if newest is None:
        return "the decision shown on the page is gone: reload the page"
    who = newest.author.username if newest.author else "somebody"
    return f"{who} has set it to {newest.state} in the meantime: reload the page before deciding"
