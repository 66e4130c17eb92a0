# SPDX-License-Identifier: GPL-2.0-or-later
"""Have the compiler write down the structures of a built kernel, without changing a byte of it or its objects.

Kernels are built with line tables only. After a build, in its sandbox, the files that create slab caches are compiled
once more by their recorded commands, with gcc's -gbtf, and only as far as types are known: -flto leaves the code to a
linker that is never called. Their output is untrusted, and is read in the process that has no privileges.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, replace
from pathlib import Path

from kernels.artifacts.structures import Structures
from kernels.builds.kbuild import ENVIRONMENT
from kernels.builds.layers import Layers, own_directory
from kernels.builds.progress import BuildProgress
from kernels.builds.slab_creations import CREATES, POINTS
from kernels.builds.written_types import MOST_FILES, read_written
from kernels.errors import ReaderUnavailable, ReadingStopped, SandboxFailed
from kernels.sandbox.command import OBJECTS, OUT, SOURCE, Layer, Limits, SandboxPlace, run

FOLDER, ONLY = "structures", "only"
"""Below OUT: the folder that the script writes, and the file that names the objects whose sources are to be compiled."""
# debian-6.1 takes a tenth of this.
_CPU_SECONDS = 900.0
_OBJECT = re.compile(r"[A-Za-z0-9_][\w.+/-]{0,300}\.o")
# Levels of nested folders: 6.12 has eight.
_DEEPEST = 24

# The recorded command up to the first " ; " is the compiler's. Its dependency output, debug options and output file are removed.
COMPILE = r"""
object=$1; number=$2
command=$(sed -n '1s/^[^:]*:= //p' "$(dirname "$object")/.$(basename "$object").cmd" |
    sed 's/ ; .*//; s/ -Wp,-MMD,[^ ]*//; s/ -o [^ ]*//; s/ -g[0-9]* / /g')
eval "$command -w -gbtf -flto -fno-fat-lto-objects -o /tmp/types/$number.o" >/dev/null 2>&1 &&
objcopy -O binary --only-section=.BTF --set-section-flags .BTF=alloc /tmp/types/$number.o /tmp/types/$number.btf
rm -f /tmp/types/$number.o
"""
# find's own order differs from build to build.
SCRIPT = f"""
cores=$1; compile=$2; mkdir /tmp/types {OUT}/{FOLDER}; cd {OBJECTS}
find . -name '.*.o.cmd' -exec sed -n 's,^source_\\([^ ]*\\.o\\) := {SOURCE}/\\([^ ]*\\.c\\)$,\\1 \\2,p' {{}} + |
    sort -u >/tmp/sources
sed 's,.* ,{SOURCE}/,' /tmp/sources | xargs -r grep -hE '{POINTS}' >{OUT}/{FOLDER}/pointers
sed 's,.* ,{SOURCE}/,' /tmp/sources | xargs -r grep -lE '{CREATES}' | sed 's,^{SOURCE}/,,' | sort >/tmp/creators
awk 'FILENAME == "/tmp/creators" {{ creates[$1] }} FILENAME == "{OUT}/{ONLY}" {{ only[$1] }}
     FILENAME == "/tmp/sources" && ($2 in creates) && ($1 in only) {{ print $1, ++n, $2 }}' \\
    /tmp/creators {OUT}/{ONLY} /tmp/sources | head -n {MOST_FILES} >/tmp/list
cut -d' ' -f1,2 /tmp/list | xargs -r -n 2 -P "$cores" sh -c "$compile" sh
: >{OUT}/{FOLDER}/blob; : >{OUT}/{FOLDER}/index
while read -r object number source
do [ -s /tmp/types/$number.btf ] || {{ echo "no types of $object"; continue; }}
   echo "$object $(stat -Lc %s {SOURCE}/$source) $(stat -c %s /tmp/types/$number.btf)" >>{OUT}/{FOLDER}/index
   cat {SOURCE}/$source /tmp/types/$number.btf >>{OUT}/{FOLDER}/blob
done </tmp/list
"""


@dataclass(frozen=True, slots=True)
class FinishedBuild:
    """A finished build: its sources and objects as they were in the sandbox, the key of its base's layer, and a directory of its own."""

    source: Layer
    objects: Layer
    layer: str
    own: Path


class StructureFinder:
    """Finds the structures of finished builds; it reports successes and failures in the build's log."""

    def __init__(self, layers: Layers, limits: Limits, progress: BuildProgress) -> None:
        self._layers, self._progress = layers, progress
        self._limits = replace(limits, cpu_seconds=_CPU_SECONDS)

    def of(self, built: FinishedBuild) -> Structures | None:
        """Return the structures of a build; None where they are not available.

        For a variant, only the files that its build compiled are compiled; the other structures are its base's. An exception
        that progress.tick raises is passed on.
        """
        if built.objects.upper is None:
            return self._find(built, compiled_in(built.objects.lower), "types")
        compiled = compiled_in(built.objects.upper)
        base = self._layers.structures(built.layer)
        if base is None:
            below = replace(built, source=Layer(built.source.lower), objects=Layer(built.objects.lower))
            base = self._find(below, compiled_in(built.objects.lower), "base-types")
            self._layers.keep_structures(built.layer, base)
        structures = self._find(built, compiled, "types")
        return structures.over(base, compiled) if structures and base else structures

    def _find(self, built: FinishedBuild, names: frozenset[str], folder: str) -> Structures | None:
        if not names:
            return Structures()
        try:
            return self._run(built, names, own_directory(built.own / folder))
        except (SandboxFailed, ReadingStopped, ReaderUnavailable, OSError) as exc:
            self._progress.line(f"kperflab: cache lines will be named without their fields: {exc}")
            return None

    def _run(self, built: FinishedBuild, names: frozenset[str], own: Path) -> Structures:
        (own / "work").mkdir()
        out = own_directory(own / "out")
        (out / ONLY).write_text("".join(f"{name}\n" for name in sorted(names)))
        # Nothing is written among the objects: those of a base are kept.
        objects = (
            built.objects if built.objects.upper else Layer(built.objects.lower, own_directory(own / "upper"))
        )
        ended = run(
            ["sh", "-c", SCRIPT, "sh", str(self._limits.cores), COMPILE],
            SandboxPlace(built.source, objects, out, own / "work"),
            ENVIRONMENT,
            self._limits,
            on_line=self._progress.line,
            on_tick=self._progress.tick,
        )
        structures = read_written(out / FOLDER)
        size = f"{len(structures.caches)} slab caches, {ended.cpu_seconds:.1f} CPU seconds"
        self._progress.line(f"kperflab: fields of structures written down: {size}")
        return structures


def compiled_in(folder: Path) -> frozenset[str]:
    """Return the object files that a build compiled, or that a sweep left as they are although what they read has changed.

    folder: the overlay's upper directory, or the whole object directory.
    """
    objects: set[str] = set()
    left = [""]
    while left:
        place = left.pop()
        try:
            entries = list(os.scandir(folder / place))
        except OSError:
            continue
        for entry in entries:
            name = f"{place}/{entry.name}" if place else entry.name
            if entry.is_dir(follow_symlinks=False):
                left += [name] if name.count("/") < _DEEPEST else []
            elif (entry.name[0] == ".") == entry.name.endswith(".cmd"):
                made = entry.name.removeprefix(".").removesuffix(".cmd")
                object_ = f"{place}/{made}" if place else made
                objects |= {object_} if _OBJECT.fullmatch(object_) else set()
    return frozenset(objects)
