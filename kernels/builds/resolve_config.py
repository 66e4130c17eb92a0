# SPDX-License-Identifier: GPL-2.0-or-later
"""Turns a config request into the whole .config, with the tree's own tools, and checks the result."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from kernels.builds import kbuild
from kernels.builds.lab_faults import refuse_lacks
from kernels.builds.layers import Layers, hand_over, over_base, own_directory
from kernels.builds.toolchain import Toolchain
from kernels.configs.request import (
    ConfigRequest,
    fragment_text,
    make_target,
    read_config,
    read_fragment,
    requested,
    unmet,
)
from kernels.configs.unmet import explain
from kernels.errors import ConfigRejected
from kernels.files.scratch import place_synced, scratch
from kernels.sandbox.command import Layer, Limits, SandboxPlace, run
from kernels.sandbox.take_files import read_bounded
from kernels.trees.extract import changed_files
from kernels.trees.tree import NamedRevision, SourceTree

MAX_CONFIG = 4 << 20
# Some 10 s of work; a busy host may take a hundred times as long, and that is not the tree's fault.
CONFIG_SECONDS, CONFIG_CPU_SECONDS = 900.0, 300.0
CONFIG_LOG_BYTES = 1 << 20
_TAIL = 60
# A path that can affect the .config that the tree's Kconfig makes from a request.
_KCONFIG_PATH = re.compile(
    r"(?:^|/)Kconfig[^/]*$|^(?:arch/[^/]+/)?(?:GNUm|[Mm])akefile|^scripts/|\.config$|configs?/"
)


@dataclass(frozen=True, slots=True)
class Question:
    """A config request, and the tree and toolchain that answer it."""

    tree: SourceTree
    base: NamedRevision
    revision: NamedRevision
    config: ConfigRequest
    toolchain: Toolchain

    def identity(self) -> str:
        """Return hex digits over everything whose code may run for the answer, and over what was asked.

        The base is part of it: its .config is used for a variant that changes no Kconfig file. So is which symbols may be missing:
        an answer is checked before it is kept, and not again.
        """
        fragments = [
            [(str(line), line.optional) for line in read_fragment(fragment)]
            for fragment in self.config.fragments
        ]
        trees = [self.tree.name, self.base.tree_id, self.revision.tree_id]
        facts = [3, trees, self.config.base, fragments, self.toolchain.identity]
        return hashlib.sha256(json.dumps(facts).encode()).hexdigest()


def resolve_config(
    question: Question, layers: Layers, limits: Limits, on_wait: Callable[[], None] = lambda: None
) -> str:
    """Return the text of the whole .config. It is kept in a file, from which the same question is answered later.

    Raises ConfigRejected, DiskFull, BuildOutOfMemory, BuildInterrupted.
    """
    make_target(question.config)
    kept = layers.objects / "configs" / question.identity()
    if kept.is_file():
        return kept.read_text()
    if _asks_no_kconfig(question):
        text = resolve_config(replace(question, revision=question.base), layers, limits, on_wait)
    else:
        text = _ask(question, layers, limits, on_wait)
    kept.parent.mkdir(parents=True, exist_ok=True)
    with scratch(layers.scratch) as own:
        (own / "config").write_text(text)
        place_synced(own / "config", kept)
    return text


def _asks_no_kconfig(question: Question) -> bool:
    """Return whether the variant changes only files that Kconfig never reads, so that it has the base's config."""
    if question.revision.tree_id == question.base.tree_id:
        return False
    files = changed_files(question.tree, question.base.tree_id, question.revision.tree_id)
    return not any(_KCONFIG_PATH.search(file.path) for file in files)


def _ask(question: Question, layers: Layers, limits: Limits, on_wait: Callable[[], None]) -> str:
    base_id, tree_id = question.base.tree_id, question.revision.tree_id
    with (
        scratch(layers.scratch) as own,
        layers.source(question.tree, base_id, on_wait) as lower,
    ):
        source = over_base(question.tree, lower, base_id, tree_id, own / "source")
        objects, out = own_directory(own / "obj"), own_directory(own / "out")
        (own / "work").mkdir()
        _write_fragments(question.config, out / kbuild.FRAGMENTS)
        lines: list[str] = []
        flags = kbuild.make_flags(question.toolchain)
        command = ["sh", "-c", kbuild.CONFIG_SCRIPT, "sh", make_target(question.config), *flags]
        limits = _of_configs(limits)
        ended = run(
            command,
            SandboxPlace(source, Layer(objects), out, own / "work"),
            kbuild.ENVIRONMENT,
            limits,
            on_line=lines.append,
            on_tick=on_wait,
        )
        if ended.status != 0 or ended.stopped:
            tail = lines[-_TAIL:]
            refuse_lacks(ended, tail, limits, what="the config", home=layers.objects)
            why = {
                "time": f"it did not end within {limits.seconds:.0f} s",
                "cpu": f"it used more than {limits.cpu_seconds:.0f} s of CPU time",
                "log": "it printed too much",
            }
            reason = why.get(ended.stopped) or kbuild.first_error(lines) or f"status {ended.status}"
            raise ConfigRejected(f"the tree's own Kconfig does not make a .config: {reason}", "\n".join(tail))
        text = read_bounded(objects / ".config", MAX_CONFIG).decode("utf-8", "replace")
        _check(question.config, text, [source.upper or lower, lower])
    return text


def _of_configs(limits: Limits) -> Limits:
    """Return the limits of a config: those of builds, but less time and less output."""
    return replace(
        limits,
        seconds=min(limits.seconds, CONFIG_SECONDS),
        cpu_seconds=min(limits.cpu_seconds, CONFIG_CPU_SECONDS),
        log_bytes=CONFIG_LOG_BYTES,
    )


def _write_fragments(config: ConfigRequest, folder: Path) -> None:
    folder.mkdir()
    for position, fragment in enumerate(config.fragments):
        path = folder / f"{position:03}.config"
        path.write_text(fragment_text(read_fragment(fragment)))
        path.chmod(0o644)
    folder.chmod(0o755)
    hand_over(folder)


def _check(config: ConfigRequest, text: str, sources: list[Path]) -> None:
    final = read_config(text)
    missing = unmet(requested(config), final)
    if missing:
        explain(missing, final, sources)
