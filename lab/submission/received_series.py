# SPDX-License-Identifier: GPL-2.0-or-later
"""Read series from uploaded files, a branch of a git repository, or a message-id of the kernel's lists.

Every series becomes a text in the description, so that a stored experiment stands on its own.
"""

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

from django.conf import settings

from kernels.errors import KernelsError, MailUnreadable, PatchDamaged, SeriesIncomplete
from kernels.mails.letters import Letter, Title, as_text, write_letter
from kernels.mails.lore import message_id, read_thread
from kernels.mails.uploads import (
    MAX_MEMBERS,
    MAX_UNPACKED_BYTES,
    MAX_UPLOAD_BYTES,
    SUFFIXES,
    join,
    one_series,
    unpack,
)
from kernels.mails.uploads import Upload as Upload
from kernels.patches.branch import Branch, read_branch
from kernels.patches.series import Series, read_series
from kernels.trees.address import Address
from kernels.trees.tree import resolve
from lab.errors import FieldRefused
from lab.experiments.spec import MOST_PATCHES, ExperimentSpec
from lab.experiments.switch_names import free_name, switch_name
from lab.models import User
from lab.submission.blame import field_at_fault
from lab.submission.git_addresses import checked_location, tree_address
from lab.submission.sources import Source, fetch_limits, find_source, open_source, registered_sources

UPLOAD_MIB, UNPACKED_MIB = MAX_UPLOAD_BYTES >> 20, MAX_UNPACKED_BYTES >> 20
MOST_FILES = MAX_MEMBERS
FILE_SUFFIXES = (*SUFFIXES, ".tar", ".tar.gz", ".tgz", ".tar.xz", ".gz", ".xz")
_NAME_LENGTH = 40
# The names of a variant's switches are joined, and there may be sixteen.
_PART_LENGTH = 28


@dataclass(frozen=True, slots=True)
class Received:
    """One series. name: for its switch; text: mails or a diff; source: a line for people; patches: 0 if damaged.

    gap: what is missing of it, which the submitter has to allow.
    """

    name: str
    text: str
    source: str
    title: str = ""
    version: int = 1
    patches: int = 0
    gap: str = ""


@dataclass(frozen=True, slots=True)
class BranchRequest:
    """A branch, and the base that it is compared with: a registered tree or a git address, and a revision.

    since: the revision of the branch's own repository after which the series begins, "" for where it left the base.
    """

    location: str
    name: str
    since: str = ""
    tree: str = ""
    git: str = ""
    base: str = ""


def receive_files(files: Sequence[Upload]) -> tuple[Received, ...]:
    """Uploaded mboxes, patches and archives of them; parts of one series become one.

    An archive is one series. Raises FieldRefused of the field "files", naming the file and the limit.
    """
    if len(files) > MOST_FILES:
        raise FieldRefused(
            "files", f"{len(files)} files are more than {MOST_FILES}; pack them into one .tar.gz"
        )
    unpacked, total = [], 0
    for file in files:
        try:
            members = unpack(file)
        except KernelsError as exc:
            raise FieldRefused("files", str(exc)) from exc
        # Counted while they are read: each file may be small when sent, and unpack to the limit of all together.
        total += sum(len(member.data) for member in members)
        if total > MAX_UNPACKED_BYTES:
            raise FieldRefused("files", f"all files together are larger than {UNPACKED_MIB} MiB; send fewer")
        unpacked.append((file, members))
    singles = [members[0] for _, members in unpacked if len(members) == 1]
    if len(singles) == len(unpacked) and one_series(singles):
        return (_from_bytes("files", _joined(singles), "", f"{len(singles)} uploaded files"),)
    return tuple(
        _from_bytes(
            "files",
            members[0].data if len(members) == 1 else _joined(members),
            file_stem(file.name),
            f"uploaded {file.name}" + (f": {len(members)} files" if len(members) > 1 else ""),
        )
        for file, members in unpacked
    )


def receive_branch(
    *,
    asked: BranchRequest,
    by: User | None,
    home: Path | None = None,
    on_progress: Callable[[str], None] = lambda _: None,
) -> Received:
    """The commits of a branch over a base, as a series; by: None at this machine's own terminal.

    Raises FieldRefused of the field "branch_git", "branch", "tree", "git" or "base", or LabUnable.
    """
    if not asked.name:
        raise FieldRefused("branch", "name the branch")
    source = _source_of(asked, by)
    address = _branch_address(asked, source, by)
    with field_at_fault("git" if asked.git else "tree"):
        tree = open_source(source, (home or settings.HOME) / "trees", on_progress)
    with field_at_fault("base"):
        base = resolve(tree, asked.base or tree.default_revision)
    on_progress(f"fetching branch {asked.name}")
    with field_at_fault("branch"):
        series = read_branch(Branch(address, asked.name, asked.since), tree, base, fetch_limits())
    name = switch_name(asked.name.rpartition("/")[2])
    return Received(
        name,
        mails_of(series),
        f"branch {asked.name} of {asked.location or source.name}",
        series.title,
        1,
        len(series.patches),
    )


def check_message(message: str) -> str:
    """Return the message-id in a person's input. Raises FieldRefused, also where this site does not reach lore."""
    if not settings.LORE:
        raise FieldRefused("lore", "this site cannot reach lore; run b4 am yourself and upload its output")
    with field_at_fault("lore"):
        return message_id(message)


def receive_message(*, message: str, home: Path | None = None) -> Received:
    """The series that a message of the kernel's lists belongs to, by b4.

    Raises FieldRefused of the field "lore", also where this site cannot reach the archive.
    """
    asked = check_message(message)
    with field_at_fault("lore"):
        data = read_thread(asked, (home or settings.HOME) / "received", archive=settings.LORE)
    return _from_bytes("lore", data, "", f"message {asked}")


def count_patches(text: str) -> int:
    """Return how many patches a text holds; 0 where it is damaged or none, which the submission reports."""
    try:
        return len(read_series(text.encode(), partial=True).patches)
    except KernelsError:
        return 0


def each_patch(
    received: Received, *, others: Collection[str] = (), partial: bool = False
) -> tuple[Received, ...]:
    """Return each patch of a series as one of its own, named after its place and title; others: names that are taken.

    partial: the submitter allows that some are missing. Raises FieldRefused of the field "each" where that is not possible.
    """
    try:
        series = read_series(received.text.encode(), partial=partial)
    except PatchDamaged as exc:
        raise FieldRefused(
            "each", f"{received.name or 'a series'} is damaged and can be repaired as one switch only: {exc}"
        ) from exc
    except KernelsError as exc:
        raise FieldRefused("each", f"{received.name or 'a patch'}: {exc}") from exc
    total = len(series.patches)
    if total > MOST_PATCHES:
        raise FieldRefused(
            "each",
            f"{received.name or 'the series'} has {total} patches, at most {MOST_PATCHES} can be separate switches",
        )
    # The diffs of the patches lack it, and each is tried on the base of all.
    trailer = f"\nbase-commit: {series.base_commit}\n" if series.base_commit else ""
    parts, names = [], set(others)
    for number, mail in enumerate(letters_of(series), 1):
        name = free_name(switch_name(f"{number}-{mail.title.text}", _PART_LENGTH), names, _PART_LENGTH)
        names.add(name)
        source = f"patch {number} of {total}, {received.source or received.name}"
        # By itself it is a whole series, not one patch of several.
        alone = replace(mail, title=Title(mail.title.text, series.version), rest=mail.rest + trailer)
        parts.append(Received(name, write_letter(alone), source, mail.title.text, series.version, 1))
    return tuple(parts)


def letters_of(series: Series) -> tuple[Letter, ...]:
    """A series' patches as mails, numbered in their order."""
    total = len(series.patches)
    return tuple(
        Letter(
            Title(patch.title, series.version, number, total if total > 1 else 0),
            patch.author,
            patch.date,
            patch.message_id,
            patch.message,
            patch.diff,
        )
        for number, patch in enumerate(series.patches, 1)
    )


def mails_of(series: Series) -> str:
    """A series as an mbox."""
    return "".join(write_letter(mail) for mail in letters_of(series))


def file_stem(name: str) -> str:
    """Return a file's name without its number and suffix: v2-0001-kernfs-Add-x.patch is kernfs-Add-x."""
    stem = PurePosixPath(name.replace("\\", "/")).name
    stem = re.sub(r"\.(gz|xz)$", "", stem, flags=re.IGNORECASE)
    stem = re.sub(r"\.(patch|diff|mbox|mbx|txt|eml|tar|tgz)$", "", stem, flags=re.IGNORECASE)
    return re.sub(r"^(v\d+-)?\d{4}-", "", stem)


def _joined(files: Sequence[Upload]) -> bytes:
    try:
        return join(files)
    except KernelsError as exc:
        raise FieldRefused("files", str(exc)) from exc


def _from_bytes(field: str, data: bytes, name: str, source: str) -> Received:
    """Receive a series, even a damaged one, which is repaired once the base is known, or one with gaps."""
    try:
        text = as_text(data)
    except KernelsError as exc:
        raise FieldRefused(field, f"{source}: {exc}") from exc
    gap = ""
    try:
        try:
            series = read_series(data)
        except SeriesIncomplete as exc:
            gap, series = str(exc), read_series(data, partial=True)
    except MailUnreadable as exc:
        raise FieldRefused(field, f"{source}: {exc}") from exc
    except KernelsError:
        return Received(switch_name(name), text, source)
    named = switch_name(name) if name else switch_name(series.title, _NAME_LENGTH)
    return Received(named, text, source, series.title, series.version, len(series.patches), gap)


def _branch_address(asked: BranchRequest, source: Source, by: User | None) -> Address:
    """Return the branch's address: as submitted, else the tree's own source."""
    if not asked.location:
        _check_is_git(source)
        with field_at_fault("git" if asked.git else "tree"):
            return tree_address(source.location)
    with field_at_fault("branch_git"):
        return checked_location(asked.location, by)


def check_has_branches(asked: BranchRequest) -> None:
    """Refuse a branch of a tree that has none, without asking another host. Raises FieldRefused."""
    _check_is_git(_registered(asked))


def _check_is_git(source: Source) -> None:
    if source.kind != "git":
        raise FieldRefused(
            "branch_git",
            f"{source.name} is an archive without branches; give the address of the branch's repository",
        )


def _source_of(asked: BranchRequest, by: User | None) -> Source:
    """Return the source of the tree that the branch is compared with."""
    if asked.git:
        with field_at_fault("git"):
            checked_location(asked.git, by)
    return _registered(asked)


def _registered(asked: BranchRequest) -> Source:
    wanted = ExperimentSpec.model_construct(tree=asked.tree or None, git=asked.git or None)
    with field_at_fault("tree"):
        return find_source(wanted, registered_sources())
