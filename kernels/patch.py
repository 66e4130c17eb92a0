# SPDX-License-Identifier: GPL-2.0-or-later
"""Patches and series: from what git format-patch wrote, a plain diff, or a range of commits.

Everything that leaves this module has been checked by kernels.safety; a patch's `diff` is rendered anew from what was
parsed, so it holds nothing that was not looked at.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from kernels.diff import FileDiff, parse_diff, render_diff
from kernels.errors import GitFailed, OutputTooLong, PatchDamaged, PatchRejected
from kernels.git import TOO_MUCH_MEMORY, run_git
from kernels.listing import check_tree
from kernels.mail import Letter, Title, diff_text, read_letters
from kernels.safety import MAX_INPUT_BYTES, MAX_PATCHES, check_files, check_size
from kernels.tree import Tree, resolve

Diff = TypeVar("Diff")
# What git may allocate to compare commits; a kernel's take 100 MiB.
RANGE_MEMORY = 2 << 30
_BASE_COMMIT = re.compile(r"^base-commit: ([0-9a-f]{40,64})[ \t]*$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Patch:
    """One diff with its commit message. `date` is ISO 8601 where it could be read; author and others may be ""."""

    title: str
    author: str
    date: str
    message: str
    message_id: str
    diff: str
    files: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Series:
    """Patches in the order they apply, with the version of the series and its cover letter, if it has one."""

    title: str
    version: int
    cover: str
    patches: tuple[Patch, ...]
    base_commit: str


def read_series(data: bytes) -> Series:
    """A series from one or more mboxes of git format-patch, one bare mail, or a plain unified diff.

    Of several versions of a series the newest is taken; replies without a diff are passed over.
    Raises PatchRejected (what it may not do, or what is missing), PatchDamaged where a diff cannot be read.
    """
    return read_with(data, lambda letter: parse_diff(letter.rest))


def read_with(data: bytes, parse: Callable[[Letter], Sequence[FileDiff]]) -> Series:
    """As read_series, with `parse` to find the files' diffs in a letter; a plain diff is a letter without headers."""
    check_size(data)
    letters = read_letters(data) or (Letter(Title(""), "", "", "", "", diff_text(data)),)
    letters = newest(letters)
    read = [(letter, parse(letter)) for letter in letters]
    patched = in_order([(letter, files) for letter, files in read if files])
    if not patched:
        kind = PatchDamaged if any("@@ -" in letter.text for letter in letters) else PatchRejected
        raise kind("there is no diff in it; send what git format-patch wrote, or a unified diff")
    cover = next((letter for letter, files in read if not files and not letter.title.reply), None)
    patches = tuple(make_patch(letter, files) for letter, files in patched)
    return Series(
        title=cover.title.text if cover and cover.title.text else patches[0].title,
        version=max(letter.title.version for letter, _ in patched),
        cover=cover.text.strip() if cover else "",
        patches=patches,
        base_commit=base_commit([letter.text for letter, _ in read]),
    )


def make_patch(letter: Letter, files: Sequence[FileDiff]) -> Patch:
    """One patch of a letter and its diffs. Raises PatchRejected for what kernels.safety does not allow."""
    check_files(files)
    touched = tuple(dict.fromkeys(path for file in files for path in _touched(file)))
    title = letter.title.text or f"changes {touched[0]}" + (
        f" and {len(touched) - 1} more" if touched[1:] else ""
    )
    return Patch(
        title, letter.author, letter.date, letter.message, letter.message_id, render_diff(files), touched
    )


def newest(letters: Sequence[Letter]) -> tuple[Letter, ...]:
    """The letters of the newest version among them."""
    version = max(letter.title.version for letter in letters)
    return tuple(letter for letter in letters if letter.title.version == version)


def in_order(patched: Sequence[tuple[Letter, Sequence[Diff]]]) -> list[tuple[Letter, Sequence[Diff]]]:
    """Put a series' patches in the order of their n/m; the same patch twice counts once.

    Raises PatchRejected if one is missing, or two differ that have the same number.
    """
    if len(patched) > MAX_PATCHES:
        raise PatchRejected(
            f"{len(patched)} patches, a series may have {MAX_PATCHES}; name a git range or split it"
        )
    total = max((letter.title.total for letter, _ in patched), default=0)
    if total < 2 or len(patched) == 1:
        return list(patched)
    numbered: dict[int, tuple[Letter, Sequence[Diff]]] = {}
    for letter, files in patched:
        known = numbered.setdefault(letter.title.number, (letter, files))
        if tuple(known[1]) != tuple(files):
            raise PatchRejected(
                f"two different patches are both {letter.title.number}/{total}: "
                f'"{known[0].title.text}" and "{letter.title.text}"; send one series'
            )
    missing = [str(number) for number in range(1, total + 1) if number not in numbered]
    if missing:
        raise PatchRejected(
            f"of {total} patches {', '.join(missing[:10])} {'is' if len(missing) == 1 else 'are'} missing; "
            "send the whole series (b4 am <message-id> fetches it)"
        )
    return [numbered[number] for number in sorted(numbered)]


def base_commit(texts: Sequence[str]) -> str:
    """The commit that a base-commit: trailer names in one of the texts, or ""."""
    return next((found[1] for text in texts if (found := _BASE_COMMIT.search(text))), "")


def read_range(tree: Tree, base: str, tip: str) -> Series:
    """The commits of base..tip as a series; merges cannot be written as patches and are refused.

    Raises UnknownRevision, PatchRejected, TreeUnreadable, GitFailed.
    """
    first, last = (resolve(tree, revision) for revision in (base, tip))
    for revision in (first, last):
        check_tree(tree.repository, revision.tree_id)
    start, end = first.commit, last.commit
    count = int(run_git(tree.repository, "rev-list", "--count", f"{start}..{end}"))
    if not count:
        raise PatchRejected(
            f"{tip} has no commits that {base} lacks; name the range as base..tip, older first"
        )
    if count > MAX_PATCHES:
        raise PatchRejected(
            f"{base}..{tip} has {count} commits, a series may have {MAX_PATCHES}; name a shorter range"
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
        f"--base={start}",
    )
    return read_series(_written(tree, f"{base}..{tip}", (*options, f"{start}..{end}")))


def _written(tree: Tree, shown: str, options: tuple[str, ...]) -> bytes:
    """Return commits as an mbox; a commit between two harmless ones may hold what is too large to compare."""
    try:
        return run_git(
            tree.repository,
            "format-patch",
            "--stdout",
            *options,
            most_output=MAX_INPUT_BYTES,
            most_memory=RANGE_MEMORY,
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
