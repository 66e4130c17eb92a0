# SPDX-License-Identifier: GPL-2.0-or-later
"""Find or create the row of a build: one row for equal inputs."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from kernels.trees.tree import NamedRevision
from lab.models import Build, Variant
from lab.models.states import BuildState, Role, VariantState, move
from lab.runs.queues import build_queue
from lab.runs.settle import note_queued_again
from lab.storage.artifacts import is_kept
from lab.submission.prepare import BuildInputs, inputs_digest

# A new submission tries such a build again: the lab may have been mended.
AGAIN = (BuildState.FAILED, BuildState.CANCELLED)


def find_build(inputs: BuildInputs, root: Path) -> Build:
    """Return the row for these inputs, queued unless its artifact is there or it is being made. root: the state root."""
    build, _created = Build.objects.get_or_create(
        inputs=inputs.digest,
        defaults={
            "tree_id": inputs.revision.tree_id,
            "commit": inputs.revision.commit,
            "request": inputs.request,
            "queue": build_queue(inputs.request),
        },
    )
    gone = build.state == BuildState.BUILT and not is_kept(build.artifact_key, root)
    if gone or build.state in AGAIN:
        _queue_again(build, request=inputs.request, queue=build_queue(inputs.request))
        build.refresh_from_db()
    return build


def follow_builds(variants: Sequence[Variant]) -> None:
    """Catch up with builds that ended since find_build returned them. Call it last in the transaction that writes the variants.

    It locks the builds until the commit: a process that ends one of them later waits, and then sees these variants.
    """
    wanted = {variant.build_id for variant in variants}
    locked = Build.objects.select_for_update(no_key=True).only("state").filter(pk__in=wanted)
    for build in list(locked.order_by("pk")):
        if build.state in AGAIN:
            _queue_again(build)
        elif build.state == BuildState.BUILT:
            planned = [variant.pk for variant in variants if variant.build_id == build.pk]
            Variant.objects.filter(pk__in=planned, state=VariantState.PLANNED).update(
                state=VariantState.READY
            )


def _queue_again(build: Build, **fields: Any) -> None:
    with transaction.atomic():
        move(
            Build,
            build.pk,
            BuildState(build.state),
            BuildState.QUEUED,
            attempt=0,
            blame="",
            problem="",
            problem_detail="",
            finished_at=None,
            **fields,
        )
        note_queued_again(build.pk)


def build_over(first: int, others: Iterable[int]) -> None:
    """Have the queued kernels of other experiments built over the objects of the first one's base.

    Without it each revision, being a base, would be compiled whole. A kernel built over another base is another
    build: the variants of these experiments move to that build's row, and variants of all others stay where they are.
    Does nothing unless the first base is built.
    """
    base = Variant.objects.select_related("build").get(experiment=first, role=Role.BASE)
    if base.build is None or base.build.state != BuildState.BUILT:
        return
    ground = {
        name: base.build.request[name]
        for name in ("base_name", "base_commit", "base_tree_id", "base_fragments")
    }
    wanted = list(others)
    waiting = Build.objects.filter(variants__experiment__in=wanted, state=BuildState.QUEUED).distinct()
    for build in waiting:
        request = {**build.request, **ground, "vouched": _is_vouched_for(base.build, build)}
        digest = inputs_digest(build.tree_id, request)
        if digest == build.inputs or request["tree"] != base.build.request["tree"]:
            continue
        inputs = BuildInputs(NamedRevision(build.commit, build.tree_id, build.commit), request, digest)
        with transaction.atomic():
            _move_variants(build, find_build(inputs, settings.HOME), wanted)


def _is_vouched_for(base: Build, build: Build) -> bool:
    """Return whether the base that a build moves to is vouched for, under the same last withdrawal of trust."""
    same = base.request.get("withdrawal") == build.request.get("withdrawal")
    return bool(same and base.request.get("vouched", False))


def _move_variants(old: Build, new: Build, experiments: list[int]) -> None:
    """Move these experiments' variants to another build; cancel the old one if it has no variant left."""
    moving = Variant.objects.filter(build=old, experiment__in=experiments)
    if new.state == BuildState.BUILT:
        moving.filter(state=VariantState.PLANNED).update(state=VariantState.READY)
    moving.update(build=new)
    if not old.variants.exists():
        move(Build, old.pk, BuildState.QUEUED, BuildState.CANCELLED, finished_at=timezone.now())
