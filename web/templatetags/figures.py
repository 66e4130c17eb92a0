# SPDX-License-Identifier: GPL-2.0-or-later
"""Numbers in templates, as web/words.py writes them."""

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any
from urllib.parse import urlsplit

from django import template
from django.utils import timezone

from web import words

register = template.Library()

register.filter("change", words.change)
register.filter("duration", words.duration)
register.filter("number", words.number)
register.filter("prose", words.prose)
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


@register.filter
def at_least_now(moment: datetime) -> datetime:
    """Return a moment in the future as it is; for one in the past, return now."""
    return max(moment, timezone.now())


@register.filter
def indented(value: Any) -> str:
    """Return data as JSON for people."""
    return json.dumps(value, indent=2)
