# SPDX-License-Identifier: GPL-2.0-or-later
"""Mails and mboxes: any bytes give a series or a refusal."""

from __future__ import annotations

from bench.fuzz.mutations import mutate_mail
from kernels.errors import PatchRejected
from kernels.patch import read_series

REFUSALS = (PatchRejected,)
mutate = mutate_mail


def feed(data: bytes) -> None:
    """Read a series, as an upload is read before its tree is known."""
    read_series(data)
