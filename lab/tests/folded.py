# SPDX-License-Identifier: GPL-2.0-or-later
"""Folded stacks as text, read back."""

from collections import Counter

Stack = tuple[str, ...]


def read_folded(text: str) -> dict[Stack, int]:
    folded: Counter[Stack] = Counter()
    for line in text.splitlines():
        stack, _, count = line.rpartition(" ")
        folded[tuple(stack.split(";"))] += int(count)
    return dict(folded)
