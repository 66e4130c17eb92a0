# SPDX-License-Identifier: GPL-2.0-or-later
"""The catalogue of switches: patches that come with the lab, each with what it claims to change.

One switch is one `catalogue/<name>.toml` with one patch file for each tree it is made for. If a tree has the change
already, the switch's patch for it is the revert, and the claim is reversed.
"""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, Literal, cast

from kernels.errors import HostUnfit, PatchRejected, suggest
from kernels.patches.series import Patch, read_series

PATCHES = Path(__file__).parent / "catalogue"

Direction = Literal["lower", "higher"]
_OTHER_WAY: Mapping[Direction, Direction] = {"lower": "higher", "higher": "lower"}


@dataclass(frozen=True, slots=True)
class ClaimedEffect:
    """An author's claim about the effect of a switch on a workload's metric; `source` names the author of the claim, with figures."""

    workload: str
    metric: str
    direction: Direction
    source: str


@dataclass(frozen=True, slots=True)
class TreePatch:
    """A switch's patch for one tree; `reverts` if the tree has the change and the patch takes it out."""

    file: str
    reverts: bool
    note: str


@dataclass(frozen=True, slots=True)
class CatalogEntry:
    """A switch of the catalogue. author and link are those of the patch it is based on."""

    name: str
    title: str
    author: str
    link: str
    summary: str
    trees: Mapping[str, TreePatch]
    requires: tuple[str, ...]
    excludes: tuple[str, ...]
    claims: tuple[ClaimedEffect, ...]

    @property
    def metric(self) -> str:
        """Return the metric of the first claim, the one the patch is about."""
        return self.claims[0].metric

    @property
    def direction(self) -> Direction:
        """Return the claimed direction of the metric with the change applied."""
        return self.claims[0].direction


@cache
def load_catalog(directory: Path = PATCHES) -> Mapping[str, CatalogEntry]:
    """Return all switches by name, in the order of their names. Raises HostUnfit, naming file and field."""
    entries = [_read(path) for path in sorted(directory.glob("*.toml"))]
    known = {entry.name for entry in entries}
    for entry in entries:
        for other in {*entry.requires, *entry.excludes} - known:
            raise HostUnfit(f'{entry.name}.toml names a switch "{other}". {suggest(other, known)}')
    return {entry.name: entry for entry in entries}


def entry_patch(entry: CatalogEntry, tree_name: str, directory: Path = PATCHES) -> Patch:
    """Return a switch's patch for a tree. Raises PatchRejected, naming the trees it is made for, and HostUnfit."""
    path = directory / _for_tree(entry, tree_name).file
    try:
        patches = read_series(path.read_bytes()).patches
    except OSError as exc:
        raise HostUnfit(f"{entry.name}.toml names {path.name}, which cannot be read: {exc.strerror}") from exc
    if len(patches) != 1:
        raise HostUnfit(f"{path.name} holds {len(patches)} patches: a switch of the catalogue is one")
    return patches[0]


def entry_claims(entry: CatalogEntry, tree_name: str) -> tuple[ClaimedEffect, ...]:
    """Return the claimed effects of switching an entry on; reversed where the switch reverts the patch. Raises PatchRejected."""
    if not _for_tree(entry, tree_name).reverts:
        return entry.claims
    return tuple(replace(claim, direction=_OTHER_WAY[claim.direction]) for claim in entry.claims)


def _for_tree(entry: CatalogEntry, tree_name: str) -> TreePatch:
    if tree_name not in entry.trees:
        raise PatchRejected(f"{entry.name} is not made for {tree_name}. {suggest(tree_name, entry.trees)}")
    return entry.trees[tree_name]


def _read(path: Path) -> CatalogEntry:
    try:
        content = tomllib.loads(path.read_text())
        return CatalogEntry(
            name=path.stem,
            **{field: str(content[field]) for field in ("title", "author", "link", "summary")},
            trees={name: _tree_patch(table) for name, table in content["trees"].items()},
            requires=tuple(content.get("requires", ())),
            excludes=tuple(content.get("excludes", ())),
            claims=tuple(_claim(table) for table in content["claims"]),
        )
    except tomllib.TOMLDecodeError as exc:
        raise HostUnfit(f"{path.name} is not TOML: {exc}") from exc
    except (KeyError, TypeError, AttributeError, ValueError) as exc:
        raise HostUnfit(f"{path.name} lacks a field or has it wrong: {exc}") from exc


def _tree_patch(table: Mapping[str, Any]) -> TreePatch:
    return TreePatch(table["patch"], bool(table.get("reverts", False)), str(table.get("note", "")))


def _claim(table: Mapping[str, Any]) -> ClaimedEffect:
    direction = table["direction"]
    if direction not in _OTHER_WAY:
        raise ValueError(f'direction "{direction}" is neither lower nor higher')
    return ClaimedEffect(table["workload"], table["metric"], cast(Direction, direction), table["source"])
