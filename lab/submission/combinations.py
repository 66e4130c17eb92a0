# SPDX-License-Identifier: GPL-2.0-or-later
"""Find which combinations of switches apply to a tree, by applying them."""

from collections.abc import Mapping

from kernels.errors import PatchDoesNotApply
from kernels.patches.apply import apply_patches
from kernels.trees.tree import NamedRevision, SourceTree
from lab.experiments.expand import Clash
from lab.submission.sources import Taken


class Applier:
    """Applies switches in order, each prefix once; `revision` then has every combination's tree."""

    def __init__(self, tree: SourceTree, base: NamedRevision, switches: Mapping[str, Taken]) -> None:
        self._tree = tree
        self._base = base
        self._switches = switches
        self._made: dict[tuple[str, ...], NamedRevision] = {(): base}
        self._failed: dict[tuple[str, ...], Clash] = {}

    def try_to_apply(self, chosen: tuple[str, ...]) -> Clash | None:
        """Apply a combination; return which switches clash in which file if it does not apply."""
        patches = self._patches(chosen)
        for count in range(1, len(patches) + 1):
            prefix = patches[:count]
            if prefix not in self._made and prefix not in self._failed:
                self._apply(prefix)
            if prefix in self._failed:
                return self._failed[prefix]
        return None

    def revision(self, chosen: tuple[str, ...]) -> NamedRevision:
        """Return the revision of a combination that applies."""
        return self._made[self._patches(chosen)]

    def _patches(self, chosen: tuple[str, ...]) -> tuple[str, ...]:
        """Leave out config switches, which change no file."""
        return tuple(name for name in chosen if self._switches[name].patches)

    def _apply(self, prefix: tuple[str, ...]) -> None:
        *before, last = prefix
        try:
            self._made[prefix] = self._on_top(self._made[tuple(before)], last)
        except PatchDoesNotApply as exc:
            self._failed[prefix] = self._clash(before, last, exc)

    def _on_top(self, revision: NamedRevision, name: str) -> NamedRevision:
        return apply_patches(self._tree, revision, self._switches[name].patches)

    def _clash(self, before: list[str], last: str, exc: PatchDoesNotApply) -> Clash:
        """Blame each earlier switch with which alone the last one fails as well.

        Switches that the last one requires are its ground, not rivals.
        """
        where = ", ".join(part for part in (exc.file, exc.hunk) if part)
        ground = [name for name in before if name in self._required(last)]
        others = [name for name in before if name not in ground]
        if not others or not self._fits(ground, last):
            on_top = f" with {' and '.join(ground)}" if ground else ""
            reason = f"{last} does not apply to {self._base.name}{on_top}: {where}: {exc.reason}"
            return Clash(reason, exc.detail)
        touching = [name for name in others if exc.file in self._switches[name].files] or others
        blamed = [name for name in touching if not self._fits(_in_order(before, [*ground, name]), last)]
        rivals = ", ".join(blamed or touching)
        return Clash(f"{last} clashes with {rivals} in {where}: {exc.reason}", exc.detail)

    def _required(self, name: str) -> set[str]:
        required: set[str] = set()
        waiting = [name]
        while waiting:
            needs = set(self._switches[waiting.pop()].toggle.requires) - required
            required |= needs
            waiting += needs
        return required

    def _fits(self, below: list[str], name: str) -> bool:
        """Return whether a switch applies on top of others; True if those do not apply themselves."""
        if self.try_to_apply(tuple(below)) is not None:
            return True
        try:
            self._on_top(self.revision(tuple(below)), name)
        except PatchDoesNotApply:
            return False
        return True


def _in_order(order: list[str], names: list[str]) -> list[str]:
    return [name for name in order if name in names]
