# SPDX-License-Identifier: GPL-2.0-or-later
"""Strangers' text on a terminal."""

from __future__ import annotations

import pytest

from workers.ctl.plaintext import plain_text


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("one\r\ntwo\r\r\n", "one\ntwo\n"),
        ("half of a line end\r", "half of a line end"),
        ("a\tb\n", "a\tb\n"),
        ("hidden\rshown\n", "hidden\N{REPLACEMENT CHARACTER}shown\n"),
        ("\x1b[2J", "\N{REPLACEMENT CHARACTER}[2J"),
    ],
)
def test_lines_of_a_serial_console_stay_lines_and_nothing_commands_the_terminal(
    written: str, shown: str
) -> None:
    assert plain_text(written) == shown
