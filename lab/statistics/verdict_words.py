# SPDX-License-Identifier: GPL-2.0-or-later
"""The table of verdicts: each verdict's name and how pages, the terminal, exit codes and exports show it.

Add a verdict here, in the rule that gives it (lab/statistics/verdict.py), and in a migration for the new choice. Its kind
tells everything else how to treat it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

Kind = Literal["regression", "improvement", "unchanged", "inconclusive"]
Word = Kind


@dataclass(frozen=True, slots=True)
class VerdictWord:
    """One verdict. word: as stored, as the API has it and as pages show it; plural: for more than one.

    kind: the one of four that it is a case of; sentences, filters, triage and bisections ask for the kind.
    change: the direction of a change, empty without a change. exit_code: of labctl for a primary metric with this
    verdict. tone: the CSS class. symbol: the shape in web/shapes.html. style: on a terminal, as rich names it.
    """

    word: str
    plural: str
    change: Literal["worse", "better", ""]
    exit_code: Literal[0, 1, 2]
    tone: str
    symbol: str
    style: str
    kind: Kind

    @property
    def outcome(self) -> Literal["passed", "failed", "skipped"]:
        """Return the outcome of a test with this verdict: failed by exit code 1, skipped by 2."""
        return ("passed", "failed", "skipped")[self.exit_code]


@dataclass(frozen=True, slots=True)
class Control:
    """A variant that measures the lab. description: why it is there. warning: the verdict if it differs from the base."""

    description: str
    warning: str


# In the order of the choices that the database and the API know.
_ALL = (
    VerdictWord("regression", "regressions", "worse", 1, "regression", "regression", "red", "regression"),
    VerdictWord(
        "improvement", "improvements", "better", 0, "improvement", "improvement", "green", "improvement"
    ),
    VerdictWord("unchanged", "unchanged", "", 0, "unchanged", "unchanged", "", "unchanged"),
    VerdictWord(
        "inconclusive", "inconclusive", "", 2, "inconclusive", "inconclusive", "yellow", "inconclusive"
    ),
)
VERDICTS: Mapping[str, VerdictWord] = {verdict.word: verdict for verdict in _ALL}
"""All verdicts by word."""
CHOICES = tuple((verdict.word, verdict.word.capitalize()) for verdict in _ALL)
"""The choices of a field that holds a verdict."""
CHANGES = tuple(verdict.word for verdict in _ALL if verdict.change)
"""The verdicts that say something changed."""
CONTROLS: Mapping[str, Control] = {
    "a/a": Control("control: same kernel, rebooted", "control failed"),
    "placebo": Control("control: same source, other code layout", "layout matters"),
}
"""The variants that are not candidates, by role."""
DIRECTIONS: Mapping[str, str] = {"lower": "lower is better", "higher": "higher is better"}
"""The direction in which a metric is better, in words."""


def kind_of(word: str) -> Kind:
    """Return the kind of a stored verdict; one of a newer lab counts as inconclusive."""
    return VERDICTS[word].kind if word in VERDICTS else "inconclusive"


def words_of(kind: Kind) -> tuple[str, ...]:
    """Return the stored verdicts of a kind."""
    return tuple(verdict.word for verdict in VERDICTS.values() if verdict.kind == kind)


def shown_verdict(word: str, role: str = "") -> VerdictWord:
    """Return how to show the verdict of a variant of this role: a control that differs is a warning in either direction.

    A word that is not in the table, of a newer lab, is shown as it is.
    """
    verdict = VERDICTS.get(word) or replace(VERDICTS["inconclusive"], word=word, plural=word, style="")
    if verdict.change and role in CONTROLS:
        warning = CONTROLS[role].warning
        return replace(
            verdict, word=warning, plural=warning, tone="failed", symbol="failed", style="bold yellow"
        )
    return verdict


def counted_verdicts(counts: Mapping[str, int]) -> list[tuple[VerdictWord, str]]:
    """Return the verdicts that occur with their counts in words, such as "2 regressions": changes first, then doubts."""
    order = sorted(_ALL, key=lambda verdict: (not verdict.change, -verdict.exit_code))
    return [
        (verdict, f"{count:,} {verdict.word if count == 1 else verdict.plural}")
        for verdict in order
        if (count := counts.get(verdict.word, 0))
    ]
