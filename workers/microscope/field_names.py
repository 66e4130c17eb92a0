# SPDX-License-Identifier: GPL-2.0-or-later
"""Names the fields of structures that CPUs wait for, from the structures that a kernel's build wrote down.

A field is named where it is certain: in a cache that SLUB merged with no other and whose objects are as large as the
structure, in an object that a static variable points to, in a static variable of its own. In a merged cache it is "perhaps".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from kernels.artifacts.structures import Struct, StructField, Structures
from workers.microscope.contention import LineWaits
from workers.microscope.slab_pages import Place

_MOST_FIELDS = 3
# As a share of the waits for the most waited-for field. Fields with less came along with it.
_LEAST = 0.1
_LINE = 64
# mm/slab_common.c: kmalloc returns less than twice the size that was asked for, from 8 bytes on.
_LEAST_SHARE = 2


@dataclass(frozen=True, slots=True)
class _Found:
    """A structure in memory. by: the static variable that points to it. merged: other objects may lie there as well."""

    name: str
    struct: Struct
    by: str = ""
    merged: bool = False

    def shown(self, field: StructField) -> tuple[str, str]:
        """Return a field's name, and the structure that it is in: ("i_lock", "struct inode (ext4_inode_info.vfs_inode)")."""
        inner, _, name = field.path.rpartition(".")
        path = f"{self.name}.{inner}" if inner else ""
        through = ", ".join(part for part in (path, f"*{self.by}" if self.by else "") if part)
        return name, f"struct {field.owner}" + (f" ({through})" if through else "")


class FieldNames:
    """The fields of one kernel's structures; none for a kernel without a structures.json."""

    def __init__(self, structures: Structures | None) -> None:
        self._structures = structures or Structures()

    def at(self, place: Place) -> str:
        """Return the field at a place in an object, "" for none known."""
        structure = self._in(place)
        field = structure.struct.field_at(place.offset) if structure else None
        return _description([field], [], structure) if structure and field else ""

    def in_line(self, place: Place, line: LineWaits) -> str:
        """Return the fields of a line that begins at a place: "i_count beside i_flags in struct inode (ext4_inode_info.vfs_inode)".

        With false sharing, the fields before "beside" are written to. "" for none known.
        """
        structure = self._in(place)
        return _waited(structure, line, range(_LINE), lambda byte: (place.offset + byte) % place.size)

    def at_variable(self, name: str, offset: int) -> str:
        """Return the field at a place in a static structure, "" for none known."""
        of = self._structures.variables.get(name, "")
        struct = self._structures.structs.get(of)
        field = struct.field_at(offset) if struct else None
        return _description([field], [], _Found(of, struct)) if struct and field else ""

    def in_variable(self, name: str, line: LineWaits, start: int, end: int) -> str:
        """Return the fields of a static structure from one address to another that are in a line, as in_line."""
        of = self._structures.variables.get(name, "")
        struct = self._structures.structs.get(of)
        first, last = max(start - line.address, 0), min(end - line.address, _LINE)
        structure = _Found(of, struct) if struct else None
        return _waited(structure, line, range(first, last), lambda byte: line.address + byte - start)

    def _in(self, place: Place) -> _Found | None:
        """Return the structure of an object, None if it is not known."""
        structs = self._structures.structs
        cache = self._structures.caches.get(place.cache)
        struct = structs.get(cache.struct) if cache else None
        if cache and struct and place.asked and (place.asked == struct.size or not cache.is_exact):
            return _Found(cache.struct, struct)
        name = self._structures.pointers.get(place.pointer, "")
        pointed = structs.get(name)
        if pointed and place.size // _LEAST_SHARE < pointed.size <= place.size:
            return _Found(name, pointed, place.pointer)
        if cache and struct and place.is_merged and struct.size <= place.size:
            return _Found(cache.struct, struct, merged=True)
        return None


def _waited(structure: _Found | None, line: LineWaits, bytes_: range, offset: Callable[[int], int]) -> str:
    """Return what CPUs waited for in some bytes of a line. offset: in the structure, of a byte of the line."""
    if structure is None:
        return ""
    cycles: dict[StructField, int] = {}
    for byte, waited in line.bytes:
        if byte in bytes_ and (field := structure.struct.field_at(offset(byte))):
            cycles[field] = cycles.get(field, 0) + waited
    most = max(cycles.values(), default=0)
    fields = sorted(
        (member for member in cycles if cycles[member] >= _LEAST * most), key=lambda member: -cycles[member]
    )
    if not line.false_sharing:
        return _description(fields, [], structure)
    changed = {
        field: None
        for byte in bytes_
        if line.written >> byte & 1 and (field := structure.struct.field_at(offset(byte)))
    }
    read = [member for member in fields if member not in changed]
    written = [member for member in fields if member in changed]
    if not read:  # each CPU writes to its own
        return _description(written[:1], written[1:], structure)
    # The writer may hardly ever wait itself.
    return _description(written or list(changed)[:1], read, structure)


def _description(fields: Sequence[StructField], beside: Sequence[StructField], structure: _Found) -> str:
    sides = [[structure.shown(field) for field in side[:_MOST_FIELDS]] for side in (fields, beside) if side]
    where = {place for side in sides for _, place in side}
    if len(where) == 1:
        said = " beside ".join(", ".join(name for name, _ in side) for side in sides) + f" in {where.pop()}"
    else:
        said = " beside ".join(", ".join(f"{name} in {place}" for name, place in side) for side in sides)
    return f"perhaps {said}" if structure.merged and said else said
