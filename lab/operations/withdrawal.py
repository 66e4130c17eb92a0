# SPDX-License-Identifier: GPL-2.0-or-later
"""Withdraw trust: an operator no longer vouches for a branch, whose code may have run in the making of all that the compiler front has kept.

A withdrawal is a row. Its token is part of the keys of layers and artifacts, of the name of the trusted files' folder and of what signs
their packs, so nothing from before answers a build, on any machine, whether or not the machine can be reached now. Files are not removed
under running builds: those on the builders go when room is needed, like others that nobody uses.
"""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from django.conf import settings
from django.db import transaction

from kernels.builds.front_build import COMPILED
from kernels.builds.layers import bytes_taken
from lab.audit.log import Request, note_request
from lab.errors import FieldRefused, StoreRefused, StoreUnreachable
from lab.models import Build, Experiment, Tree, Withdrawal
from lab.models.states import OPEN_EXPERIMENT, BuildState
from lab.storage.compiled_packs import FOLDER
from lab.storage.store import lab_store
from lab.validation_messages import nearest

# Of experiments that are listed by number.
MOST_LISTED = 20


@dataclass(frozen=True, slots=True)
class Heap:
    """Several files of one kind, and their bytes together."""

    count: int
    size: int


@dataclass(frozen=True, slots=True)
class Losses:
    """The things that are no longer used after a withdrawal.

    files, layers: on this machine alone; packs: by name, in the store; no_store: why its packs are not known; kernels: built; building: now.
    """

    tree: str
    ref: str
    files: Heap
    layers: Heap
    packs: tuple[str, ...]
    packs_size: int
    no_store: str
    kernels: int
    building: int
    open_experiments: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Withdrawn:
    """A withdrawal. removed: packs, by number; left: why the others are still in the store."""

    token: str
    removed: int
    left: str


def plan_withdrawal(tree: str, ref: str = "") -> Losses:
    """Find out what a withdrawal costs. tree: a name or an address; ref: one branch or tag of it, all of them without.

    Raises FieldRefused for a tree that the lab does not know, or that this machine's setting still vouches for.
    """
    known = Tree.objects.filter(name=tree).first() or Tree.objects.filter(location=tree).first()
    if known is None:
        names = Tree.objects.order_by("name").values_list("name", flat=True)
        raise FieldRefused("tree", f'there is no tree "{tree[:100]}"; {nearest(tree, names)}')
    _check_setting(known.location, ref)
    objects = settings.HOME / "objects"
    packs, size, no_store = _packs()
    rows = Experiment.objects.filter(state__in=OPEN_EXPERIMENT).order_by("pk")
    return Losses(
        tree=known.name,
        ref=ref,
        files=_heap(_sizes(objects / COMPILED)),
        layers=_heap(map(_size_of_layer, objects.glob("*/obj"))),
        packs=packs,
        packs_size=size,
        no_store=no_store,
        kernels=Build.objects.filter(state=BuildState.BUILT, expired_at=None).count(),
        building=Build.objects.filter(state=BuildState.BUILDING).count(),
        open_experiments=tuple(rows.values_list("pk", flat=True)),
    )


def withdraw_trust(losses: Losses) -> Withdrawn:
    """Withdraw trust, then remove the packs; a store that fails keeps them, but no builder uses them."""
    with transaction.atomic():
        made = Withdrawal.objects.create(tree=losses.tree, ref=losses.ref[:200])
        note_request(
            Request(
                person=None,
                address="",
                method="labctl",
                route="withdraw-trust",
                path=f"lab withdraw-trust {losses.tree} {losses.ref}".strip(),
                status=0,
                rule="",
            )
        )
    store, removed = lab_store(), 0
    try:
        for name in losses.packs:
            if store is not None:
                store.remove(name)
                removed += 1
    except (StoreUnreachable, StoreRefused) as exc:
        return Withdrawn(made.token, removed, str(exc))
    return Withdrawn(made.token, removed, losses.no_store)


def _check_setting(location: str, ref: str) -> None:
    named = [each for each in settings.VOUCHED.get(location, ()) if ref in ("", each)]
    if named:
        raise FieldRefused(
            "tree",
            f"KPERFLAB_VOUCHED still names {' '.join(named)} of {location}: take that out on every machine and restart the lab's "
            "programs first, or the branch is trusted again at once",
        )


def _packs() -> tuple[tuple[str, ...], int, str]:
    """Return the packs in the store by name, their bytes, and why they are not known."""
    try:
        if (store := lab_store()) is None:
            return (), 0, ""
        entries = list(store.entries(FOLDER))
    except (StoreUnreachable, StoreRefused) as exc:
        return (), 0, str(exc)
    return tuple(entry.name for entry in entries), sum(entry.size for entry in entries), ""


def _heap(sizes: Iterator[int]) -> Heap:
    each = list(sizes)
    return Heap(len(each), sum(each))


def _sizes(folder: Path) -> Iterator[int]:
    for path in folder.glob("*/*/*"):
        with suppress(FileNotFoundError):  # a build removes old ones
            yield path.lstat().st_size


def _size_of_layer(path: Path) -> int:
    with suppress(FileNotFoundError):  # a build makes room
        return bytes_taken(path)
    return 0
