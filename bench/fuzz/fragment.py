# SPDX-License-Identifier: GPL-2.0-or-later
"""Kconfig fragments: what is read is written in the kernel's own form, and reads as the same."""

from kernels.configs.request import Fragment, fragment_text, read_fragment
from kernels.errors import ConfigRejected

REFUSALS = (ConfigRejected,)


def feed(data: bytes) -> None:
    """Read a fragment, write it, and read it again."""
    first = read_fragment(Fragment("fuzz", data.decode("utf-8", "replace")))
    second = read_fragment(Fragment("fuzz", fragment_text(first)))
    assert [str(line) for line in first] == [str(line) for line in second], "a fragment reads as another one"
