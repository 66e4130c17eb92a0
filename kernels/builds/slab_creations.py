# SPDX-License-Identifier: GPL-2.0-or-later
"""Find in C sources which structure each slab cache allocates, and which static variables point to structures."""

from __future__ import annotations

import re
from typing import NamedTuple

# mm/slab.h and include/linux/slab.h: KMEM_CACHE(T, flags) makes a cache "T" of struct T.
_MACRO = re.compile(r"\bKMEM_CACHE(?:_USERCOPY)?\s*\(\s*(\w{1,100})\s*,")
_CALL = re.compile(r'\bkmem_cache_create\w{0,40}\s*\(\s*"([\w.:()/-]{1,60})"\s*,\s*([^,;]{1,200}),')
_SIZEOF = re.compile(r"\s*sizeof\s*\(\s*(?:struct\s+)?(\w{1,100})\s*\)\s*")
_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
_POINTER = re.compile(
    r"^(?:static )?struct (\w{1,100}) \*(\w{1,100})(?: __\w{1,40})*(?: = [^;]{1,200})?;", re.MULTILINE
)
CREATES = r"\b(kmem_cache_create|KMEM_CACHE)"
"""A grep -E pattern of files that create slab caches."""
POINTS = r"^(static )?struct [A-Za-z0-9_]+ \*[A-Za-z0-9_]+[ ;]"
"""A grep -E pattern of lines that may define a static pointer to a structure."""


class Creation(NamedTuple):
    """A slab cache and the structure (or the name of its type) in it. is_exact: the source says that an object has the size of the structure."""

    cache: str
    struct: str
    is_exact: bool


def creations(source: str) -> list[Creation]:
    """Return the slab caches that a source creates under a literal name.

    A cache whose size is computed (task_struct, mm_struct) allocates the structure of its own name, if there is one.
    """
    text = _COMMENT.sub(" ", source)
    caches = [Creation(name, name, True) for name in _MACRO.findall(text)]
    for cache, size in _CALL.findall(text):
        exact = _SIZEOF.fullmatch(size)
        caches.append(Creation(cache, exact[1] if exact else cache, bool(exact)))
    return caches


def pointers(lines: str) -> dict[str, str]:
    """Return by name the structure that a static variable points to; a name that stands for different structures is left out."""
    structs: dict[str, str] = {}
    twice = set()
    for struct, name in _POINTER.findall(lines):
        if structs.setdefault(name, struct) != struct:
            twice.add(name)
    return {name: struct for name, struct in structs.items() if name not in twice}
