# SPDX-License-Identifier: GPL-2.0-or-later
"""Patches and series: from what git format-patch wrote, a plain diff, or a range of commits.

Everything that leaves this module has been checked by kernels.diffs.safety; a patch's `diff` is rendered again from the parsed
values, so it holds nothing unchecked.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from kernels.diffs.safety import MAX_INPUT_BYTES, MAX_PATCHES, check_files, check_size
from kernels.diffs.unified import FileDiff, parse_diff, render_diff
from kernels.errors import GitFailed, MailUnreadable, OutputTooLong, PatchDamaged, PatchRejected
from kernels.mails.letters import Letter, Title, diff_text, read_letters, without_diffs
from kernels.mails.series_order import Lineup, line_up
from kernels.mails.shown_commit import read_shown_commit
from kernels.trees.git import TOO_MUCH_MEMORY, run_git
from kernels.trees.listing import check_tree
from kernels.trees.tree import SourceTree, resolve

Diff = TypeVar("Diff")
# Bytes that git may allocate to compare commits; a kernel's take 100 MiB.
RANGE_MEMORY = 2 << 30
# The title that git format-patch --cover-letter leaves for the author to fill in.
_UNTITLED = re.compile(r"(?:\*\*\* SUBJECT HERE \*\*\*)?")
_BASE_COMMIT = re.compile(r"^base-commit: ([0-9a-f]{40,64})[ \t]*$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Patch:
    """One diff with its commit message. `date` is ISO 8601 where it could be read; author and others may be "".

    number of total in the series of that version, as its subject says; 0 where it says nothing. The diff's bytes that
    are not UTF-8 are lone surrogates.
    """

    title: str
    author: str
    date: str
    message: str
    message_id: str
    diff: str
    files: tuple[str, ...]
    number: int = 0
    total: int = 0
    version: int = 1


@dataclass(frozen=True, slots=True)
class Series:
    """Patches in the order they apply, with the version of the series and its cover letter, if it has one.

    notes: lines for people on which mails were chosen and which left out.
    """

    title: str
    version: int
    cover: str
    patches: tuple[Patch, ...]
    base_commit: str
    notes: tuple[str, ...] = ()


def read_series(data: bytes, *, partial: bool = False) -> Series:
    """Return the series of one or more mboxes of git format-patch, one bare mail, or a plain unified diff.

    Of several versions of a series the newest is taken; replies without a diff are skipped. partial: take a series
    with gaps, too. Raises PatchRejected for a patch that is not allowed or missing, SeriesIncomplete where a gap needs
    `partial`, PatchDamaged where a diff cannot be read.
    """
    check_size(data)
    letters = read_letters(data) or (_no_mail(data),)
    read = _read_diffs(letters)
    lineup = line_up([(letter, files) for letter, files in read if files], partial=partial)
    if not lineup.patches:
        kind = PatchDamaged if any("@@ -" in letter.text for letter in letters) else PatchRejected
        raise kind("there is no diff in it; send what git format-patch wrote, or a unified diff")
    patches = tuple(make_patch(letter, files) for letter, files in lineup.patches)
    return make_series(patches, letters, lineup)


def _no_mail(data: bytes) -> Letter:
    """Return a text that is not a mail as one: the commit that `git show` printed, else a bare diff."""
    return read_shown_commit(data) or Letter(Title(""), "", "", "", "", diff_text(data))


def _read_diffs(letters: Sequence[Letter]) -> list[tuple[Letter, tuple[FileDiff, ...]]]:
    """Parse each letter; errors in the diffs of replies count only if no other letter has a diff."""
    own = [(letter, parse_diff(letter.rest)) for letter in letters if not letter.title.reply]
    if not any(files for _, files in own):
        return [(letter, parse_diff(letter.rest)) for letter in letters]
    diffs = iter(own)
    parsed = []
    for letter in letters:
        if not letter.title.reply:
            parsed.append(next(diffs))
            continue
        try:
            parsed.append((letter, parse_diff(letter.rest)))
        except PatchRejected:
            continue
    return parsed


def make_series(patches: tuple[Patch, ...], letters: Sequence[Letter], lineup: Lineup[Diff]) -> Series:
    """Return the series of these patches, with the cover letter and the base of the chosen version."""
    own = [letter for letter in letters if letter.title.version == lineup.version]
    chosen = [letter for letter, _ in lineup.patches]
    covers = [letter for letter in own if letter not in chosen and not letter.title.reply]
    covers = [letter for letter in covers if letter.title.number == 0]
    cover = covers[0] if covers else None
    return Series(
        title=cover.title.text if cover and not _UNTITLED.fullmatch(cover.title.text) else patches[0].title,
        version=lineup.version,
        cover=cover.text.strip() if cover else "",
        patches=patches,
        base_commit=base_commit([letter.text for letter in (*own, *chosen)]),
        notes=tuple(lineup.notes),
    )


def make_patch(letter: Letter, files: Sequence[FileDiff]) -> Patch:
    """Return the patch of a letter and its diffs. Raises PatchRejected for a diff that kernels.diffs.safety refuses."""
    check_files(files)
    touched = tuple(dict.fromkeys(path for file in files for path in _touched(file)))
    title = letter.title.text or f"changes {touched[0]}" + (
        f" and {len(touched) - 1} more" if touched[1:] else ""
    )
    diff = render_diff(files)
    place = (letter.title.number, letter.title.total, letter.title.version)
    return Patch(title, letter.author, letter.date, letter.message, letter.message_id, diff, touched, *place)


def base_commit(texts: Sequence[str]) -> str:
    """Return the commit that a base-commit: trailer names in one of the texts, or ""."""
    return next((match[1] for text in texts if (match := _BASE_COMMIT.search(text))), "")


def claimed_commit(data: bytes) -> str:
    """Return the commit that a submission's base-commit: trailer names, of several versions the newest one's; "" if none."""
    try:
        letters = read_letters(data)
    except MailUnreadable:
        return ""
    own = [letter for letter in letters if not letter.title.reply] or letters
    newest = max((letter.title.version for letter in own), default=0)
    texts = [letter.text for letter in own if letter.title.version == newest]
    return base_commit(texts or [diff_text(data)])


def read_range(tree: SourceTree, base: str, tip: str) -> Series:
    """Return the commits of base..tip that change files as a series; merges cannot be written as patches and are refused.

    Raises UnknownRevision, PatchRejected, TreeUnreadable, GitFailed.
    """
    first, last = (resolve(tree, revision) for revision in (base, tip))
    for revision in (first, last):
        check_tree(tree.repository, revision.tree_id)
    start, end = first.commit, last.commit
    count = int(run_git(tree.repository, "rev-list", "--count", f"{start}..{end}"))
    if not count:
        raise PatchRejected(f"{tip} adds no commits to {base}; name the range as base..tip, older first")
    if count > MAX_PATCHES:
        raise PatchRejected(
            f"{base}..{tip} has {count} commits, at most {MAX_PATCHES} are allowed; name a shorter range"
        )
    merges = (
        run_git(tree.repository, "rev-list", "--merges", "--abbrev-commit", "-1", f"{start}..{end}")
        .decode()
        .strip()
    )
    if merges:
        raise PatchRejected(f"{base}..{tip} holds the merge {merges}; rebase it to a line of commits first")
    options = (
        "--no-signature",
        "--no-ext-diff",
        "--no-textconv",
        "--full-index",
        "-U3",
        "-M",
        "-n",
    )
    written = _written(tree, f"{base}..{tip}", (*options, f"{start}..{end}"))
    letters = read_letters(_diffs_alone(written, tree, f"{start}..{end}"))
    changes = [(letter, files) for letter in letters if (files := parse_diff(letter.rest))]
    if not changes:
        raise PatchRejected(f"the commits of {base}..{tip} change no file, so there is nothing to measure")
    # git counts commits that change nothing, and a title may have a number of its own.
    patches = tuple(
        make_patch(replace(letter, title=Title(letter.title.text, 1, number, len(changes))), files)
        for number, (letter, files) in enumerate(changes, 1)
    )
    return Series(patches[0].title, 1, "", patches, start)


def _diffs_alone(mbox: bytes, tree: SourceTree, commits: str) -> bytes:
    """Return the mails of some commits so that no mail has a diff but its commit's own: a message may quote others."""
    log = run_git(tree.repository, "log", "--encoding=UTF-8", "--format=%H%n%b%x00", commits)
    for entry in log.split(b"\0")[:-1]:
        commit, _, message = entry.lstrip(b"\n").partition(b"\n")
        message = b"\n\n" + message.strip(b"\n")
        if message == without_diffs(message):
            continue
        before, line, mail = mbox.partition(b"From " + commit)
        mbox = before + line + mail.replace(message, without_diffs(message), 1)
    return mbox


def _written(tree: SourceTree, shown: str, options: tuple[str, ...]) -> bytes:
    """Return commits as an mbox. Raises PatchRejected if one of them, which was not checked, is too large to compare."""
    try:
        return run_git(
            tree.repository,
            "format-patch",
            "--stdout",
            *options,
            most_output=MAX_INPUT_BYTES,
            limits={"data": RANGE_MEMORY},
        )
    except OutputTooLong as exc:
        raise PatchRejected(
            f"{shown} is more than {MAX_INPUT_BYTES >> 20} MiB as patches; name a shorter range"
        ) from exc
    except GitFailed as exc:
        if not TOO_MUCH_MEMORY.search(exc.detail):
            raise
        raise PatchRejected(
            f"{shown} needs more than {RANGE_MEMORY >> 20:,} MiB to be written as patches; name a shorter range"
        ) from exc


def _touched(file: FileDiff) -> tuple[str, ...]:
    return (file.old_path, file.new_path) if file.kind == "renamed" else (file.new_path,)
