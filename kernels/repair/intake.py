# SPDX-License-Identifier: GPL-2.0-or-later
"""Intake: turn a submission into a series that git can apply, with a report of repairs and refusals.

A diff that is whole, and whose old side is in the base, is not changed. A diff that an archive or a mailer has damaged is
repaired against the base (by the rules in kernels.repair.mend). Several diffs in one mail that change the same places
are alternatives, of which the submitter chooses one.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from kernels.diffs.safety import check_files, check_size
from kernels.diffs.unified import FileDiff, parse_diff
from kernels.errors import PatchDamaged, PatchRejected, UnknownPath
from kernels.mails.letters import Letter, diff_text, read_letters
from kernels.mails.series_order import line_up
from kernels.patches.series import Patch, Series, make_patch, make_series, read_series
from kernels.repair.alignment import Effort
from kernels.repair.base_text import squash
from kernels.repair.damage import (
    MAX_PARTS,
    DamagedFile,
    archived_letter,
    check_parts,
    count_pieces,
    find_diffs,
    flat_diffs,
)
from kernels.repair.mend import Mended, RefusedHunk, mend_file, mend_new_file
from kernels.repair.patched_files import Overlay, ReadBase, apply_exactly

# The repair is slower than reading; an archived mail is nowhere near this.
MAX_REPAIR_BYTES = 4 * 1024 * 1024
Draft = tuple[DamagedFile, ...]
_DIFF_BEGINS = re.compile(r"^(?:diff --git |--- )", re.MULTILINE)
FLAT = "its line ends are lost, and nothing tells where its lines began; send the mail itself (b4 am <message-id>)"


@dataclass(frozen=True, slots=True)
class Intake:
    """The result of reading a submission.

    `repaired` are lines for people; `refused` are hunks that no patch contains, so that their patches are not
    complete. `alternatives` is empty, or holds the diffs of a mail that offers several for the same
    places (without those that could not be repaired at all); `series` is the first of them.
    """

    series: Series
    repaired: tuple[str, ...] = ()
    refused: tuple[RefusedHunk, ...] = ()
    alternatives: tuple[Series, ...] = ()


def take_in(data: bytes, read_base: ReadBase, *, partial: bool = False) -> Intake:
    """Read a submission (mbox, mail, archived page, plain diff), repairing it against the base if it is damaged.

    read_base: a path's bytes in the base, raising UnknownPath. partial: take a series with gaps, too. Raises PatchRejected
    if nothing of it can be used, SeriesIncomplete where a gap needs `partial`.
    """
    try:
        whole = read_series(data, partial=partial)
    except PatchDamaged:
        return repair_series(data, read_base, partial=partial)
    overlay = Overlay(read_base)
    every = [parse_diff(patch.diff) for patch in whole.patches]
    if sum(1 + len(file.hunks) for files in every for file in files) > MAX_PARTS:
        return Intake(whole)
    for files in every:
        if _lost_blanks(files, overlay):
            return repair_series(data, read_base, partial=partial)
        overlay.apply(files)
    return Intake(whole)


def repair_series(data: bytes, read_base: ReadBase, *, partial: bool = False) -> Intake:
    """Do the same as take_in, for a submission that is known to be damaged."""
    check_size(data)
    if len(data) > MAX_REPAIR_BYTES:
        raise PatchRejected(
            f"a damaged diff of more than {MAX_REPAIR_BYTES} bytes is not repaired; send it undamaged"
        )
    letters = read_letters(data) or (archived_letter(diff_text(data)),)
    letters = tuple(letter for letter in letters if not letter.title.reply) or letters
    read, parts = [], 0
    for letter in letters:
        diffs = _find(letter)
        parts += sum(file.parts for draft in diffs for file in draft)
        check_parts(parts)
        read.append((letter, diffs))
    lineup = line_up([(letter, diffs) for letter, diffs in read if diffs], partial=partial)
    flat = [
        refused
        for letter, diffs in read
        if letter.title.version == lineup.version or not lineup.patches
        for refused in _flat(letter, diffs)
    ]
    if not lineup.patches:
        reason = (
            str(flat[0])
            if flat
            else "there is no diff in it; send what git format-patch wrote, or a unified diff"
        )
        raise PatchRejected(reason)
    lineup.notes += [
        f'"{letter.title.text}" is taken from a quotation; parts that its author left out are missing'
        for letter, _ in lineup.patches
        if not _DIFF_BEGINS.search(letter.text)
    ]
    work = _Work(Overlay(read_base), refused=flat)
    if len(lineup.patches) == 1 and len(lineup.patches[0][1]) > 1:
        patches = work.alternatives(*lineup.patches[0])
        every = offered = tuple(make_series((patch,), letters, lineup) for patch in patches)
    else:
        patches = work.patches([(letter, _only(letter, diffs)) for letter, diffs in lineup.patches])
        every = (make_series(patches, letters, lineup),)
        offered = ()
    return Intake(every[0], tuple(work.repaired), tuple(work.refused), offered)


def _find(letter: Letter) -> tuple[Draft, ...]:
    """Return the diffs of a letter; only their names and modes are checked."""
    drafts = find_diffs(letter.text)
    for draft in drafts:
        check_files([file.diff for file in draft])
    return drafts


def _only(letter: Letter, drafts: Sequence[Draft]) -> Draft:
    if len(drafts) > 1:
        raise PatchRejected(
            f'"{letter.title.text}" offers {len(drafts)} diffs for the same places, in the midst of a series; send one'
        )
    return drafts[0]


def _flat(letter: Letter, drafts: tuple[Draft, ...]) -> list[RefusedHunk]:
    """Return refusals for diffs without line ends; none if an intact diff holds the same change."""
    texts = [_flattened(draft) for draft in drafts]
    return [
        RefusedHunk(letter.title.text, "a diff in one line", flat[:60], FLAT, flat[:4_000])
        for flat in flat_diffs(letter.text)
        if not any(_holds(flat.replace(">", ""), text) for text in texts)
    ]


def _flattened(draft: Draft) -> list[str]:
    """Each hunk without blanks, line ends and quote marks."""
    hunks = [hunk for file in draft for hunk in file.hunks]
    return [
        squash(hunk.header + "".join(hunk.pieces[: count_pieces(hunk)])).replace(">", "") for hunk in hunks
    ]


def _holds(flat: str, hunks: Sequence[str]) -> bool:
    at = 0
    for hunk in hunks:
        at = flat.find(hunk, at)
        if at < 0:
            return False
        at += len(hunk)
    return True


def _lost_blanks(files: Sequence[FileDiff], overlay: Overlay) -> bool:
    """Return whether a well-formed diff does not apply, but would with corrected blanks."""
    for file in files:
        if not file.hunks or file.kind == "added" or not overlay.has(file.old_path):
            continue
        base = overlay.read(file.old_path)
        if apply_exactly(file, base) is None:
            olds = [[squash(line[1:]) for line in hunk.lines if line[0] in " -"] for hunk in file.hunks]
            if all(len(base.find(old)) == 1 for old in olds):
                return True
    return False


@dataclass(slots=True)
class _Work:
    """The repair of one submission: the patched base so far, and the lines of the report."""

    overlay: Overlay
    effort: Effort = field(default_factory=Effort)
    repaired: list[str] = field(default_factory=list)
    refused: list[RefusedHunk] = field(default_factory=list)

    def patches(self, drafts: Sequence[tuple[Letter, Draft]]) -> tuple[Patch, ...]:
        """Return the patches of a series in their order, each repaired on top of those before it."""
        made = [
            make_patch(letter, files)
            for letter, draft in drafts
            if (files := self._files(letter, draft, self.overlay, len(drafts) > 1))
        ]
        return self._any(made)

    def alternatives(self, letter: Letter, drafts: Sequence[Draft]) -> tuple[Patch, ...]:
        """One patch for each diff of a mail that offers several, each repaired on the base itself."""
        made = []
        for number, draft in enumerate(drafts, 1):
            name = f"{letter.title.text} (alternative {number} of {len(drafts)})".strip()
            named = replace(letter, title=replace(letter.title, text=name))
            files = self._files(named, draft, self.overlay.copy(), several=True)
            made += [make_patch(named, files)] if files else []
        self.repaired.insert(
            0, f"the mail offers {len(drafts)} diffs for the same places: they are alternatives"
        )
        return self._any(made)

    def _any(self, made: list[Patch]) -> tuple[Patch, ...]:
        if not made:
            reason = f"none of its hunks can be repaired; the first: {self.refused[0]}"
            raise PatchRejected(reason, detail="\n".join(str(refused) for refused in self.refused))
        return tuple(made)

    def _files(self, letter: Letter, draft: Draft, overlay: Overlay, several: bool) -> tuple[FileDiff, ...]:
        """A letter's diffs, repaired unless they are whole."""
        try:
            whole = parse_diff(letter.rest)
        except PatchDamaged:
            whole = ()
        if whole and not _lost_blanks(whole, overlay):
            overlay.apply(whole)
            return whole
        done: list[FileDiff] = []
        for file in draft:
            mended = self._mend(file, overlay, last=file is draft[-1])
            if mended.diff.hunks or not (file.hunks or mended.refused):
                done.append(mended.diff)
                overlay.write(mended.diff, mended.lines)
            prefix = f'"{letter.title.text}": ' if several else ""
            self.repaired += [prefix + note for note in mended.notes]
            self.refused += [replace(refused, patch=letter.title.text) for refused in mended.refused]
        return tuple(done)

    def _mend(self, file: DamagedFile, overlay: Overlay, *, last: bool) -> Mended:
        if not file.hunks and file.diff.kind == "modified" and file.diff.old_mode == file.diff.new_mode:
            reason = "its diff has no hunk; send what git format-patch wrote"
            return Mended(file.diff, (), (), (RefusedHunk("", file.diff.path, "", reason),))
        if file.diff.kind == "added":
            return mend_new_file(file, last=last)
        try:
            base = overlay.read(file.diff.old_path)
        except UnknownPath:
            reason = "the base has no such file"
            refused = tuple(RefusedHunk("", file.diff.path, hunk.header[:120], reason) for hunk in file.hunks)
            return Mended(file.diff, (), (), refused or (RefusedHunk("", file.diff.path, "", reason),))
        return mend_file(file, base, self.effort, last=last)
