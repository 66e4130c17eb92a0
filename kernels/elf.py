# SPDX-License-Identifier: GPL-2.0-or-later
"""Tells whether two kernels run the same code, whatever they are called.

A vmlinux is compared by what the boot loads: its allocated sections but for notes (a note holds a
hash of the whole file, debug information included). Two things in them differ although no code
does, and are blanked: the release string, whose length is the same for every build of one tree, and
the line numbers of BUG and WARN sites, which move when a comment is added above them.

Modules are not linked yet: there the relocations and the symbols they name count as well.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from elftools.common.exceptions import ELFError
from elftools.elf.elffile import ELFFile

from kernels.errors import ArtifactCorrupt

_ALLOCATED = 0x2
# struct bug_entry of x86 with relative pointers: two s32, then u16 line, u16 flags.
_BUG_ENTRY, _BUG_LINE = 12, 8
# Never loaded, and different whenever a source line moves.
_UNLOADED = re.compile(r"(\.rela)?\.(debug_|comment|note)")
_BANNER = re.compile(rb"Linux version (\S{1,128}) \(")


def code_hash(vmlinux: Path, modules: Iterable[Path], release: str) -> str:
    """64 hex digits, equal for kernels (with modules) that differ in nothing but release and notes.

    Raises ArtifactCorrupt when a file is no ELF file.
    """
    digest = hashlib.sha256()
    for path in (vmlinux, *sorted(modules, key=lambda module: module.name)):
        wanted = _is_loaded if path == vmlinux else _is_linked
        digest.update(f"{'vmlinux' if path == vmlinux else path.name}\n".encode())
        for name, data in _sections(path, wanted):
            digest.update(f"{name} {len(data)}\n".encode())
            digest.update(_masked(name, data, release.encode()))
    return digest.hexdigest()


def read_release(vmlinux: Path) -> str:
    """The release in the kernel's own banner: what `uname -r` will say. Raises ArtifactCorrupt."""
    for name, data in _sections(vmlinux, _is_loaded):
        match = _BANNER.search(data) if name.startswith(".rodata@") else None
        if match:
            return match[1].decode("ascii", "replace")
    raise ArtifactCorrupt(f"{vmlinux} has no Linux banner; build it again")


def _sections(path: Path, wanted: Callable[[Any], bool]) -> Iterator[tuple[str, bytes]]:
    try:
        with path.open("rb") as file:
            for section in ELFFile(file).iter_sections():
                # A section without bits (bss) has only its size to compare.
                if section["sh_type"] == "SHT_NOBITS" and section["sh_flags"] & _ALLOCATED:
                    yield f"{section.name}@{section['sh_addr']:x}+{section['sh_size']:x}", b""
                elif wanted(section):
                    yield f"{section.name}@{section['sh_addr']:x}", section.data()
    except (ELFError, OSError, UnicodeDecodeError, ValueError, KeyError) as exc:
        raise ArtifactCorrupt(f"{path} is no readable ELF file: {exc}") from exc


def _is_loaded(section: Any) -> bool:
    return bool(section["sh_flags"] & _ALLOCATED) and section["sh_type"] != "SHT_NOTE"


def _is_linked(section: Any) -> bool:
    if section["sh_type"] in ("SHT_NULL", "SHT_NOTE"):
        return False
    return not _UNLOADED.match(section.name)


def _masked(name: str, data: bytes, release: bytes) -> bytes:
    if release and release in data:
        data = data.replace(release, b"\0" * len(release))
    if name.split("@")[0] == "__bug_table" and len(data) % _BUG_ENTRY == 0:
        blanked = bytearray(data)
        blanked[_BUG_LINE::_BUG_ENTRY] = bytes(len(data) // _BUG_ENTRY)
        blanked[_BUG_LINE + 1 :: _BUG_ENTRY] = bytes(len(data) // _BUG_ENTRY)
        return bytes(blanked)
    return data
