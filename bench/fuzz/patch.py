# SPDX-License-Identifier: GPL-2.0-or-later
"""Unified diffs: what is read renders to a diff that reads as the same."""

from kernels.diffs.safety import check_files
from kernels.diffs.unified import parse_diff, render_diff
from kernels.errors import PatchRejected

REFUSALS = (PatchRejected,)


def feed(data: bytes) -> None:
    """Parse, check, render, and parse once more."""
    files = parse_diff(data.decode("utf-8", "surrogateescape"))
    check_files(files)
    rendered = render_diff(files)
    assert render_diff(parse_diff(rendered)) == rendered, "a rendered diff reads as another one"
