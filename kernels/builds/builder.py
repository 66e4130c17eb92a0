# SPDX-License-Identifier: GPL-2.0-or-later
"""Turns a variant into an artifact: once, in the sandbox, over the objects of its base.

The base of an experiment is built from nothing, or over the layer of a near revision; its object directory is kept as a layer. Every
variant is built in an overlay of that layer at the same path, so that make sees a finished build in
which a few files are newer. A variant whose layer is gone builds the base again first, because the next
variants will need it too.
"""

from __future__ import annotations

import contextlib
import hashlib
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from kernels.artifacts.kernel_files import kernel_facts
from kernels.artifacts.store import Artifact, ArtifactMetadata, ArtifactStore
from kernels.artifacts.structures import FILE as STRUCTURES
from kernels.artifacts.structures import Structures
from kernels.builds import kbuild
from kernels.builds.build_input import write_config, write_modules
from kernels.builds.front_build import (
    PATH,
    SWEEP_SCRIPT,
    Front,
    FrontPlace,
    knows,
    origin_of_base,
    summary,
)
from kernels.builds.lab_faults import refuse_lacks
from kernels.builds.layer_changes import can_sweep, forget_script, not_followed, write_forgotten
from kernels.builds.layer_steps import changed_inputs, steps_over_layer
from kernels.builds.layers import COLD_BYTES, VARIANT_BYTES, Layers, newer_than, over_base, own_directory
from kernels.builds.nearest_layer import FILE as REVISION
from kernels.builds.nearest_layer import facts_of, nearest_layers
from kernels.builds.progress import BuildProgress
from kernels.builds.reproducer import reproducer
from kernels.builds.request import (
    BuildRequest,
    ModuleSource,
    artifact_key,
    check_modules,
    front_recipe,
    layer_key,
    local_version,
)
from kernels.builds.resolve_config import Question, resolve_config
from kernels.builds.structures import FinishedBuild, StructureFinder
from kernels.errors import ArtifactCorrupt, BuildTimedOut, CompileFailed
from kernels.files.scratch import locked, remove_leftovers, scratch, write_synced
from kernels.printable import shown_line
from kernels.sandbox.command import Ended, Layer, Limits, SandboxPlace, run
from kernels.sandbox.take_files import take
from kernels.trees.extract import changed_files

__all__ = ["BuildRequest", "Builder", "Limits", "ModuleSource"]

_TAIL = 60
# debian-6.1 with our guest fragment: 1,762 steps for 651 symbols, some 50 for a change of one file.
_STEPS_PER_SYMBOL, _VARIANT_STEPS = 2.7, 50
_VARIANT_ROOM = (VARIANT_BYTES, "the objects of a variant")
_COLD_ROOM = (COLD_BYTES, "the objects of a whole build")


@dataclass(frozen=True, slots=True)
class _Plan:
    """A request and everything computed from it: configs, keys, and whether it is the base itself."""

    request: BuildRequest
    config: str
    base_config: str
    key: str
    layer: str
    is_base: bool
    front: str


@dataclass(frozen=True, slots=True)
class _Below:
    """A layer that a build is made over, the tree whose objects it holds, and their config."""

    layer: str
    tree_id: str
    config: str


class Builder:
    """Builds under one state directory; any number of processes may share it.

    Call it from a thread that lives until the call returns: when that thread dies, so does the build.
    layered=False builds everything from nothing, which must give the same bytes; artifacts should then
    be a separate store. front=True compiles through the compiler front where it knows the compiler.
    spare: bytes to keep free besides, as long as unused layers and sources can be removed for them.
    on_built is called at the end of each build, while its directories still exist.
    front_events: counts of the front's events in the builds so far, by kind; compiled_files: the front's stores, None without it.
    """

    def __init__(
        self,
        home: Path,
        limits: Limits | None = None,
        *,
        artifacts: ArtifactStore | None = None,
        layered: bool = True,
        front: bool = False,
        spare: int = 0,
        on_built: Callable[[FinishedBuild], None] = lambda _: None,
    ) -> None:
        self.home = home.resolve()
        self.limits = limits or Limits()
        self.artifacts = artifacts or ArtifactStore(self.home / "artifacts")
        self.layered = layered
        self._on_built, self._spare = on_built, spare
        self._layers = Layers(self.home)
        self._front = Front(self._layers.objects) if front else None
        self.compiled_files = self._front.stores if self._front else None
        self.front_events = Counter[str]()
        self._no_layer: set[str] = set()
        remove_leftovers(self._layers.scratch)

    def key(self, request: BuildRequest, *, on_wait: Callable[[], None] = lambda: None) -> str:
        """Return the artifact's key. Resolves the config: up to a minute at first, then from a file.

        on_wait is called at least once a second meanwhile, and may raise to give up.
        Raises ConfigRejected, DiskFull, BuildOutOfMemory, BuildInterrupted.
        """
        return self._plan(request, on_wait).key

    def layer_of(self, request: BuildRequest) -> Path:
        """Return the object directory over which the request's variants are built; it may not exist yet. Raises as key."""
        return self._layers.objects_of(self._plan(request, lambda: None).layer)

    def log_path(self, key: str) -> Path:
        """Return the file of a build's output; it stays when the build fails."""
        return self._layers.objects / "logs" / f"{key}.log"

    def build(
        self,
        request: BuildRequest,
        *,
        on_line: Callable[[str], None] = lambda line: None,
        on_progress: Callable[[int, int], None] = lambda done, expected: None,
    ) -> Artifact:
        """Return the artifact of a request, built unless the store has it.

        on_line gets make's output. on_progress gets the steps done and expected (an estimate from
        earlier builds and from the objects that a variant compiles again), at least once a second; an exception that it raises cancels the build.
        Raises what `key` does, and CompileFailed, BuildTimedOut, ArtifactRefused, SandboxFailed, LockBusy.
        """
        plan = self._plan(request, lambda: on_progress(0, 0))
        progress = BuildProgress(self._layers.objects / "steps", on_line, on_progress)
        with locked(self._layers.lock(f"build-{plan.key}"), on_wait=progress.tick):
            with contextlib.suppress(ArtifactCorrupt):  # or one that no machine of ours signed
                if self.artifacts.has(plan.key):
                    return self.artifacts.get(plan.key)
            self.artifacts.remove(plan.key)
            lock = self._layers.lock(f"layer-{plan.layer}")
            layered = self.layered and self._can_layer(plan, progress)
            while layered and plan.layer not in self._no_layer:
                with locked(lock, shared=True, on_wait=progress.tick):
                    if self._layers.has(plan.layer):
                        below = _Below(plan.layer, request.base.tree_id, plan.base_config)
                        return self._compile(plan, progress, below)
                with locked(lock, on_wait=progress.tick):
                    if self._layers.has(plan.layer):
                        continue
                    if plan.is_base and not request.modules:
                        return self._compile_base(plan, progress)
                    self._make_layer(plan, progress)
            return self._compile(plan, progress)

    def _can_layer(self, plan: _Plan, progress: BuildProgress) -> bool:
        request, why = plan.request, ""
        path = not_followed(changed_files(request.tree, request.base.tree_id, request.revision.tree_id))
        if path:
            why = f"make cannot tell what {shown_line(path)} changes"
        elif self._layers.is_ahead(plan.layer):
            why = "this machine's clock was set back: make would take all that it generates for old"
        if why:
            progress.line(f"kperflab: {why}; building from nothing")
        return not why

    def _plan(self, request: BuildRequest, on_wait: Callable[[], None]) -> _Plan:
        check_modules(request.modules)
        question = Question(request.tree, request.base, request.revision, request.config, request.toolchain)
        config = resolve_config(question, self._layers, self.limits, on_wait)
        asked = replace(question, revision=request.base, config=request.base_config or request.config)
        base_config = (
            config if asked == question else resolve_config(asked, self._layers, self.limits, on_wait)
        )
        front = (
            front_recipe(self._front.stores.withdrawal) if self._front and knows(request.toolchain.cc) else ""
        )
        return _Plan(
            request=request,
            config=config,
            base_config=base_config,
            front=front,
            key=artifact_key(request, config, base_config, front=front),
            layer=layer_key(request, base_config, front=front),
            is_base=request.revision.tree_id == request.base.tree_id and config == base_config,
        )

    def _make_layer(self, plan: _Plan, progress: BuildProgress) -> None:
        progress.line("kperflab: the objects of the base are not there; building the base first")
        progress.ahead = _VARIANT_STEPS
        # Without the external modules: their makefiles may write among the objects, and the layer's key does not name them.
        request = replace(
            plan.request,
            revision=plan.request.base,
            config=plan.request.base_config or plan.request.config,
            base_config=None,
            modules=(),
        )
        try:
            self._compile_base(self._plan(request, progress.tick), progress)
        except CompileFailed as exc:
            if plan.is_base:
                raise
            # The variant may be the very fix.
            progress.line(f"kperflab: the base does not compile ({exc}); building the variant from nothing")
            self._no_layer.add(plan.layer)
        progress.ahead = 0

    def _compile_base(self, plan: _Plan, progress: BuildProgress) -> Artifact:
        """Build a base over a near revision's layer, or from nothing; its objects become its own layer."""
        for layer, tree_id in nearest_layers(self._layers, plan.request, plan.config, front=plan.front):
            with locked(self._layers.lock(f"layer-{layer}"), shared=True, on_wait=progress.tick):
                if self._layers.has(layer) and not self._layers.is_ahead(layer):
                    progress.line("kperflab: building over the objects of another revision of this tree")
                    return self._compile(plan, progress, _Below(layer, tree_id, plan.config), keep=True)
        return self._compile(plan, progress, keep=True)

    def _compile(
        self, plan: _Plan, progress: BuildProgress, below: _Below | None = None, *, keep: bool = False
    ) -> Artifact:
        """Build over a layer, or from nothing; keep: its objects become the plan's layer."""
        request = plan.request
        base_id, tree_id = below.tree_id if below else request.base.tree_id, request.revision.tree_id
        with scratch(self._layers.scratch) as own:
            objects = Layer(own_directory(own / "obj"))
            if below:
                objects = Layer(self._layers.objects_of(below.layer), own_directory(own / "upper"))
            (own / "work").mkdir()
            out = own_directory(own / "out")
            write_modules(request.modules, out / kbuild.EXTERNAL)
            # Without a layer there is nothing to be newer than, and make warns of a time to come.
            stamp = newer_than(objects.lower) if below else time.time()
            if not below or plan.config != below.config:
                write_config(plan.config, objects.upper or objects.lower, stamp)
            log = self.log_path(plan.key)
            kind = below.layer if below else f"cold-{plan.layer}"
            guess = _VARIANT_STEPS if below else int(plan.config.count("=y") * _STEPS_PER_SYMBOL)
            changed = _changes(request, base_id, out) if below else []
            with (
                self._layers.source(request.tree, base_id, progress.tick) as lower,
                progress.building(log, kind, guess, _steps_again(plan, changed, objects.lower)),
            ):
                # Everything that this build is based on is locked by now.
                self._make_room(progress, *(_COLD_ROOM if keep or not below else _VARIANT_ROOM))
                source = over_base(request.tree, lower, base_id, tree_id, own / "source", stamp)
                flags = (*kbuild.make_flags(request.toolchain), f"LOCALVERSION={local_version(plan.key)}")
                front = self._place_front(plan, own, out)
                script = _script(plan, below, changed, sweeps=bool(front), keep=keep)
                ended = run(
                    ["sh", "-c", script, "sh", str(self.limits.cores), *flags],
                    SandboxPlace(source, objects, out, own / "work", front.shown if front else {}),
                    {**kbuild.ENVIRONMENT, **({"PATH": PATH} if front else {})},
                    self.limits,
                    on_line=progress.line,
                    on_tick=progress.tick,
                )
                self._check(ended, progress, log)
                self._finish_front(front, plan, progress)
                progress.succeeded()
                built = FinishedBuild(source, objects, below.layer if below else plan.layer, own)
                self._on_built(built)
                structures = StructureFinder(self._layers, self.limits, progress).of(built)
            artifact = self._store(plan, own, structures, ended, below)
            if keep:
                kept = out / kbuild.KEPT if below else objects.lower
                self._layers.keep(plan.layer, kept, _notes(plan, structures), progress.tick)
            return artifact

    def _make_room(self, progress: BuildProgress, size: int, what: str) -> None:
        if dropped := self._layers.make_room(size, what, spare=self._spare):
            progress.line(
                f"kperflab: removed {dropped} of the layers and sources, those unused for longest, for room"
            )

    def _place_front(self, plan: _Plan, own: Path, out: Path) -> FrontPlace | None:
        if self._front is None or not plan.front:
            return None
        origin = origin_of_base(plan.layer, trusted=plan.request.trusted)
        return self._front.prepare(own, out, plan.request.toolchain.cc, origin)

    def _finish_front(self, place: FrontPlace | None, plan: _Plan, progress: BuildProgress) -> None:
        if self._front is None or place is None:
            return
        # If a patch or an external module took part in the build, nothing that it compiled is kept.
        counts = self._front.finish(place, keep=plan.is_base and not plan.request.modules)
        progress.line(summary(counts))
        self.front_events += counts

    def _check(self, ended: Ended, progress: BuildProgress, log: Path) -> None:
        if ended.status == 0 and not ended.stopped:
            return
        lines = progress.lines(_TAIL)
        refuse_lacks(ended, lines, self.limits, what="the build", home=self.home, log=log)
        tail = "\n".join(lines)
        if ended.stopped == "time":
            limit = f"{self.limits.seconds / 60:.0f} minutes"
            raise BuildTimedOut(f"the build was stopped after {limit}; see {log}", log=log, detail=tail)
        if ended.stopped == "log":
            reason = f"the build printed more than {self.limits.log_bytes >> 20} MiB and was stopped"
        else:
            reason = (
                progress.first_error() or f"make ended with status {ended.status} without naming an error"
            )
        raise CompileFailed(reason, log=log, detail=tail)

    def _store(
        self, plan: _Plan, own: Path, structures: Structures | None, ended: Ended, below: _Below | None
    ) -> Artifact:
        place = own / "artifact"
        take(own / "out" / kbuild.HANDOUT, place)
        if structures and structures.caches:
            write_synced(place / STRUCTURES, structures.model_dump_json().encode())
        request = plan.request
        facts = kernel_facts(place / "vmlinux", place / "vmlinux.boot", (place / "modules").glob("*.ko"))
        release = facts.release
        if not release.endswith(local_version(plan.key)):
            # A tree may set its own name; a boot could then not prove that it runs this kernel.
            reason = f'the built kernel calls itself "{release}", not *{local_version(plan.key)}'
            raise CompileFailed(reason, log=self.log_path(plan.key))
        metadata = ArtifactMetadata(
            release=release,
            tree=request.tree.name,
            revision=request.revision.commit,
            tree_id=request.revision.tree_id,
            base=request.base.commit,
            config_sha256=hashlib.sha256(plan.config.encode()).hexdigest(),
            toolchain=f"{request.toolchain.cc_version}; {request.toolchain.ld_version}",
            toolchain_identity=request.toolchain.identity,
            code_hash=facts.code_hash,
            seconds_cpu=round(ended.cpu_seconds, 2),
            seconds_wall=round(ended.wall_seconds, 2),
            layer=below.layer if below else "",
            built_at=datetime.now(UTC).isoformat(timespec="seconds"),
        )
        write_synced(place / "config", plan.config.encode())
        write_synced(place / "build.log", self.log_path(plan.key).read_bytes())
        write_synced(
            place / "reproducer.sh",
            reproducer(request, plan.config, plan.key, place / "vmlinux", front=bool(plan.front)),
        )
        artifact = self.artifacts.add(plan.key, place, metadata)
        self.log_path(plan.key).unlink()
        return artifact


def _script(plan: _Plan, below: _Below | None, changed: list[str], *, sweeps: bool, keep: bool) -> str:
    if below is None:
        return kbuild.BUILD_SCRIPT
    sweeps &= can_sweep(changed, plan.config, below.config)
    return (
        forget_script(same_config=plan.config == below.config)
        + SWEEP_SCRIPT * sweeps
        + kbuild.BUILD_SCRIPT
        + kbuild.KEEP_SCRIPT * keep
    )


def _notes(plan: _Plan, structures: Structures | None) -> dict[str, str]:
    """Return the texts of the files to keep beside the objects of a base, by name."""
    notes = {STRUCTURES: structures.model_dump_json()} if structures else {}
    facts = facts_of(plan.request, plan.config, front=plan.front)
    return notes | ({REVISION: facts.text()} if facts else {})


def _steps_again(plan: _Plan, changed: list[str], objects: Path) -> int:
    return steps_over_layer(objects, changed_inputs(changed, plan.config, plan.base_config))


def _changes(request: BuildRequest, from_tree: str, out: Path) -> list[str]:
    """Return the paths that differ; forget_script gets its lists."""
    changes = changed_files(request.tree, from_tree, request.revision.tree_id)
    write_forgotten(changes, out)
    return [change.path for change in changes]
