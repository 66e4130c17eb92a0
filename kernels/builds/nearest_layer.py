# SPDX-License-Identifier: GPL-2.0-or-later
"""Find the layer of another revision that a base can be built over, as its variants are built over its own.

CI and trends go from revision to revision, and many revisions change a few C files and headers. Only a trusted revision is built
over another one's layer, and that one must be trusted too: the files in a layer were written by its own tree's makefiles and tools.
"""

import contextlib
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass

from kernels.builds.layer_changes import can_sweep, not_followed
from kernels.builds.layers import Layers
from kernels.builds.request import BuildRequest, family_key
from kernels.errors import KernelsError
from kernels.trees.extract import changed_files

FILE = "revision.json"
# Only this many of a family's layers are looked at, the newest: a process that sees a kernel's revision for the first time checks its whole
# tree (1.5 to 2 s, busy machine); comparing it takes 10 ms.
LOOKED_AT = 5


@dataclass(frozen=True, slots=True)
class LayerFacts:
    """The tree of a layer, and its family: the key that layers share if only their sources differ (family_key)."""

    family: str
    tree_id: str

    def text(self) -> str:
        """Return the text of the layer's FILE."""
        return json.dumps(asdict(self))


def facts_of(request: BuildRequest, config: str, *, front: str) -> LayerFacts | None:
    """Return the facts of a base's layer; None if no other revision may be built over it."""
    if not (request.trusted and front):
        return None
    return LayerFacts(family_key(request, config, front=front), request.base.tree_id)


def nearest_layers(
    layers: Layers, request: BuildRequest, config: str, *, front: str
) -> Iterator[tuple[str, str]]:
    """Yield layer and tree id of trusted revisions over which this base can be built, fewest changed files first."""
    own = facts_of(request, config, front=front)
    if own is None:
        return
    found = []
    for layer, tree_id in _family(layers, own):
        try:
            changes = changed_files(request.tree, tree_id, own.tree_id)
        except KernelsError:  # its commit is gone from the repository
            continue
        paths = [change.path for change in changes]
        if can_sweep(paths, config, config) and not not_followed(changes):
            found.append((len(paths), layer, tree_id))
    for _, layer, tree_id in sorted(found):
        yield layer, tree_id


def _family(layers: Layers, own: LayerFacts) -> list[tuple[str, str]]:
    """Return layer and tree id of the other revisions, the newest first."""
    found = []
    for path in layers.objects.glob(f"*/{FILE}"):
        with contextlib.suppress(
            OSError, ValueError, TypeError
        ):  # one that is being removed, or of another version
            facts = LayerFacts(**json.loads(path.read_text()))
            if facts.family == own.family and facts.tree_id != own.tree_id:
                found.append((path.stat().st_mtime, path.parent.name, facts.tree_id))
    return [(layer, tree_id) for _, layer, tree_id in sorted(found, reverse=True)[:LOOKED_AT]]
