# SPDX-License-Identifier: GPL-2.0-or-later
"""Choose the patches of a series from some mails, and their order; omissions are noted.

Subjects number patches: `[PATCH v3 2/5]`. A series with gaps, or of several versions, is taken only if the submitter confirms
it: without the patch before it, a patch is not the change that its author meant to be measured.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from kernels.diffs.safety import MAX_PATCHES
from kernels.errors import PatchRejected, SeriesIncomplete
from kernels.mails.letters import Letter, Title

Diff = TypeVar("Diff")
NAMED = 10


@dataclass(slots=True)
class Lineup(Generic[Diff]):
    """Letters with their diffs in the order they apply. notes: lines for people on which mails were chosen and left out."""

    patches: list[tuple[Letter, Sequence[Diff]]]
    version: int = 1
    notes: list[str] = field(default_factory=list)


def line_up(patched: Sequence[tuple[Letter, Sequence[Diff]]], *, partial: bool = False) -> Lineup[Diff]:
    """Return the patches of one series in their order, of several versions the newest.

    partial: the submitter knows that patches are missing. If an older version has a number that the newest lacks, the newest
    such patch is used, as when one patch is sent again in a reply (b4's rule); otherwise the number stays out.
    Raises SeriesIncomplete where a gap or a mixture needs the submitter's consent, PatchRejected where that would not help.
    """
    lineup: Lineup[Diff] = Lineup(list(patched))
    _drop_talk(lineup)
    _drop_copies(lineup)
    if len(lineup.patches) > MAX_PATCHES:
        raise PatchRejected(
            f"{len(lineup.patches)} patches, a series may have {MAX_PATCHES}; name a git range or split it"
        )
    if not lineup.patches:
        return lineup
    lineup.version = max(letter.title.version for letter, _ in lineup.patches)
    newest = [pair for pair in lineup.patches if pair[0].title.version == lineup.version]
    older = [pair for pair in lineup.patches if pair[0].title.version != lineup.version]
    numbered = _numbered(newest)
    if numbered and not (len(newest) == 1 and newest[0][0].title.reply):
        lineup.patches = _by_number(lineup, newest, older, partial)
    else:
        _note_superseded(lineup, newest, older, partial)
        lineup.patches = newest
    return lineup


def _drop_talk(lineup: Lineup[Diff]) -> None:
    """Leave out diffs in replies and in cover letters, unless there are no other patches."""
    kinds: tuple[tuple[str, Callable[[Letter], bool]], ...] = (
        ("a reply", lambda letter: letter.title.reply),
        ("the cover letter", lambda letter: letter.title.total > 0 and letter.title.number == 0),
    )
    for what, is_talk in kinds:
        talk = [pair for pair in lineup.patches if is_talk(pair[0])]
        if talk and len(talk) < len(lineup.patches):
            lineup.patches = [pair for pair in lineup.patches if not is_talk(pair[0])]
            lineup.notes += [f"ignored: the diff in {what}, {_named(letter)}" for letter, _ in talk]


def _drop_copies(lineup: Lineup[Diff]) -> None:
    """Keep one copy of a patch that came by several lists."""
    kept: dict[tuple[Title, tuple[Diff, ...]], tuple[Letter, Sequence[Diff]]] = {}
    for letter, files in lineup.patches:
        if (letter.title, tuple(files)) in kept:
            lineup.notes.append(f"{_named(letter)} appears twice and counts once")
        else:
            kept[letter.title, tuple(files)] = (letter, files)
    lineup.patches = list(kept.values())


def _numbered(pairs: Sequence[tuple[Letter, Sequence[Diff]]]) -> bool:
    return any(letter.title.total > 1 for letter, _ in pairs)


def _by_number(
    lineup: Lineup[Diff],
    newest: Sequence[tuple[Letter, Sequence[Diff]]],
    older: Sequence[tuple[Letter, Sequence[Diff]]],
    partial: bool,
) -> list[tuple[Letter, Sequence[Diff]]]:
    total = newest[0][0].title.total
    places = _places(newest)
    missing = [number for number in range(1, total + 1) if number not in places]
    if missing and not partial:
        raise SeriesIncomplete(_gap(lineup.version, total, places, missing, older))
    for letter, files in sorted(older, key=lambda pair: -pair[0].title.version):
        title = letter.title
        if title.number in missing and title.total == total:
            places[title.number] = (letter, files)
            missing.remove(title.number)
            lineup.notes.append(
                f"patch {title.number} of {total} comes from version {title.version}, which version {lineup.version} lacks"
            )
    if missing:
        lineup.notes.append(f"missing of {total} patches, as the submitter allows: {_list(missing)}")
    used = [letter for letter, _ in places.values()]
    rest = [pair for pair in older if pair[0] not in used]
    _note_superseded(lineup, newest, rest, partial)
    return [places[number] for number in sorted(places)]


def _places(pairs: Sequence[tuple[Letter, Sequence[Diff]]]) -> dict[int, tuple[Letter, Sequence[Diff]]]:
    """Return the patches of one version by number. Raises PatchRejected if their numbers contradict each other."""
    places: dict[int, tuple[Letter, Sequence[Diff]]] = {}
    first = next(letter for letter, _ in pairs if letter.title.total > 1)
    total = first.title.total
    for letter, files in pairs:
        title = letter.title
        if title.total != total:
            raise PatchRejected(
                f"{_named(letter)} and {_named(first)} are of different series; send each series as a switch of its own"
            )
        if not 1 <= title.number <= total:
            raise PatchRejected(f"{_named(letter)}: a series of {total} has no patch {title.number}")
        if title.number in places:
            raise PatchRejected(
                f"two different patches are both {title.number}/{total}: "
                f'"{places[title.number][0].title.text}" and "{title.text}"; send one series'
            )
        places[title.number] = (letter, files)
    return places


def _gap(
    version: int,
    total: int,
    places: dict[int, tuple[Letter, Sequence[Diff]]],
    missing: list[int],
    older: Sequence[tuple[Letter, Sequence[Diff]]],
) -> str:
    which = f"version {version}" if older or version > 1 else "it"
    many = "patch" if len(places) == 1 else "patches"
    text = f"{which} has {many} {_list(sorted(places))} of {total}; missing: {_list(missing)}"
    for other in sorted({letter.title.version for letter, _ in older}, reverse=True)[:3]:
        numbers = sorted(letter.title.number for letter, _ in older if letter.title.version == other)
        text += f"; version {other} has {_list(numbers)}"
    return text


def _note_superseded(
    lineup: Lineup[Diff],
    newest: Sequence[tuple[Letter, Sequence[Diff]]],
    older: Sequence[tuple[Letter, Sequence[Diff]]],
    partial: bool,
) -> None:
    """Note the older versions that are left out; they must be of the same series, going by numbers or titles."""
    titles = {letter.title.text for letter, _ in newest}
    numbered = _numbered(newest)
    strangers = [
        letter
        for letter, _ in older
        if letter.title.text not in titles and not (numbered and letter.title.total > 1)
    ]
    if strangers and not partial:
        raise SeriesIncomplete(
            f"versions are mixed: {_named(newest[0][0])} is of version {lineup.version}, "
            f"{_named(strangers[0])} of version {strangers[0].title.version}, and neither replaces the other"
        )
    for version in sorted({letter.title.version for letter, _ in older}):
        count = sum(letter.title.version == version for letter, _ in older)
        many = "1 patch" if count == 1 else f"{count} patches"
        lineup.notes.append(f"version {lineup.version} is used, {many} of version {version} ignored")


def _named(letter: Letter) -> str:
    title = letter.title
    place = f" ({title.number}/{title.total})" if title.total else ""
    return f'"{title.text[:80]}"{place}'


def _list(numbers: Sequence[int]) -> str:
    if not numbers:
        return "none"
    shown = ", ".join(map(str, numbers[:NAMED]))
    return shown + (f" and {len(numbers) - NAMED} more" if len(numbers) > NAMED else "")
