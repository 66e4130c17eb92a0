# SPDX-License-Identifier: GPL-2.0-or-later
"""People's text on a page: plain, but with clickable links."""

import re

from django import template
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from lab.notes.pages import author_name
from lab.people.permissions import may_change

register = template.Library()
register.filter("author_name", author_name)
register.filter("may_change", may_change)

# Only http and https; a full stop or bracket that ends a sentence is not part of the link.
_LINK = re.compile(r"(https?://[^\s<>\"'`\\]+[^\s<>\"'`\\.,;:!?)\]}])")


@register.filter
def linked(text: str) -> SafeString:
    """Escape a text and turn its http:// and https:// addresses into links that send the other site no referrer."""
    # Every second part is a link.
    parts = enumerate(_LINK.split(text))
    return format_html_join("", "{}", ((_link(part) if place % 2 else part,) for place, part in parts))


def _link(address: str) -> SafeString:
    return format_html(
        '<a class="break" href="{}" rel="noreferrer noopener nofollow ugc">{}</a>', address, address
    )
