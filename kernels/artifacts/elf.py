# SPDX-License-Identifier: GPL-2.0-or-later
"""Compare the code of two kernels, whatever their releases.

A vmlinux is compared by the bytes that a boot loads: its allocated sections, and the bytes of its segments outside of them (see
elf_segments.py). The build id in its notes, a hash of the whole file with its debug information, is blanked. Three other parts differ even if no code
does, and are blanked too: the release string, whose length is the same for every build of one tree; the
line numbers of BUG and WARN sites, which move when a comment is added above them; and the names in
kallsyms, where an initcall's name holds its line number. If their length changes, addresses move,
and the kernels count as different: that costs a needless boot, but never makes a claim wrong.

Modules are not linked yet: there the relocations and the symbols they name count as well.
"""

from __future__ import annotations

import hashlib
import re
import struct
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator

from kernels.artifacts.elf_sections import (
    ALLOCATED,
    COMPRESSED,
    EXECUTABLE,
    NOBITS,
    NOTE,
    NULL,
    Readable,
    Section,
    sections,
)
from kernels.artifacts.elf_segments import build_ids, undescribed, without_build_id
from kernels.errors import ArtifactCorrupt

# Sizes of struct bug_entry with relative pointers: s32 of the code, since 6.19 s32 of a format, s32 of the file; u16 line, u16 flags.
_BUG_ENTRIES, _BUG_LINE_FROM_END = (12, 16), 4
# Never loaded, and different whenever a source line moves.
_UNLOADED = re.compile(r"(\.rela)?\.(debug_|comment|note)")
_BANNER = re.compile(rb"Linux version (\S{1,128}) \(")
_SYMBOL = struct.Struct("<IBBHQQ")
_KALLSYMS = re.compile(
    rb"\0kallsyms_(offsets|relative_base|num_syms|names|markers|token_table|token_index|seqs_of_names)(?=\0)"
)
_NAMES = {"names", "markers", "token_table", "token_index", "seqs_of_names"}
# kallsyms_token_index: 256 u16; kallsyms_seqs_of_names: 3 bytes a symbol. The others end where the next begins.
_TOKEN_INDEX_BYTES, _SEQUENCE_BYTES = 512, 3

Span = tuple[int, int]


def code_hash(vmlinux: Readable, modules: Iterable[Readable], release: str) -> str:
    """Return 64 hex digits, equal for kernels (with modules) that differ in nothing but the blanked parts.

    Raises ArtifactCorrupt when a file is not an ELF file.
    """
    digest = hashlib.sha256(b"vmlinux\n")
    names, bug_entry = _name_spans(vmlinux), _bug_entry_size(vmlinux)
    # Kernels with different blanked parts count as different.
    digest.update(f"names {sorted(names)}\n".encode())
    for name, address, data in _sections(vmlinux, _is_loaded):
        digest.update(f"{name} {address:x} {len(data)}\n".encode())
        kept = _without(data, address, names) if name == ".rodata" else data
        digest.update(_blanked(name, kept, release.encode(), bug_entry))
    for name, address, data in _sections(vmlinux, lambda section: section.kind == NOTE):
        digest.update(f"{name} {address:x} {len(data)}\n".encode())
        digest.update(without_build_id(data))
    for address, data in undescribed(vmlinux):
        digest.update(f"undescribed {address:x} {len(data)}\n".encode())
        digest.update(_blanked("", data, release.encode(), bug_entry))
    for path in sorted(modules, key=lambda module: module.name):
        digest.update(f"{path.name}\n".encode())
        for name, _, data in _sections(path, _is_linked):
            digest.update(f"{name} {len(data)}\n".encode())
            digest.update(_blanked(name, data, release.encode(), bug_entry))
    return digest.hexdigest()


def read_release(vmlinux: Readable) -> str:
    """Return the release in the kernel's own banner, as `uname -r` will print it. Raises ArtifactCorrupt."""
    for name, _, data in _sections(vmlinux, _is_loaded):
        match = _BANNER.search(data) if name == ".rodata" else None
        if match:
            return match[1].decode("ascii", "replace")
    raise ArtifactCorrupt(f"{vmlinux.name} has no Linux banner; build it again")


def read_build_id(vmlinux: Readable) -> str:
    """Return the linker's build id in hex, as the running kernel shows it in /sys/kernel/notes; "" if there is none.

    Raises ArtifactCorrupt when the file is not an ELF file.
    """
    notes = _sections(vmlinux, lambda section: section.kind == NOTE)
    return next(filter(None, (build_id_in(data) for _, _, data in notes)), "")


def build_id_in(notes: bytes) -> str:
    """Return the build id, in hex, from ELF notes such as /sys/kernel/notes; "" if there is none."""
    return next((notes[place].hex() for place in build_ids(notes)), "")


def _sections(file: Readable, wanted: Callable[[Section], bool]) -> Iterator[tuple[str, int, bytes]]:
    """Yield name, address and bytes of sections; a section without bytes (bss) has its size in its name."""
    for section in sections(file):
        if section.kind == NOBITS:
            yield f"{section.name}+{section.size:x}", section.address, b""
        elif wanted(section):
            if section.flags & COMPRESSED:
                raise ArtifactCorrupt(f"{file.name} has sections that kernels do not have; build it again")
            yield section.name, section.address, bytes(section.data)


def _is_loaded(section: Section) -> bool:
    return bool(section.flags & ALLOCATED) and section.kind != NOTE


def _is_linked(section: Section) -> bool:
    if section.kind in (NULL, NOTE):
        return False
    return not _UNLOADED.match(section.name)


def _blanked(name: str, data: bytes, release: bytes, bug_entry: int) -> bytes:
    if release and release in data:
        data = data.replace(release, bytes(len(release)))
    if name == "__bug_table" and bug_entry and len(data) % bug_entry == 0:
        blanked = bytearray(data)
        line = bug_entry - _BUG_LINE_FROM_END
        for position in (line, line + 1):
            blanked[position::bug_entry] = bytes(len(data) // bug_entry)
        return bytes(blanked)
    return data


def _bug_entry_size(vmlinux: Readable) -> int:
    """Return the size of a kernel's struct bug_entry, with which every entry begins with the place of some code; 0 if none fits."""
    parts = list(sections(vmlinux))
    code = [(part.address, part.size) for part in parts if part.flags & EXECUTABLE]
    table = next((part for part in parts if part.name == "__bug_table"), None)
    for size in _BUG_ENTRIES:
        if table and len(table.data) % size == 0:
            offsets = struct.iter_unpack(f"<i{size - 4}x", table.data)
            places = (table.address + at * size + offset for at, (offset,) in enumerate(offsets))
            if all(any(0 <= place - start < length for start, length in code) for place in places):
                return size
    return 0


def _without(data: bytes, address: int, spans: Iterable[Span]) -> bytes:
    inside = [(start - address, end - address) for start, end in spans if 0 <= start - address < len(data)]
    if not inside:
        return data
    blanked = bytearray(data)
    for start, end in inside:
        end = min(end, len(data))
        blanked[start:end] = bytes(max(0, end - start))
    return bytes(blanked)


def _name_spans(vmlinux: Readable) -> list[Span]:
    """Return the address ranges where kallsyms keeps names; empty in a kernel without it."""
    parts = {name: (address, data) for name, address, data in _sections(vmlinux, _tells_of_names)}
    base, rodata = parts.get(".rodata", (0, b""))
    names, symbols = parts.get(".strtab", (0, b""))[1], parts.get(".symtab", (0, b""))[1]
    offsets = {match.start() + 1: match[1].decode() for match in _KALLSYMS.finditer(names)}
    symbols = symbols[: len(symbols) // _SYMBOL.size * _SYMBOL.size]
    starts = {offsets[entry[0]]: entry[4] for entry in _SYMBOL.iter_unpack(symbols) if entry[0] in offsets}
    place = starts.get("num_syms", base) - base
    count = int.from_bytes(rodata[place : place + 4], "little") if place > 0 else 0
    sizes = {"token_index": _TOKEN_INDEX_BYTES, "seqs_of_names": _SEQUENCE_BYTES * count}
    addresses = sorted(starts.values())
    spans = []
    for name in _NAMES & starts.keys():
        start = starts[name]
        after = bisect_right(addresses, start)
        behind = addresses[after] if after < len(addresses) else start
        end = start + sizes[name] if name in sizes else behind
        # Names lie in .rodata in every kernel: a table that reaches outside of it, such as into code, is not blanked.
        if base <= start < end <= base + len(rodata):
            spans.append((start, end))
    return spans


def _tells_of_names(section: Section) -> bool:
    return section.name in (".rodata", ".symtab", ".strtab")
