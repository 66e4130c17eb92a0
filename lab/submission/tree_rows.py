# SPDX-License-Identifier: GPL-2.0-or-later
"""The row of a tree: its name stands for one place, for ever."""

from lab.errors import SubmissionRejected
from lab.models import Tree
from lab.submission.sources import Source


def registered_sources() -> dict[str, Source]:
    """Return where the registered trees come from, by name, in the order they were registered."""
    return {row.name: Source(row.name, row.kind, row.location) for row in Tree.objects.order_by("pk")}


def tree_row(source: Source, default_revision: str = "") -> Tree:
    """Return the row of a tree, written if it is new. Raises SubmissionRejected where the name is another place's."""
    known = {"kind": source.kind, "location": source.location, "default_revision": default_revision}
    row, _ = Tree.objects.get_or_create(name=source.name, defaults=known)
    if (row.kind, row.location) != (source.kind, source.location):
        raise SubmissionRejected(
            f"the name {source.name} stands for the tree at {row.location} already; it was not changed"
        )
    if default_revision and row.default_revision != default_revision:
        row.default_revision = default_revision
        row.save(update_fields=["default_revision"])
    return row
