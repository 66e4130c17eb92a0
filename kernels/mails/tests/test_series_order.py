# SPDX-License-Identifier: GPL-2.0-or-later
"""A series with gaps or of several versions is never accepted silently; the notes name what was chosen."""

from __future__ import annotations

import pytest

from kernels.errors import PatchRejected, SeriesIncomplete
from kernels.mails.letters import Title
from kernels.patches.series import Series, read_series

pytestmark = pytest.mark.hostile
WAYS = "; send the whole series (b4 am <message-id> fetches it), or set partial = true to take what is here"


def mail(subject: str, name: str = "", line: str = "b") -> str:
    name = name or "".join(c for c in subject if c.isalnum())
    diff = f"diff --git a/{name} b/{name}\n--- a/{name}\n+++ b/{name}\n@@ -1 +1 @@\n-a\n+{line}\n"
    return f"From x Mon Sep 17 00:00:00 2001\nFrom: A <a@b>\nSubject: {subject}\n\nwhy\n---\n{diff}\n"


def talk(subject: str) -> str:
    return f"From x Mon Sep 17 00:00:00 2001\nFrom: A <a@b>\nSubject: {subject}\n\nonly words\n\n"


def read(*mails: str, partial: bool = False) -> Series:
    return read_series("\n".join(mails).encode(), partial=partial)


def places(series: Series) -> list[tuple[int, int, int]]:
    return [(patch.version, patch.number, patch.total) for patch in series.patches]


@pytest.mark.parametrize(
    ("mails", "said", "taken"),
    [
        ([mail("[PATCH 1/2] a")], "it has patch 1 of 2; missing: 2", [(1, 1, 2)]),
        ([mail("[PATCH 2/2] a")], "it has patch 2 of 2; missing: 1", [(1, 2, 2)]),
        (
            [mail("[PATCH v3 2/5] a")],
            "version 3 has patch 2 of 5; missing: 1, 3, 4, 5",
            [(3, 2, 5)],
        ),
        (
            [mail("[PATCH v2 1/2] a"), mail("[PATCH v3 2/2] b")],
            "version 3 has patch 2 of 2; missing: 1; version 2 has 1",
            [(2, 1, 2), (3, 2, 2)],
        ),
        (
            [mail("[PATCH v2 1/2] a"), mail("[PATCH v2 2/2] b"), mail("[PATCH v3 2/2] b", line="c")],
            "version 3 has patch 2 of 2; missing: 1; version 2 has 1, 2",
            [(2, 1, 2), (3, 2, 2)],
        ),
        (
            [mail("[PATCH 1/3] a"), mail("[PATCH 3/3] c"), talk("[PATCH 0/3] all")],
            "it has patches 1, 3 of 3; missing: 2",
            [(1, 1, 3), (1, 3, 3)],
        ),
        (
            [mail(f"[PATCH {number}/40] p{number}") for number in range(1, 40, 3)],
            "it has patches 1, 4, 7, 10, 13, 16, 19, 22, 25, 28 and 3 more of 40; "
            "missing: 2, 3, 5, 6, 8, 9, 11, 12, 14, 15 and 17 more",
            [(1, number, 40) for number in range(1, 40, 3)],
        ),
        (
            [mail("[PATCH] a"), mail("[PATCH v3] b")],
            'versions are mixed: "b" is of version 3, "a" of version 1, and neither replaces the other',
            [(3, 0, 0)],
        ),
        (
            [mail("[PATCH v2 1/2] a"), mail("[PATCH v2 2/2] b"), mail("[PATCH] c")],
            'versions are mixed: "a" (1/2) is of version 2, "c" of version 1, and neither replaces the other',
            [(2, 1, 2), (2, 2, 2)],
        ),
    ],
)  # fmt: skip
def test_a_gap_needs_the_submitters_word(
    mails: list[str], said: str, taken: list[tuple[int, int, int]]
) -> None:
    with pytest.raises(SeriesIncomplete) as refused:
        read(*mails)
    assert str(refused.value) == said + WAYS
    series = read(*mails, partial=True)
    assert places(series) == taken
    assert series.notes


@pytest.mark.parametrize(
    ("mails", "said"),
    [
        (
            [mail("[PATCH 1/2] a"), mail("[PATCH 1/3] b")],
            '"b" (1/3) and "a" (1/2) are of different series; send each series as a switch of its own',
        ),
        (
            [mail("[PATCH 1/2] a"), mail("[PATCH 2/2] b"), mail("[PATCH] fixup")],
            '"fixup" and "a" (1/2) are of different series; send each series as a switch of its own',
        ),
        ([mail("[PATCH 5/3] a")], '"a" (5/3): a series of 3 has no patch 5'),
        (
            [mail("[PATCH 1/2] a"), mail("[PATCH 1/2] a", line="c"), mail("[PATCH 2/2] b")],
            'two different patches are both 1/2: "a" and "a"; send one series',
        ),
    ],
)
def test_what_contradicts_itself_is_refused_whatever_the_submitter_says(mails: list[str], said: str) -> None:
    for partial in (False, True):
        with pytest.raises(PatchRejected) as refused:
            read(*mails, partial=partial)
        assert str(refused.value) == said


@pytest.mark.parametrize(
    ("mails", "taken", "notes"),
    [
        (
            [mail("[PATCH 1/2] a"), mail("[PATCH 2/2] b"), mail("[PATCH v2 1/2] a"), mail("[PATCH v2 2/2] b")],
            [(2, 1, 2), (2, 2, 2)],
            ("version 2 is used, 2 patches of version 1 ignored",),
        ),
        (
            [mail("[PATCH 2/2] b"), mail("[PATCH 1/2] a"), mail("[PATCH 1/2] a")],
            [(1, 1, 2), (1, 2, 2)],
            ('"a" (1/2) appears twice and counts once',),
        ),
        ([mail("[PATCH] a"), mail("[PATCH] a")], [(1, 0, 0)], ('"a" appears twice and counts once',)),
        (
            [mail("[PATCH v2] a"), mail("[PATCH] a", line="old")],
            [(2, 0, 0)],
            ("version 2 is used, 1 patch of version 1 ignored",),
        ),
        (
            [mail("[PATCH 1/2] a"), mail("Re: [PATCH 1/2] a", line="better"), mail("[PATCH 2/2] b")],
            [(1, 1, 2), (1, 2, 2)],
            ('ignored: the diff in a reply, "a" (1/2)',),
        ),
        (
            [mail("[PATCH 0/2] all", line="interdiff"), mail("[PATCH 1/2] a"), mail("[PATCH 2/2] b")],
            [(1, 1, 2), (1, 2, 2)],
            ('ignored: the diff in the cover letter, "all" (0/2)',),
        ),
        (
            [mail("[PATCH] a"), mail("AW: [PATCH] a", line="better")],
            [(1, 0, 0)],
            ('ignored: the diff in a reply, "a"',),
        ),
        (
            [mail("[list] [PATCH] a"), mail("[list] Re: [PATCH] a", line="better")],
            [(1, 0, 0)],
            ('ignored: the diff in a reply, "Re: [PATCH] a"',),
        ),
        (
            [mail("[RFC] a"), mail("[RFCv2] a", line="new")],
            [(2, 0, 0)],
            ("version 2 is used, 1 patch of version 1 ignored",),
        ),
        ([mail("[PATCH v2] a"), talk("Re: [PATCH v3] a")], [(2, 0, 0)], ()),
        ([mail("Re: [RESEND PATCH 4/5] a")], [(1, 4, 5)], ()),
        ([mail("[PATCH 1/1] a")], [(1, 1, 1)], ()),
    ],
)  # fmt: skip
def test_what_was_chosen_and_left_out_is_noted(
    mails: list[str], taken: list[tuple[int, int, int]], notes: tuple[str, ...]
) -> None:
    series = read(*mails)
    assert places(series) == taken
    assert series.notes == notes


def test_a_broken_diff_in_a_reply_does_not_damage_the_series() -> None:
    reply = mail("Re: [PATCH 1/2] a").replace("@@ -1 +1 @@", "@@ -1,9 +1,9 @@")
    assert places(read(mail("[PATCH 1/2] a"), reply, mail("[PATCH 2/2] b"))) == [(1, 1, 2), (1, 2, 2)]


def test_each_patch_of_a_large_mbox_is_not_compared_with_every_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """An mbox of 16 MiB may have 180,000 mails with a diff: comparing all pairs takes hours."""
    compared = 0
    same_title = Title.__eq__

    def counted(title: Title, other: object) -> bool:
        nonlocal compared
        compared += 1
        return same_title(title, other)

    monkeypatch.setattr(Title, "__eq__", counted)
    with pytest.raises(PatchRejected, match=r"^500 patches, a series may have 200"):
        read(*(mail(f"[PATCH] p{number}") for number in range(500)))
    assert compared < 2_000
