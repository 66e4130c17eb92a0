# SPDX-License-Identifier: GPL-2.0-or-later
"""Which combinations of switches really apply to a tree, found out by applying them."""

from collections.abc import Mapping

from kernels.apply import apply_patches
from kernels.errors import PatchDoesNotApply
from kernels.tree import Revision, Tree
from lab.expand import Clash
from lab.intake import Taken


class Applier:
    """Applies switches in order, each prefix once; `revision` then has every combination's tree."""

    def __init__(self, tree: Tree, base: Revision, switches: Mapping[str, Taken]) -> None:
        self._tree = tree
        self._base = base
        self._switches = switches
        self._made: dict[tuple[str, ...], Revision] = {(): base}
        self._failed: dict[tuple[str, ...], Clash] = {}

    def try_to_apply(self, chosen: tuple[str, ...]) -> Clash | None:
        """Apply a combination; tells which switches clash in which file if it cannot be done."""
        patches = self._patches(chosen)
        for count in range(1, len(patches) + 1):
            prefix = patches[:count]
            if prefix not in self._made and prefix not in self._failed:
                self._apply(prefix)
            if prefix in self._failed:
                return self._failed[prefix]
        return None

    def revision(self, chosen: tuple[str, ...]) -> Revision:
        """Return the revision of a combination that applies."""
        return self._made[self._patches(chosen)]

    def _patches(self, chosen: tuple[str, ...]) -> tuple[str, ...]:
        """Config switches change no file."""
        return tuple(name for name in chosen if self._switches[name].patches)

    def _apply(self, prefix: tuple[str, ...]) -> None:
        *before, last = prefix
        try:
            self._made[prefix] = self._on_top(self._made[tuple(before)], last)
        except PatchDoesNotApply as exc:
            self._failed[prefix] = self._clash(before, last, exc)

    def _on_top(self, revision: Revision, name: str) -> Revision:
        return apply_patches(self._tree, revision, self._switches[name].patches)

    def _clash(self, before: list[str], last: str, exc: PatchDoesNotApply) -> Clash:
        """Blame the earlier switches on top of which alone the last one fails as well."""
        where = ", ".join(part for part in (exc.file, exc.hunk) if part)
        touching = [name for name in before if exc.file in self._switches[name].files]
        if not before or not self._fits(self._base, last):
            on = f" without {' and '.join(self._missing(last))}" if self._missing(last) else ""
            return Clash(f"{last} does not apply to {self._base.name}{on}: {where}: {exc.reason}", exc.detail)
        blamed = [name for name in touching if not self._fits(self._made.get((name,)), last)]
        rivals = ", ".join(blamed or touching or before)
        return Clash(f"{last} clashes with {rivals} in {where}: {exc.reason}", exc.detail)

    def _missing(self, name: str) -> tuple[str, ...]:
        return self._switches[name].toggle.requires

    def _fits(self, revision: Revision | None, name: str) -> bool:
        if revision is None:
            return False
        try:
            self._on_top(revision, name)
        except PatchDoesNotApply:
            return False
        return True
