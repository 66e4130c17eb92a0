# SPDX-License-Identifier: GPL-2.0-or-later
"""Build one kernel for a benchmark: what it costs, which objects change, and a hash of what boots."""

import hashlib
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bench.speed import cpu_seconds
from kernels.artifacts.elf_sections import NOTE, sections
from kernels.artifacts.elf_segments import without_build_id
from kernels.artifacts.store import Artifact, ArtifactStore, sha256_of
from kernels.builds.builder import Builder, BuildRequest
from kernels.builds.structures import FinishedBuild
from kernels.builds.toolchain import detect_toolchain
from kernels.configs.request import ConfigRequest, load_fragment
from kernels.trees.tree import DEFAULT_ARCHIVES, import_archive, resolve

HOME = Path(tempfile.gettempdir()) / "kperflab-bench-build"


@dataclass(frozen=True, slots=True)
class Cost:
    """CPU seconds of one build and of a small compilation beside it, the hash of the vmlinux it made, and that of what boots ("" where a way makes none).

    events: what the front counted. written, changed: over a layer, the objects that make wrote or that the sweep gave a new time,
    and the names of those of them that differ in more than line tables. layer: the base's object directory; None without one.
    marks: the kernel's symbols that a benchmark added, which begin with "kp_".
    """

    cpu: float
    small: float
    vmlinux: str
    boots: str = ""
    events: Mapping[str, int] = field(default_factory=dict)
    written: int = 0
    changed: Sequence[str] = ()
    layer: Path | None = None
    marks: Sequence[str] = ()

    @property
    def units(self) -> float:
        """The cost in small compilations: comparable where the machine's speed changed."""
        return self.cpu / self.small

    @property
    def note(self) -> str:
        """The counts of the front, for a line; "" where it had no part."""
        counts = ", ".join(f"{count} {event}" for event, count in sorted(self.events.items()))
        return counts and f" ({counts})"


def base_request(home: Path, archive: str) -> BuildRequest:
    """Return the request of a tree's base; it is Debian's own source package, so what it compiles may answer every later build."""
    tree = import_archive(archive, DEFAULT_ARCHIVES[archive], home / "trees")
    base = resolve(tree, "")
    config = ConfigRequest("tiny", (load_fragment("guest"),))
    return BuildRequest(tree, base, base, config, detect_toolchain(), trusted=True)


def build_base(home: Path, request: BuildRequest, *, front: bool) -> Path:
    """Build the base where its layer is not there, print what it cost, and return its object directory."""
    builder = Builder(home, front=front)
    objects = builder.layer_of(request)
    say(f"the base{', by the front with an empty store' if front else ''}")
    artifact = builder.build(request, on_progress=follow)
    if not objects.is_dir():
        builder.artifacts.remove(artifact.key)
        artifact = builder.build(request, on_progress=follow)
    how = "by the front with an empty store" if front else "by gcc"
    print(
        f"The base from nothing {how}: {artifact.metadata.seconds_cpu:.0f} CPU s; what boots is {hash_of_boot(artifact)[:12]}.",
        flush=True,
    )
    return objects


def build(home: Path, request: BuildRequest, *, layered: bool = True, front: bool = False) -> Cost:
    """Build through the builder, into a store that is empty: everything is built. Raises CompileFailed."""
    with tempfile.TemporaryDirectory(dir=home) as folder:
        store, written = ArtifactStore(Path(folder) / "store"), _Written(Path(folder) / "written")
        with cpu_seconds() as used:
            builder = Builder(home, artifacts=store, layered=layered, front=front, on_built=written.keep)
            artifact = builder.build(request, on_progress=follow)
        return Cost(
            used.seconds,
            used.small,
            sha256_of(artifact.vmlinux),
            hash_of_boot(artifact),
            builder.front_events,
            len(written.pairs),
            written.changed(),
            written.base,
            sorted(set(re.findall(r"\bkp_\w+", artifact.system_map.read_text()))),
        )


class _Written:
    """The objects that a build wrote over its base's layer. They are compared when the build's cost is known."""

    def __init__(self, place: Path) -> None:
        self._place = place
        self.base: Path | None = None
        self.pairs: list[tuple[Path, Path]] = []

    def keep(self, built: FinishedBuild) -> None:
        """Link what was written, each beside the base's own object."""
        if not (upper := built.objects.upper):
            return
        self.base = built.objects.lower
        for path in upper.rglob("*.o"):
            base = built.objects.lower / path.relative_to(upper)
            if path.is_file() and base.is_file() and not path.name.startswith((".", "vmlinux")):
                kept = self._place / path.relative_to(upper)
                kept.parent.mkdir(parents=True, exist_ok=True)
                kept.hardlink_to(path)
                self.pairs.append((kept, base))

    def changed(self) -> list[str]:
        """Return those that differ from the base's in more than line tables."""
        return [
            str(kept.relative_to(self._place))
            for kept, base in self.pairs
            if _without_lines(kept) != _without_lines(base)
        ]


def _without_lines(path: Path) -> bytes:
    with tempfile.NamedTemporaryFile() as stripped:
        subprocess.run(["objcopy", "--strip-debug", str(path), stripped.name], check=True, timeout=60)
        return Path(stripped.name).read_bytes()


def hash_of_boot(artifact: Artifact) -> str:
    """Return a hash of vmlinux.boot, the modules and System.map, the release and the linker's build ids blanked."""
    digest = hashlib.sha256(artifact.system_map.read_bytes())
    release = artifact.metadata.release.encode()
    for path in [artifact.boot_vmlinux, *sorted((artifact.directory / "modules").glob("*"))]:
        with tempfile.NamedTemporaryFile() as stripped:
            # A module carries its line tables; vmlinux.boot has none.
            Path(stripped.name).write_bytes(_without_lines(path))
            data = bytearray(Path(stripped.name).read_bytes())
            for section in sections(Path(stripped.name)):
                if section.kind == NOTE:
                    end = section.offset + len(section.data)
                    data[section.offset : end] = without_build_id(bytes(section.data))
        digest.update(f"{path.name} {len(data)}\n".encode() + data.replace(release, b"-" * len(release)))
    return digest.hexdigest()


def say(text: str) -> None:
    """Print what is done now; standard output is for the figures."""
    print(f"bench: {text}", file=sys.stderr, flush=True)


def follow(done: int, expected: int) -> None:
    """Show a build's progress on a terminal."""
    if sys.stderr.isatty() and expected:
        print(f"\r    {done} of {expected} ", end="", file=sys.stderr, flush=True)
