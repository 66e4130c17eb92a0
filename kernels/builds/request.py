# SPDX-License-Identifier: GPL-2.0-or-later
"""The inputs of a build, and the keys that follow from them.

A key names every input whose code runs while the thing under the key is made. The objects of a base are an input of
everything that is built over them, because the base's own makefiles wrote them. So is the tree that the files come from:
a result from one tree is never used for another. docs/design/origins.md argues why that is enough.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass

from kernels.builds import front_sources
from kernels.builds.kbuild import ENVIRONMENT, make_flags
from kernels.builds.toolchain import Toolchain
from kernels.configs.request import ConfigRequest
from kernels.errors import ConfigRejected
from kernels.trees.tree import NamedRevision, SourceTree

# Part of every key: raise it when the way of building changes the bytes, or the meaning of a key.
RECIPE = 5
RELEASE_DIGITS = 12
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,60}")
_FILE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,60}")


@dataclass(frozen=True, slots=True)
class ModuleSource:
    """An external module: a name, and its files (Kbuild or Makefile, *.c, *.h) by plain name."""

    name: str
    files: Mapping[str, bytes]


@dataclass(frozen=True, slots=True)
class BuildRequest:
    """One variant to build: `revision` of a tree, over the layer of `base`.

    base_config: the config of the base where it differs from the variant's own (a config switch).
    trusted: whether the operator vouches for the code of the base: every later build may then use its compiled files.
    """

    tree: SourceTree
    base: NamedRevision
    revision: NamedRevision
    config: ConfigRequest
    toolchain: Toolchain
    modules: tuple[ModuleSource, ...] = ()
    base_config: ConfigRequest | None = None
    trusted: bool = False


def check_modules(modules: tuple[ModuleSource, ...]) -> None:
    """Raise ConfigRejected unless all names are plain and no module's name occurs twice."""
    names = [module.name for module in modules]
    for module in modules:
        if not _NAME.fullmatch(module.name) or names.count(module.name) > 1:
            raise ConfigRejected(
                f'"{module.name}" cannot name an external module here: use a-z, 0-9, _ and -, once'
            )
        for file in module.files:
            if not _FILE.fullmatch(file):
                raise ConfigRejected(f'external module "{module.name}": "{file}" is not a plain file name')


def front_recipe(withdrawal: str) -> str:
    """Return the recipe of builds by the compiler front. withdrawal: the token of the lab's last withdrawal of trust, "" before the first.

    Each base is built once more by another front: a variant over an older base would find none of the base's files in the store.
    Builds from before a withdrawal stored or used compiled files that are no longer trusted, so their keys must differ.
    """
    recipe = front_sources.recipe_of_sources()
    return f"{recipe} after {withdrawal}" if withdrawal else recipe


def artifact_key(request: BuildRequest, config: str, base_config: str, *, front: str = "") -> str:
    """Return 64 hex digits over everything that affects a build, including the layer it is built over.

    front: the recipe of the compiler front, which omits more debugging information than gcc alone does; "" for gcc alone.
    """
    modules = [
        [module.name, {name: hashlib.sha256(data).hexdigest() for name, data in sorted(module.files.items())}]
        for module in sorted(request.modules, key=lambda module: module.name)
    ]
    layer = layer_key(request, base_config, front=front)
    return _hash(["artifact", *_common(request, request.revision.tree_id, config, front), layer, modules])


def layer_key(request: BuildRequest, base_config: str, *, front: str = "") -> str:
    """Return the key of the object directory of the builds over this base: 32 hex digits.

    The directory is built without external modules, even if the request has some, by the base's own code or by that of another
    trusted revision with the same makefiles and tools (nearest_layer.py).
    """
    return _hash(["layer", *_common(request, request.base.tree_id, base_config, front)])[:32]


def family_key(request: BuildRequest, config: str, *, front: str = "") -> str:
    """Return 32 hex digits that are equal for the layers of all revisions that differ in nothing but their sources."""
    return _hash(["family", *_common(request, "", config, front)])[:32]


def local_version(key: str) -> str:
    """Return the end of the release, of the same length in every build, so that equal code can be recognised.

    It ends with "zq" because the linker stores a string that is the end of another one inside it. If the release ended with the key, one that
    ends in "a" would take in a kernel's string "a" and move it; with "q" alone, "cq" in one kernel of sixteen (docs/design/front.md).
    """
    return f"-k{key[:RELEASE_DIGITS]}zq"


def _common(request: BuildRequest, tree_id: str, config: str, front: str) -> list[object]:
    digest = hashlib.sha256(config.encode()).hexdigest()
    toolchain = request.toolchain
    return [
        RECIPE,
        request.tree.name,
        tree_id,
        digest,
        toolchain.identity,
        make_flags(toolchain),
        ENVIRONMENT,
        *([front] if front else []),
    ]


def _hash(facts: list[object]) -> str:
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()
