# SPDX-License-Identifier: GPL-2.0-or-later
"""Uploads of the submission form, and series that a worker fetched for it: they become pasted patches.

Received patches thus survive a refusal, are shown in the preview, and are not fetched twice.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from django.core.files.uploadedfile import UploadedFile

from lab.errors import FieldRefused, LabError
from lab.experiments.switch_names import free_name, name_of_patch
from lab.submission.fetches.series import WantedSeries
from lab.submission.received_series import (
    UPLOAD_MIB,
    BranchRequest,
    Received,
    Upload,
    count_patches,
    each_patch,
    receive_files,
)
from web.forms import TypedForm, TypedSource, TypedSwitch


@dataclass(slots=True)
class Arrived:
    """The form with what was received as patches; notes: a line for each; errors by the field they lie in."""

    typed: TypedForm
    notes: list[str] = field(default_factory=list)
    errors: dict[str, str] = field(default_factory=dict)
    detail: str = ""


def receive(typed: TypedForm, uploads: Sequence[UploadedFile]) -> Arrived:
    """Receive the uploaded files; failures are shown beside their field, the other files are used.

    A form whose series a worker has to fetch is divided by patches there, once that series is known.
    """
    arrived = Arrived(typed)
    if uploads:
        _try(arrived, lambda: receive_files([_read(upload) for upload in uploads]))
    if typed.each and not arrived.errors and wanted_series(typed) is None:
        _split(arrived)
    return arrived


def wanted_series(typed: TypedForm) -> WantedSeries | None:
    """The branch and the message that the form names, None where it names neither."""
    source = typed.source
    if not (source.branch or source.location or source.message):
        return None
    branch = None
    if source.branch or source.location:
        branch = BranchRequest(
            source.location, source.branch, source.since, typed.tree, typed.git, typed.base
        )
    return WantedSeries({}, branch, source.message)


def with_fetched(typed: TypedForm, fetched: Sequence[Received]) -> Arrived:
    """Return the form with the fetched series as patches, in place of the source that the form named."""
    arrived = Arrived(typed)
    if fetched:
        _try(arrived, lambda: fetched)
        arrived.typed = replace(arrived.typed, source=TypedSource())
    if typed.each and wanted_series(arrived.typed) is None:
        _split(arrived)
    return arrived


def received(switch: TypedSwitch) -> Received:
    """Return what was pasted, as if it had been received."""
    name = switch.name or name_of_patch(switch.text)
    return Received(name, switch.text, f"switch {name}")


def _try(arrived: Arrived, fetch: Callable[[], Sequence[Received]]) -> None:
    try:
        fetched = fetch()
    except LabError as exc:
        arrived.errors[exc.field if isinstance(exc, FieldRefused) else "form"] = str(exc)
        arrived.detail = exc.detail
        return
    taken = {switch.name for switch in arrived.typed.patches}
    patches = list(arrived.typed.patches)
    for series in fetched:
        name = free_name(series.name, taken)
        taken.add(name)
        patches.append(TypedSwitch(name, series.text))
        many = f"{series.patches} patches" if series.patches > 1 else "one patch"
        gap = f". It is incomplete: {series.gap}" if series.gap else ""
        arrived.notes.append(
            f"{series.source}: {many if series.patches else 'to be repaired'}, as switch “{name}”{gap}"
        )
    arrived.typed = replace(arrived.typed, patches=tuple(patches))


def _read(upload: UploadedFile) -> Upload:
    """Read one file. Raises FieldRefused if it is too large."""
    name = upload.name or "patch"
    if (upload.size or 0) > UPLOAD_MIB << 20:
        raise FieldRefused("files", f"{name}: it is larger than {UPLOAD_MIB} MiB")
    return Upload(name, upload.read())


def _split(arrived: Arrived) -> None:
    """Make each patch of a series a switch. Patches of a series build on one another, so that all combinations of
    them say little: the design becomes cumulative unless another one was chosen."""
    typed = arrived.typed
    patches: list[TypedSwitch] = []
    divided = False
    for switch in typed.patches:
        ruled = switch.requires or switch.excludes or switch.alternative or switch.range or switch.catalog
        if ruled or count_patches(switch.text) < 2:
            patches.append(switch)
            continue
        others = {other.name for other in (*typed.patches, *patches) if other is not switch}
        series = received(switch)
        try:
            parts = each_patch(series, others=others, partial=switch.partial)
        except LabError as exc:
            arrived.errors["each"] = str(exc)
            return
        divided = True
        patches += [TypedSwitch(part.name, part.text) for part in parts]
        arrived.notes.append(f"{series.name}: {len(parts)} patches, each a switch of its own")
    design = "cumulative" if divided and typed.design == "full" else typed.design
    arrived.typed = replace(typed, patches=tuple(patches), design=design)
