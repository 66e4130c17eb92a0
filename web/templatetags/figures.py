# SPDX-License-Identifier: GPL-2.0-or-later
"""Numbers in templates, as web/words.py writes them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from django import template

from web import words

register = template.Library()

register.filter("change", words.change)
register.filter("duration", words.duration)
register.filter("number", words.number)
register.filter("quantity", words.quantity)
register.filter("settings", words.settings)


@register.filter
def interval(estimate: Any) -> str:
    """Return the ends of a change, such as "+1.0 % to +3.2 %", "" without them; estimate: a row or a mapping."""
    if not isinstance(estimate, Mapping):
        return words.interval(estimate.low, estimate.high)
    return words.interval(estimate["low"], estimate["high"])


@register.filter
def host(address: str) -> str:
    """Return the host of an address, with its port."""
    return urlsplit(address).netloc
