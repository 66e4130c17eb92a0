# SPDX-License-Identifier: GPL-2.0-or-later
"""The structures.json of an artifact: the fields of its kernel's structures, and where objects of them lie.

It comes from a build of untrusted code, and is checked whenever it is read. Older artifacts have none, and neither have
those of compilers that cannot write types.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal, NamedTuple

from pydantic import BaseModel, Field, ValidationError

FILE = "structures.json"
MOST_BYTES = 16 << 20
_LARGEST, _MOST_FIELDS, _MOST_NAMES = 1 << 20, 2000, 5000

Name = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$", max_length=100)]
_CacheName = Annotated[str, Field(pattern=r"^[\w.:()/-]+$", max_length=60)]
_Path = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_.]*$", max_length=300)]
_File = Annotated[str, Field(pattern=r"^[A-Za-z0-9_][\w.+/-]*$", max_length=300)]
_Bytes = Annotated[int, Field(ge=0, le=_LARGEST)]


class StructField(NamedTuple):
    """A field. offset, size: in bytes. path: from the outermost structure; owner: the structure that declares it."""

    offset: _Bytes
    size: _Bytes
    path: _Path
    owner: Name


class Struct(BaseModel, frozen=True, extra="forbid"):
    """A structure: its size in bytes, its fields by offset, and the object file whose types say so."""

    size: _Bytes
    file: _File
    fields: Annotated[tuple[StructField, ...], Field(max_length=_MOST_FIELDS)]

    def field_at(self, offset: int) -> StructField | None:
        """Return the field that contains the byte at an offset."""
        return next(
            (field for field in self.fields if field.offset <= offset < field.offset + field.size), None
        )


class Cache(BaseModel, frozen=True, extra="forbid"):
    """A slab cache's structure. is_exact: an object has exactly its size. file: the object file that creates the cache."""

    struct: Name
    is_exact: bool
    file: _File


class Structures(BaseModel, frozen=True, extra="forbid"):
    """The structures of a kernel. caches: by name; variables, pointers: by a variable's name, the structure it is or points to."""

    version: Literal[1] = 1
    structs: Annotated[dict[Name, Struct], Field(max_length=_MOST_NAMES)] = {}
    caches: Annotated[dict[_CacheName, Cache], Field(max_length=_MOST_NAMES)] = {}
    variables: Annotated[dict[Name, Name], Field(max_length=_MOST_NAMES)] = {}
    pointers: Annotated[dict[Name, Name], Field(max_length=_MOST_NAMES)] = {}

    def over(self, base: Structures, files: frozenset[str]) -> Structures:
        """Return the structures of a variant that compiled these object files again and takes the others from its base."""
        structs = {name: struct for name, struct in base.structs.items() if struct.file not in files}
        caches = {name: cache for name, cache in base.caches.items() if cache.file not in files}
        return Structures(
            structs=structs | self.structs,
            caches=caches | self.caches,
            variables=base.variables | self.variables,
            pointers=base.pointers | self.pointers,
        )


def read_structures(path: Path) -> Structures | None:
    """Return the structures in a file; None if it is missing, or not of the form that we write."""
    try:
        with path.open("rb") as file:
            return Structures.model_validate_json(file.read(MOST_BYTES))
    except (OSError, ValidationError):
        return None
