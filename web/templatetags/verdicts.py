# SPDX-License-Identifier: GPL-2.0-or-later
"""The colour and the symbol of a word on a page, from the table of verdicts."""

from django import template

from lab.statistics.verdict_words import VERDICTS

register = template.Library()

# The drawings in web/shapes.html, and words that share one.
_DRAWN = {
    name: name
    for name in ("regression", "improvement", "unchanged", "inconclusive", "failed", "running", "cancelled")
} | {
    "done": "improvement",
    "built": "improvement",
    "ready": "improvement",
    "building": "running",
    "pruned": "cancelled",
}


@register.filter
def tone(word: str) -> str:
    """Return the CSS class of a verdict; any other word is returned as it is."""
    return VERDICTS[word].tone if word in VERDICTS else word


@register.filter
def symbol(word: str) -> str:
    """Return the shape of a verdict; any other word is returned as it is."""
    return VERDICTS[word].symbol if word in VERDICTS else word


@register.filter
def drawn(shape: str) -> str:
    """Return the name of a shape's drawing in web/shapes.html."""
    return _DRAWN.get(shape, "other")
