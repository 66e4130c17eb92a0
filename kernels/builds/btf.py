# SPDX-License-Identifier: GPL-2.0-or-later
"""Read the layout of structures from a .BTF section, as gcc writes it with -gbtf (Documentation/bpf/btf.rst).

The section comes out of a build of untrusted code: every number in it may be anything. Numbers that do not fit raise
BtfDamaged; the depth and the number of the references that are followed are bounded.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from kernels.artifacts.structures import StructField
from kernels.errors import KernelsError

_HEADER = struct.Struct("<HBBIIIII")
_MAGIC, _VERSION = 0xEB9F, 1
_TYPE, _MEMBER = struct.Struct("<III"), struct.Struct("<III")
_INT, _PTR, _ARRAY, _STRUCT, _UNION, _ENUM, _TYPEDEF = 1, 2, 3, 4, 5, 6, 8
_VAR, _FLOAT, _ENUM64 = 14, 16, 19
# typedef, volatile, const, restrict, type tag: another type under a name or with a qualifier.
_ALIASES = frozenset({_TYPEDEF, 9, 10, 11, 18})
# Bytes behind a type's first twelve: a fixed part by kind (_MORE), and a part for each member (_EACH).
_MORE = {_INT: 4, _ARRAY: 12, _VAR: 4, 17: 4}
_EACH = {_STRUCT: 12, _UNION: 12, _ENUM: 8, 13: 8, 15: 12, _ENUM64: 12}
_LAST_KIND = _ENUM64
_MOST_TYPES, _MOST_FIELDS, _DEEPEST, _LARGEST = 500_000, 2000, 16, 1 << 20
_NAME = re.compile(rb"[A-Za-z_][A-Za-z0-9_]{0,99}\0")
_POINTER = 8
# A structure that fills more than a cache line is shown by its own fields; a lock or a list is one field.
_LINE = 64


class BtfDamaged(KernelsError):
    """A .BTF section that no compiler writes."""

    blame = "kernel"


@dataclass(frozen=True, slots=True)
class Layout:
    """A structure: its size in bytes, and its fields by offset, which do not overlap."""

    size: int
    fields: tuple[StructField, ...]


class _Type(NamedTuple):
    kind: int
    name: int
    vlen: int
    is_packed: bool
    value: int
    at: int


class Btf:
    """The types of one .BTF section. Raises BtfDamaged here and in every method."""

    def __init__(self, data: bytes) -> None:
        try:
            magic, version, _, length, types_at, types, strings_at, strings = _HEADER.unpack_from(data)
        except struct.error as exc:
            raise BtfDamaged("too short") from exc
        if (magic, version) != (_MAGIC, _VERSION) or length < _HEADER.size:
            raise BtfDamaged("no BTF of version 1")
        self._types = memoryview(data)[length + types_at : length + types_at + types]
        self._strings = data[length + strings_at : length + strings_at + strings]
        self._all = list(self._read())
        self._structures, self._typedefs = self._named(_STRUCT), self._named(_TYPEDEF)

    def structure_of(self, name: str) -> str:
        """Return the name of the structure that a structure's or a typedef's name means; "" for none."""
        if name in self._structures:
            return name
        number = self._resolved(self._typedefs[name]) if name in self._typedefs else 0
        return self._name(self._all[number].name) if self._all[number].kind == _STRUCT else ""

    def layouts(self, names: Iterable[str]) -> dict[str, Layout]:
        """Return the layouts of the named structures, as far as the section has them."""
        return {
            name: self.layout(self._structures[name]) for name in sorted(names) if name in self._structures
        }

    def variables(self) -> dict[str, tuple[str, bool]]:
        """Return, for each variable that is a structure or points to one, the structure's name and whether it points."""
        variables = {}
        for name, number in self._named(_VAR).items():
            number, pointer = self._resolved(self._all[number].value), False
            if number and self._all[number].kind == _PTR:
                number, pointer = self._resolved(self._all[number].value), True
            if number and self._all[number].kind == _STRUCT and (of := self._name(self._all[number].name)):
                variables[name] = (of, pointer)
        return variables

    def layout(self, number: int) -> Layout:
        """Return the layout of a structure by its number."""
        fields: list[StructField] = []
        end = 0
        owner = self._name(self._all[number].name)
        for field in self._fields(number, 0, "", owner, 0):
            if len(fields) == _MOST_FIELDS:
                break
            if field.offset >= end and field.size:  # of a union, the first member counts
                fields.append(field)
                end = field.offset + field.size
        return Layout(self._size(number, 0), tuple(fields))

    def _read(self) -> Iterator[_Type]:
        yield _Type(0, 0, 0, False, 0, 0)  # void
        at, count = 0, 1
        while at < len(self._types):
            try:
                name, info, value = _TYPE.unpack_from(self._types, at)
            except struct.error as exc:
                raise BtfDamaged("a type is cut short") from exc
            kind, vlen = info >> 24 & 31, info & 0xFFFF
            count += 1
            if not 1 <= kind <= _LAST_KIND or count > _MOST_TYPES:
                raise BtfDamaged("a type is of no known kind, or there are too many")
            at += _TYPE.size
            yield _Type(kind, name, vlen, bool(info >> 31), value, at)
            at += _MORE.get(kind, 0) + vlen * _EACH.get(kind, 0)

    def _named(self, kind: int) -> dict[str, int]:
        numbers: dict[str, int] = {}
        for number, btf_type in enumerate(self._all):
            if btf_type.kind == kind and (name := self._name(btf_type.name)):
                numbers.setdefault(name, number)
        return numbers

    def _name(self, at: int) -> str:
        name = _NAME.match(self._strings, at) if 0 < at < len(self._strings) else None
        return name[0][:-1].decode() if name else ""

    def _type(self, number: int) -> _Type:
        if not 0 <= number < len(self._all):
            raise BtfDamaged("a type refers to one that is not there")
        return self._all[number]

    def _resolved(self, number: int) -> int:
        """Return a type without its names and qualifiers."""
        for _ in range(_DEEPEST):
            if self._type(number).kind not in _ALIASES:
                return number
            number = self._all[number].value
        raise BtfDamaged("names of names without an end")

    def _members(self, btf_type: _Type) -> Iterator[tuple[str, int, int, int]]:
        """Yield each member's name, type, offset and size in bits; the size is 0 unless it is a bit field."""
        for place in range(btf_type.vlen):
            try:
                name, number, offset = _MEMBER.unpack_from(self._types, btf_type.at + place * _MEMBER.size)
            except struct.error as exc:
                raise BtfDamaged("a structure is cut short") from exc
            bits = offset >> 24 if btf_type.is_packed else 0
            yield self._name(name), number, offset & 0xFFFFFF if btf_type.is_packed else offset, bits

    def _fields(self, number: int, base: int, path: str, owner: str, depth: int) -> Iterator[StructField]:
        if depth > _DEEPEST:
            raise BtfDamaged("structures in structures without an end")
        last = base
        for name, of, offset, bits in self._members(self._type(number)):
            of, begin = self._resolved(of), base + offset // 8
            if begin > _LARGEST:
                raise BtfDamaged("a field lies behind its structure")
            btf_type = self._type(of)
            size = (offset % 8 + bits + 7) // 8 if bits else self._size(of, 0)
            full = f"{path}.{name}" if path and name else path or name
            is_whole = btf_type.kind in (_STRUCT, _UNION)
            if is_whole and not name:
                yield from self._fields(of, begin, path, owner, depth + 1)
            elif btf_type.kind == _STRUCT and size > _LINE and self._name(btf_type.name):
                yield from self._fields(of, begin, full, self._name(btf_type.name), depth + 1)
            elif name:
                if bits and begin < last:  # bit fields share a byte, which has the name of the first
                    begin, size = last, begin + size - last
                yield StructField(begin, max(size, 0), full, owner)
            last = max(last, begin + size)

    def _size(self, number: int, depth: int) -> int:
        number = self._resolved(number)
        btf_type = self._type(number)
        if btf_type.kind in (_INT, _STRUCT, _UNION, _ENUM, _FLOAT, _ENUM64):
            size = btf_type.value
        elif btf_type.kind == _ARRAY and depth < _DEEPEST:
            try:
                of, _, count = _MEMBER.unpack_from(self._types, btf_type.at)
            except struct.error as exc:
                raise BtfDamaged("an array is cut short") from exc
            size = self._size(of, depth + 1) * count
        else:
            size = _POINTER if btf_type.kind == _PTR else 0
        if size > _LARGEST:
            raise BtfDamaged("a type is larger than any object")
        return size
