# SPDX-License-Identifier: GPL-2.0-or-later
"""Limits on descriptions and submissions, in one table for the code that refuses and for pages and API."""

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
# A preview that nobody asks for any more is cancelled; a submission is carried out all the same.
PREVIEW_UNWATCHED_S = 300
# Previews and submissions of local trees that one web process carries out at once; others go to a worker.
LOCAL_AT_ONCE = 2
