# SPDX-License-Identifier: GPL-2.0-or-later
"""A file in memory, for readers that take files."""

import os
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class MemoryFile:
    """A kernels.artifacts.elf_sections.Readable of some bytes."""

    data: bytes
    name: str = "fuzz"

    def read_bytes(self) -> bytes:
        """Return all of it."""
        return self.data

    def stat(self) -> os.stat_result:
        """Return its size, and nothing else that is true."""
        return os.stat_result((0, 0, 0, 0, 0, 0, len(self.data), 0, 0, 0))
