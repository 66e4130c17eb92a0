# SPDX-License-Identifier: GPL-2.0-or-later
"""Read the types that the compiler wrote for a kernel's sources: which structure each slab cache allocates, and its fields.

The files are untrusted: they are read in the process that has no privileges, and its answer is checked once more.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from kernels.artifacts.structures import Structures
from kernels.builds.btf import Btf, BtfDamaged, Layout
from kernels.builds.slab_creations import creations, pointers
from kernels.errors import ReadingStopped
from kernels.sandbox.reader import ReaderLimits, opened, read_apart
from kernels.sandbox.reader_server import HeldFile

FILES = ("index", "blob", "pointers")
READER = "kernels.builds.written_types:prepare"
LIMITS = ReaderLimits(seconds=60, memory=1 << 30, answer=16 << 20)
MOST_FILES = 500
_MOST_BLOB, _MOST_POINTERS, _MOST_INDEX = 256 << 20, 4 << 20, 1 << 20
_INDEX = re.compile(r"([A-Za-z0-9_][\w.+/-]{0,299}) (\d{1,9}) (\d{1,9})")
# The allocator's own structure of a cache, which tells which caches were merged.
_ALWAYS = frozenset({"kmem_cache"})
# Types of variables to skip: tracepoints, tables of functions and others that no CPU writes to, and locks and lists, which count as one field.
_DULL = re.compile(
    r"trace|static_call|static_key|kernel_symbol|ctl_table|kernel_param|lockdep|_op(eration)?s$|kobj|kset"
    r"|lock$|^mutex$|semaphore$|list_(bl_)?head$|work(_struct)?$|^wait_queue_head$|^xarray$|^ida$|^cpumask$|^qstr$"
)


def read_written(folder: Path) -> Structures:
    """Return the structures that a script's run wrote to a folder. Raises ReadingStopped, ReaderUnavailable."""
    with opened(*(folder / name for name in FILES)) as files:
        answer = read_apart(
            READER, {"files": list(FILES)}, files, what="the types of the build", limits=LIMITS
        )
    try:
        return Structures.model_validate(answer.value)
    except ValidationError as exc:
        raise ReadingStopped("the types of the build are malformed") from exc


def prepare(_request: Mapping[str, Any]) -> Callable[[Sequence[HeldFile]], tuple[Any, Sequence[bytes]]]:
    """Return the reader of the script's output (see kernels/sandbox/reader.py)."""

    def read(files: Sequence[HeldFile]) -> tuple[Any, Sequence[bytes]]:
        index, blob, lines = files
        if blob.stat().st_size > _MOST_BLOB or lines.stat().st_size > _MOST_POINTERS:
            return {}, ()
        text = lines.read_bytes().decode(errors="replace")
        return read_types(
            index.read_bytes()[:_MOST_INDEX].decode(errors="replace"), blob.read_bytes(), text
        ), ()

    return read


def read_types(index: str, blob: bytes, lines: str) -> dict[str, Any]:
    """Return the value of a Structures. index: a line for each object: its name, and the bytes of its source and of its types, in `blob`'s order.

    A structure with different layouts in two files is left out. So is a cache that two files create with different structures.
    """
    points = pointers(lines)
    structs: dict[str, dict[str, Any]] = {}
    caches: dict[str, dict[str, Any]] = {}
    variables: dict[str, str] = {}
    unclear: set[str] = set()
    ambiguous: set[str] = set()
    for file, source, types in _pieces(index, blob):
        try:
            btf = Btf(types)
            made = [creation for creation in creations(source) if btf.structure_of(creation.struct)]
            own = {name: of for name, of in btf.variables().items() if not _DULL.search(of[0])}
            points |= {name: of for name, (of, is_pointer) in own.items() if is_pointer}
            here = {name: of for name, (of, is_pointer) in own.items() if not is_pointer}
            wanted = {btf.structure_of(creation.struct) for creation in made} | set(here.values())
            layouts = btf.layouts(wanted | set(points.values()) | _ALWAYS)
        except BtfDamaged:
            continue
        variables |= here
        for name, layout in layouts.items():
            if structs.setdefault(name, _struct(layout, file)) != _struct(layout, structs[name]["file"]):
                unclear.add(name)
        for creation in made:
            entry = {"struct": btf.structure_of(creation.struct), "is_exact": creation.is_exact, "file": file}
            if caches.setdefault(creation.cache, entry)["struct"] != entry["struct"]:
                ambiguous.add(creation.cache)
    known = {name: struct for name, struct in structs.items() if name not in unclear}
    return {
        "structs": known,
        "caches": {
            name: cache
            for name, cache in caches.items()
            if cache["struct"] in known and name not in ambiguous
        },
        "variables": {name: of for name, of in variables.items() if of in known},
        "pointers": {name: of for name, of in points.items() if of in known},
    }


def _pieces(index: str, blob: bytes) -> Iterator[tuple[str, str, bytes]]:
    """Yield each object's name, source and types."""
    at = 0
    for line in index.splitlines()[:MOST_FILES]:
        if not (match := _INDEX.fullmatch(line)):
            return
        middle = at + int(match[2])
        end = middle + int(match[3])
        yield match[1], blob[at:middle].decode(errors="replace"), blob[middle:end]
        at = end


def _struct(layout: Layout, file: str) -> dict[str, Any]:
    return {"size": layout.size, "file": file, "fields": [list(field) for field in layout.fields]}
