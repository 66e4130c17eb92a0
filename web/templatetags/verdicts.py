# SPDX-License-Identifier: GPL-2.0-or-later
"""The colour and the symbol of a word on a page, from the table of verdicts."""

from django import template

from lab.statistics.verdict_words import VERDICTS

register = template.Library()


@register.filter
def tone(word: str) -> str:
    """Return the CSS class of a verdict; of any other word, the word."""
    return VERDICTS[word].tone if word in VERDICTS else word


@register.filter
def symbol(word: str) -> str:
    """Return the shape in web/shape.html of a verdict; of any other word, the word."""
    return VERDICTS[word].symbol if word in VERDICTS else word
