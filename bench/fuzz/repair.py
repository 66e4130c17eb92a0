# SPDX-License-Identifier: GPL-2.0-or-later
"""Damaged diffs against a base of a few small files: what is repaired is a diff that applies to that base."""

from bench.fuzz.mutations import mutate_mail
from kernels.diffs.unified import parse_diff
from kernels.errors import PatchRejected
from kernels.repair.intake import take_in
from kernels.tests.damaging import BEFORE, reader

REFUSALS = (PatchRejected,)
mutate = mutate_mail


def feed(data: bytes) -> None:
    """Take a submission in, and read what it became."""
    intake = take_in(data, reader(BEFORE))
    for series in (intake.series, *intake.alternatives):
        for patch in series.patches:
            assert parse_diff(patch.diff), "a patch without a change"
