# SPDX-License-Identifier: GPL-2.0-or-later
"""All limits on sizes: those of the lab, and those of the pages and the API themselves."""

from django.conf import settings

from lab.operations.limit_table import Limit, lab_limits, rows_of
from web import forms, logs, slowclients
from web.api import bodies, filters
from web.api import logs as api_logs

_TABLE = {
    "Requests": (
        (slowclients, "HEAD_BYTES", "request_head_bytes", "bytes", "the head of a request"),
        (slowclients, "BODY_BYTES", "request_body_bytes", "bytes", "the body of a request"),
        (slowclients, "CONNECTIONS", "connections", "connections", "to one web process at once"),
        (slowclients, "HELD_BYTES", "requests_held_bytes", "bytes", "of all incomplete requests"),
        (settings, "DATA_UPLOAD_MAX_MEMORY_SIZE", "form_bytes", "bytes", "of a form without its files"),
        (settings, "DATA_UPLOAD_MAX_NUMBER_FIELDS", "form_fields", "fields", "of a form"),
        (settings, "DATA_UPLOAD_MAX_NUMBER_FILES", "form_files", "files", "of a form"),
        (forms, "LONGEST_VALUE", "form_value", "characters", "of one short field of a form"),
        (bodies, "LONGEST_NAME", "field_name", "characters", "of a field's name in a body"),
        (filters, "LONGEST", "filter_value", "characters", "of one filter in an address"),
        (filters, "MOST_WORDS", "search_words", "words", "of a search"),
    ),
    "Answers": (
        (api_logs, "MOST_BYTES", "log_part_bytes", "bytes", "of a log in one answer of the API"),
        (logs, "WHOLE_BYTES", "log_page_bytes", "bytes", "of a log that a page shows whole"),
    ),
}  # fmt: skip


def all_limits() -> list[Limit]:
    """Return every limit, in the order of the page."""
    return [*lab_limits(), *rows_of(_TABLE)]
