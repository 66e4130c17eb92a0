# SPDX-License-Identifier: GPL-2.0-or-later
"""Decide about steps of trends: accept, ignore, or open them again. All decisions are kept."""

import re
from collections.abc import Iterable, Mapping, Sequence

from django.db import transaction

from lab.errors import FieldRefused, NotAllowed, UnknownRow
from lab.harmful_characters import check_field
from lab.models import BasePoint, StepDecision, User
from lab.people.permissions import may
from lab.trends.step_groups import StepGroup

NOTE_LENGTH, BUG_LENGTH, AT_ONCE = 2_000, 500, 1_000
_PICK = re.compile(r"([0-9a-f]{12}(?:-[0-9a-f]{12})*):([0-9a-f]{7,64})")
_BUG = re.compile(r"https?://[^\s<>\"]+")


def decide_steps(*, by: User, picks: Sequence[str], state: str, note: str = "", bug: str = "") -> int:
    """Write one decision about every step that is picked; returns the number of steps.

    picks: as StepGroup.pick. Raises NotAllowed, UnknownRow, FieldRefused for "step", "state", "note" and "bug".
    """
    if not may(by, "submit"):
        raise NotAllowed(
            f"{by.username} is a {by.role}: only submitters and operators can decide about steps"
        )
    if state not in StepDecision.State.values:
        valid = ", ".join(StepDecision.State.values)
        raise FieldRefused("state", f'there is no state "{state[:40]}"; valid: {valid}')
    note, bug = _checked(note, bug)
    steps = _picked(picks)
    rows = [
        StepDecision(trend=trend, commit=commit, state=state, note=note, bug=bug, author=by)
        for trend, commit in steps
    ]
    with transaction.atomic():
        StepDecision.objects.bulk_create(rows)
    return len(rows)


def decisions_of(groups: Iterable[StepGroup]) -> Mapping[str, StepDecision]:
    """Return by pick the newest decision about the leading step of each group; none where nobody decided."""
    leads = {(group.lead.line.key, group.lead.step.bad.commit): group.pick for group in groups}
    rows = StepDecision.objects.filter(trend__in={trend for trend, _ in leads}).select_related("author")
    decisions: dict[str, StepDecision] = {}
    for row in rows.order_by("pk"):
        if pick := leads.get((row.trend, row.commit)):
            decisions[pick] = row
    return decisions


def _picked(picks: Sequence[str]) -> list[tuple[str, str]]:
    if not picks:
        raise FieldRefused("step", "choose at least one step")
    steps: dict[tuple[str, str], None] = {}
    for pick in picks:
        match = _PICK.fullmatch(pick[:10_000])
        if match is None:
            raise FieldRefused("step", "this is not a step; reload the page")
        steps |= {(trend, match[2]): None for trend in match[1].split("-")}
    if len(steps) > AT_ONCE:
        raise FieldRefused("step", f"choose at most {AT_ONCE:,} steps at once, not {len(steps):,}")
    known = set(
        BasePoint.objects.filter(
            trend__in={trend for trend, _ in steps}, commit__in={commit for _, commit in steps}
        ).values_list("trend", "commit")
    )
    if missing := next((step for step in steps if step not in known), None):
        raise UnknownRow(f"trend {missing[0]} has no revision {missing[1][:12]}")
    return list(steps)


def _checked(note: str, bug: str) -> tuple[str, str]:
    note, bug = (text.replace("\0", "").strip() for text in (note, bug))
    if len(note) > NOTE_LENGTH:
        raise FieldRefused("note", f"a note has at most {NOTE_LENGTH:,} characters, this one {len(note):,}")
    check_field(note, "note", lines=True)
    check_field(bug, "bug")
    if bug and (len(bug) > BUG_LENGTH or not _BUG.fullmatch(bug)):
        raise FieldRefused("bug", "give the address of the report, beginning with https://")
    return note, bug
