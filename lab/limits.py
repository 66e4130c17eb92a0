# SPDX-License-Identifier: GPL-2.0-or-later
"""The limits of what people send, in one table: what refuses them, the pages and the API read them here."""

from __future__ import annotations

from dataclasses import dataclass

from lab import expand, spec, spec_size

MIB = 1 << 20

# Previews and submissions that a worker carries out.
FETCH_SLOTS = 4
FETCHES_RUNNING_EACH = 2
FETCHES_OPEN_EACH = 4
FETCHES_OPEN = 100
FETCH_DEADLINE_S = 1800
FETCH_SILENT_S = 120
FETCH_BYTES = 8 << 30
FETCH_MEMORY_BYTES = 4 << 30
FETCH_KEPT_H = 24
# Previews and submissions of local trees that one web process carries out at once; others go to a worker.
LOCAL_AT_ONCE = 2


@dataclass(frozen=True, slots=True)
class Limit:
    """One limit. name: as the API calls it; value: a whole number of `unit`; what: a line for people."""

    name: str
    value: int
    unit: str
    what: str


LIMITS = (
    Limit(
        "fetches_at_once", FETCH_SLOTS, "fetches", "previews and submissions that workers carry out at once"
    ),
    Limit("fetches_at_once_each", FETCHES_RUNNING_EACH, "fetches", "of these, at most for one person"),
    Limit("fetches_open_each", FETCHES_OPEN_EACH, "fetches", "waiting or carried out, for one person"),
    Limit("fetches_open", FETCHES_OPEN, "fetches", "waiting or carried out, for everybody together"),
    Limit("fetch_seconds", FETCH_DEADLINE_S, "seconds", "how long one fetch may take"),
    Limit("fetch_silent_seconds", FETCH_SILENT_S, "seconds", "how long the other host may send nothing"),
    Limit("fetch_bytes", FETCH_BYTES, "bytes", "what one fetch may receive"),
    Limit("description_bytes", spec_size.TOML_BYTES, "bytes", "a description as TOML, or a request's body"),
    Limit(
        "description_bare_bytes",
        spec_size.TOML_BARE_BYTES,
        "bytes",
        "a TOML file without its texts and comments",
    ),
    Limit("description_values", spec_size.VALUES, "values", "in one description"),
    Limit("description_depth", spec_size.DEPTH, "levels", "of nesting in a description"),
    Limit("description_fields", spec_size.FIELDS, "fields", "in one part of a description"),
    Limit("description_items", spec_size.ITEMS, "items", "in one list of a description"),
    Limit("key_parts", spec_size.KEY_PARTS, "parts", "of a dotted key in TOML"),
    Limit(
        "patches", spec.MOST_PATCHES, "switches", "of patches in one experiment, and as many of the config"
    ),
    Limit("patch_bytes", spec.TEXT_LIMIT, "bytes", "the text of one switch"),
    Limit("combinations", expand.MOST_COMBINATIONS, "combinations", "of switches in one design"),
    Limit("fetch_kept_hours", FETCH_KEPT_H, "hours", "how long the result of a fetch is kept"),
)
