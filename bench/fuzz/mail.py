# SPDX-License-Identifier: GPL-2.0-or-later
"""Mails and mboxes: any bytes give a series or a refusal, and their plain text gives the same series."""

from bench.fuzz.mutations import mutate_mail
from kernels.errors import PatchRejected
from kernels.mails.letters import as_text
from kernels.patches.series import read_series

REFUSALS = (PatchRejected,)
mutate = mutate_mail


def feed(data: bytes) -> None:
    """Read a series, as an upload is read before its tree is known, and once more from what is stored of it."""
    text = as_text(data)
    text.encode()
    series = read_series(data)
    again = read_series(text.encode())
    assert [patch.diff for patch in again.patches] == [patch.diff for patch in series.patches], "other diffs"
    assert [patch.title for patch in again.patches] == [patch.title for patch in series.patches], (
        "other titles"
    )
    for patch in series.patches:
        for part in (patch.title, patch.author, patch.date, patch.message_id, *patch.files):
            assert part.isprintable(), "a header that is not printable"
        patch.message.encode()
