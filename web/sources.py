# SPDX-License-Identifier: GPL-2.0-or-later
"""Uploads, branches and message-ids of the submission form: received, they become pasted patches.

So what was received survives a refusal, is shown in the preview, and is not fetched twice.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from lab.errors import FieldRefused, LabError
from lab.models import User
from lab.submission.received import (
    UPLOAD_MIB,
    BranchAsked,
    Received,
    Upload,
    count_patches,
    each_patch,
    receive_branch,
    receive_files,
    receive_message,
)
from web.forms import Typed, TypedSwitch


class UploadedFile(Protocol):
    """What is needed of a file that a browser sent."""

    @property
    def name(self) -> str | None:
        """The file's name, as the browser gave it."""

    @property
    def size(self) -> int | None:
        """Its length in bytes."""

    def read(self) -> bytes:
        """Return all of it."""


@dataclass(slots=True)
class Arrived:
    """The form with what was received as patches; told: a line for each; errors by the field they lie in."""

    typed: Typed
    told: list[str] = field(default_factory=list)
    errors: dict[str, str] = field(default_factory=dict)
    detail: str = ""


def receive(typed: Typed, uploads: Sequence[UploadedFile], by: User) -> Arrived:
    """Receive everything the form names; what fails is told beside its field, the rest is kept."""
    arrived = Arrived(typed)
    if uploads:
        _try(arrived, lambda: receive_files([_read(one) for one in uploads]))
    source = typed.source
    if source.branch or source.location:
        _try(arrived, lambda: (_branch(typed, by),))
        if not {"branch", "branch_git"} & set(arrived.errors):
            source = replace(source, location="", branch="", since="")
    if source.message:
        _try(arrived, lambda: (receive_message(message=source.message),))
        source = source if "lore" in arrived.errors else replace(source, message="")
    arrived.typed = replace(arrived.typed, source=source)
    if typed.each and not arrived.errors:
        _split(arrived)
    return arrived


def received(switch: TypedSwitch) -> Received:
    """What was pasted, as if it had been received."""
    return Received(switch.name, switch.text, f"switch {switch.name}")


def _try(arrived: Arrived, fetch: Callable[[], Sequence[Received]]) -> None:
    try:
        found = fetch()
    except LabError as exc:
        arrived.errors[exc.field if isinstance(exc, FieldRefused) else "form"] = str(exc)
        arrived.detail = exc.detail
        return
    taken = {switch.name for switch in arrived.typed.patches}
    patches = list(arrived.typed.patches)
    for one in found:
        name = _free(one.name, taken)
        taken.add(name)
        patches.append(TypedSwitch(name, one.text))
        many = f"{one.patches} patches" if one.patches > 1 else "one patch"
        gap = f". It is incomplete: {one.gap}" if one.gap else ""
        arrived.told.append(
            f"{one.source}: {many if one.patches else 'to be repaired'}, as switch “{name}”{gap}"
        )
    arrived.typed = replace(arrived.typed, patches=tuple(patches))


def _branch(typed: Typed, by: User) -> Received:
    source = typed.source
    asked = BranchAsked(source.location, source.branch, source.since, typed.tree, typed.git, typed.base)
    return receive_branch(asked=asked, by=by)


def _read(upload: UploadedFile) -> Upload:
    """One file; of one that is too large, enough to be refused."""
    name = upload.name or "patch"
    if (upload.size or 0) > UPLOAD_MIB << 20:
        raise FieldRefused("files", f"{name}: it is larger than {UPLOAD_MIB} MiB")
    return Upload(name, upload.read())


def _split(arrived: Arrived) -> None:
    """A switch for each patch of a series. Patches of a series stand on one another, so that all combinations of
    them say little: the design becomes cumulative unless another one was chosen."""
    typed = arrived.typed
    patches: list[TypedSwitch] = []
    divided = False
    for switch in typed.patches:
        if switch.requires or switch.excludes or switch.alternative or count_patches(switch.text) < 2:
            patches.append(switch)
            continue
        others = {one.name for one in (*typed.patches, *patches) if one is not switch}
        try:
            parts = each_patch(received(switch), others=others, partial=switch.partial)
        except LabError as exc:
            arrived.errors["each"] = str(exc)
            return
        divided = True
        patches += [TypedSwitch(part.name, part.text) for part in parts]
        arrived.told.append(f"{switch.name}: {len(parts)} patches, each a switch of its own")
    design = "cumulative" if divided and typed.design == "full" else typed.design
    arrived.typed = replace(typed, patches=tuple(patches), design=design)


def _free(name: str, taken: set[str]) -> str:
    number, found = 1, name
    while found in taken:
        number += 1
        found = f"{name[:56]}-{number}"
    return found
