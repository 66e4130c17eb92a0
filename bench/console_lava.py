# SPDX-License-Identifier: GPL-2.0-or-later
"""LAVA's console patterns, as a peer: the patterns of lava_dispatcher/utils/messages.py at 02493d77.

LAVA waits for any of these while a board boots and tests run; the kind follows from the pattern, and a block that
begins with "cut here" gets its kind from the words in it.
"""

from __future__ import annotations

import re

STARTS = (
    rb"-\[ cut here \]",
    rb"Unhandled fault",
    rb"BUG: KCSAN:",
    rb"BUG: KASAN:",
    rb"BUG: KFENCE:",
    rb"Oops(?: -|:)",
    rb"WARNING:",
    rb"(kernel BUG at|BUG:)",
    rb"invalid opcode:",
    rb"Kernel panic - not syncing",
    rb"U-Boot SPL 20[0-9][0-9]",
)
ANY = re.compile(b"|".join(STARTS))


def lava_flags(text: bytes) -> bool:
    """Return whether LAVA would report a console."""
    return ANY.search(text) is not None


def lava_count(text: bytes) -> int:
    """Return how many starts of messages LAVA would meet; for measuring how quickly it reads."""
    return sum(1 for _ in ANY.finditer(text))
