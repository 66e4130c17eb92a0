# SPDX-License-Identifier: GPL-2.0-or-later
"""Puts the compiler front in the compiler's place for one build, and keeps what it compiled.

A build reads two stores: the trusted one, for which the operator vouches, and that of its base, whose code the
key of the artifact names. Only the build of a base adds files; the files that a variant compiled are removed with its build.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from kernels.builds.compiled_files import TRUSTED, CompiledFiles
from kernels.builds.front_program import SWEEP, FrontSettings, compile_front, front_identity, place_front
from kernels.builds.layers import own_directory
from kernels.sandbox.command import OBJECTS

# Below /build in the sandbox.
_PROGRAM, _STORE = "front", "compiled"
_WRITTEN = "compiled"
_OUT = f"/build/out/{_WRITTEN}"
PATH = f"/build/{_PROGRAM}:/usr/sbin:/usr/bin"
# Before make, over the objects of a base: objects that a changed header does not affect need no recipe. A failed sweep only costs time.
SWEEP_SCRIPT = (
    f'/build/{_PROGRAM}/{SWEEP} {OBJECTS} "$1" || echo "kperflab: the sweep ended with status $?"\n'
)
_READABLE = 0o755
_KNOWN = re.compile(r"gcc(-\d+)?")
# Below the folder of objects.
COMPILED = "compiled"
# Room for all stores together.
STORE_BYTES = 8 << 30
# Kinds of events in one line: a hostile build may invent many.
_MOST_KINDS = 12
# One answer in this many is compiled all the same, at some 1 % of the time that answers save: wrong ones are found and removed.
PROVEN = 128
# Events that an operator should know about.
FAULTS = frozenset({"corrupt", "differs", "not-kept", "refused", "unreachable"})


@dataclass(frozen=True, slots=True)
class FrontPlace:
    """The directories and the origin of one build by the front.

    shown: directories for the sandbox; written: where the build writes files; origin: names the store that it reads beside
    the trusted one; lost: the number of stores that could not be opened.
    """

    shown: dict[str, Path]
    written: Path
    origin: str
    lost: int


class Front:
    """The compiler front of a state directory."""

    def __init__(self, objects: Path) -> None:
        self._programs = objects / "front"
        self.stores = CompiledFiles(objects / COMPILED)

    def prepare(self, own: Path, out: Path, cc: str, origin: str) -> FrontPlace:
        """Return the front's place for one build. Raises HostUnfit.

        own: the build's own directory; out: its directory for results; origin: that of its base.
        """
        program, identity = compile_front(self._programs), front_identity(cc)
        written = own_directory(out / _WRITTEN)
        shown, lost = {}, 0
        for number, store in enumerate(self.stores.readable(origin)):
            try:
                store.mkdir(parents=True, exist_ok=True)
                store.chmod(_READABLE)
            except OSError:
                lost += 1
            else:
                shown[f"{_STORE}{number}"] = store
        settings = FrontSettings(
            cc,
            identity,
            [f"/build/{name}" for name in shown],
            _OUT,
            prove=PROVEN,
            # Comparing two releases does not show how code uses single digits, so a stranger's code is compiled with its own release.
            release_placeholder=origin == TRUSTED,
        )
        place_front(program, own / _PROGRAM, settings)
        (own / _PROGRAM).chmod(_READABLE)
        return FrontPlace({_PROGRAM: own / _PROGRAM, **shown}, written, origin, lost)

    def finish(self, place: FrontPlace, *, keep: bool) -> Counter[str]:
        """Return the events of a successful build by kind. keep: put the files that it wrote into its origin's store.

        Files that cannot be kept are compiled again later: no disk error ends a build here.
        """
        counts = Counter({"unreachable": place.lost} if place.lost else {})
        try:
            counts += (self.stores.take if keep else self.stores.follow)(place.origin, place.written)
            self.stores.trim(STORE_BYTES)
        except OSError:
            counts["unreachable"] += 1
        return counts


def knows(cc: str) -> bool:
    """Return whether the front knows a compiler, by its name: it reads gcc's assembly and no other."""
    return bool(_KNOWN.fullmatch(cc))


def origin_of_base(layer: str, *, trusted: bool) -> str:
    """Return the origin whose store keeps the files of a base, by the key of its layer."""
    return TRUSTED if trusted else f"base-{layer}"


def summary(counts: Counter[str]) -> str:
    """Return a line for a build's log."""
    other = [
        entry
        for entry in counts.most_common(_MOST_KINDS)
        if entry[0] not in ("hit", "miss", "same", "checked", "proven")
    ]
    rest = "".join(f", {name} {count}" for name, count in other)
    same = f", left {counts['same']} as they were" if counts["same"] else ""
    return f"kperflab: the compiler front answered {counts['hit']} files and compiled {counts['miss']}{same}{rest}"
