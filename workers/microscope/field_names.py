# SPDX-License-Identifier: GPL-2.0-or-later
"""Names the fields of structures that CPUs wait for, from the structures that a kernel's build wrote down.

A field is named only where it is certain: in a cache that SLUB merged with no other and whose objects are as large as the
structure, in an object that a static variable points to, in a static variable of its own.
"""

from __future__ import annotations

from collections.abc import Iterable

from kernels.artifacts.structures import Struct, StructField, Structures
from workers.microscope.slab_pages import Place

_MOST_FIELDS = 3
_LINE = 64
# mm/slab_common.c: what kmalloc gives is less than twice as large as what was asked for, from 8 bytes on.
_LEAST_SHARE = 2


class FieldNames:
    """The fields of one kernel's structures; none for a kernel without a structures.json."""

    def __init__(self, structures: Structures | None) -> None:
        self._structures = structures or Structures()

    def in_object(self, place: Place, used: Iterable[int], beside: str = ", ") -> str:
        """Return the fields of an object in use, such as "i_lock, i_count in struct inode (ext4_inode_info.vfs_inode)".

        used: sets of bytes from the place on, a bit each, the most important first. beside: between two fields. "" for none known.
        """
        name, by = self._struct_of(place)
        struct = self._structures.structs.get(name)
        if struct is None:
            return ""
        offsets = ((place.offset + bit) % place.size for bytes_ in used for bit in _bits(bytes_))
        return _told(name, struct, offsets, beside, by)

    def in_variable(self, name: str, offset: int, used: Iterable[int], beside: str = ", ") -> str:
        """Return the fields of a static structure in use, as `in_object`. offset: of byte 0 of the sets, and may be negative."""
        of = self._structures.variables.get(name, "")
        struct = self._structures.structs.get(of)
        if struct is None:
            return ""
        offsets = (offset + bit for bytes_ in used for bit in _bits(bytes_) if offset + bit >= 0)
        return _told(of, struct, offsets, beside)

    def _struct_of(self, place: Place) -> tuple[str, str]:
        """Return the structure of an object, and the pointer that says so; ("", "") where it is not certain."""
        structs = self._structures.structs
        cache = self._structures.caches.get(place.cache)
        if cache and (struct := structs.get(cache.struct)) and place.asked:
            return (cache.struct, "") if place.asked == struct.size or not cache.is_exact else ("", "")
        name = self._structures.pointers.get(place.pointer, "")
        pointed = structs.get(name)
        if pointed is None or not place.size // _LEAST_SHARE < pointed.size <= place.size:
            return "", ""
        return name, place.pointer


def _bits(bytes_: int) -> Iterable[int]:
    return (bit for bit in range(_LINE) if bytes_ >> bit & 1)


def _told(name: str, struct: Struct, offsets: Iterable[int], beside: str, by: str = "") -> str:
    fields = list(dict.fromkeys(one for offset in offsets if (one := struct.field_at(offset))))
    more = len(fields) > _MOST_FIELDS
    by_place: dict[str, list[str]] = {}
    for one in fields[:_MOST_FIELDS]:
        by_place.setdefault(_where(name, one, by), []).append(one.path.rpartition(".")[2])
    said = [f"{beside.join(names)} in {where}" for where, names in by_place.items()]
    return beside.join(said) + (" and more" if more else "")


def _where(name: str, field: StructField, by: str) -> str:
    inner = field.path.rpartition(".")[0]
    path = f"{name}.{inner}" if inner else ""
    through = ", ".join(part for part in (path, f"*{by}" if by else "") if part)
    return f"struct {field.owner}" + (f" ({through})" if through else "")
