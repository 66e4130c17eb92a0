# SPDX-License-Identifier: GPL-2.0-or-later
"""Build: a claimed row → an artifact, or the reason why there is none."""

from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from time import monotonic

from django.db import InterfaceError, OperationalError

from kernels.artifacts.store import Artifact
from kernels.builds.builder import Builder, BuildRequest
from kernels.builds.request import ModuleSource
from kernels.builds.toolchain import detect_toolchain
from kernels.configs.request import ConfigRequest, Fragment
from kernels.errors import KernelsError
from kernels.trees.tree import NamedRevision, open_tree
from lab.errors import LabError
from lab.runs.claim import Claim
from lab.runs.record import (
    BuildSuccess,
    Failure,
    record_build_failure,
    record_build_log,
    record_build_steps,
    record_build_success,
)
from lab.runs.work_orders import BuildOrder, build_order
from lab.storage.artifacts import in_use
from lab.storage.files import name_of
from lab.storage.signing_keys import register_key
from lab.storage.withdrawals import last_withdrawal
from workers.artifact_transfer import bring_if_there, send
from workers.compiled_transfer import bring_compiled_files, send_compiled_files
from workers.errors import SourceMissing
from workers.lease import Lease
from workers.refused import note_front, note_refused_build
from workers.run_files import send_log
from workers.sources import bring_sources
from workers.tail import shown_live
from workloads.catalog import load_catalog

# How often the progress of a build is written.
STEPS_S = 2.0


def build_claimed(claim: Claim, builder: Builder) -> None:
    """Build what is claimed and record how it went. Raises ClaimLost when it was cancelled."""
    with Lease(claim) as lease:
        order = build_order(claim.id)
        try:
            register_key(builder.home)
            withdrawal = _heed_withdrawal(builder)
            bring_sources(order, builder.home, lease.beat)
            request = build_request(order, builder.home / "trees", withdrawal)
            key = builder.key(request, on_wait=lease.beat)
            with in_use(builder.home, key, lease.beat):
                bring_if_there(builder.home, key, lease.beat)
                cached = builder.artifacts.has(key)
                log = builder.log_path(key)
                record_build_log(claim, name_of(log, builder.home))
                started = monotonic()
                if not cached:
                    bring_compiled_files(builder, lease.beat)
                with shown_live(log, builder.home):
                    artifact = builder.build(request, on_progress=_StepReport(claim, lease).note)
                send_compiled_files(builder)
                note_front(builder.front_events)
                send(builder.home, artifact, lease.beat)
        except (KernelsError, LabError, SourceMissing) as exc:
            note_refused_build(exc)
            send_log(builder.home, getattr(exc, "log", None))
            failed = failure(exc, builder.home)
            lease.record(lambda: record_build_failure(claim, failed))
        else:
            made = success(artifact, cached=cached, wall_seconds=monotonic() - started)
            made = replace(made, log=name_of(artifact.log, builder.home))
            lease.record(lambda: record_build_success(claim, made))


def _heed_withdrawal(builder: Builder) -> str:
    """Keep the builder from files older than the last withdrawal of trust; return that withdrawal."""
    withdrawal = last_withdrawal()
    if builder.compiled_files is not None:
        builder.compiled_files.withdrawal = withdrawal
    return withdrawal


@dataclass
class _StepReport:
    """Writes how far a build is, at most every few seconds; each call is a beat of its lease."""

    claim: Claim
    lease: Lease
    written_at: float = -STEPS_S

    def note(self, done: int, expected: int) -> None:
        """Write the progress if it is due. Raises ClaimLost."""
        self.lease.beat()
        if not expected or monotonic() - self.written_at < STEPS_S:
            return
        self.written_at = monotonic()
        # The lease decides what becomes of a build whose database is down; a lost progress report ends no build.
        with suppress(OperationalError, InterfaceError):
            record_build_steps(self.claim, done, expected)


def build_request(order: BuildOrder, trees: Path, withdrawal: str = "") -> BuildRequest:
    """Turn the stored request into the library's. Raises UnknownTree, ToolchainMissing.

    withdrawal: the last one of trust, which ended every vouching from before it.
    """
    asked = order.request
    workloads = load_catalog()
    sources = [module for name in asked["modules_of"] for module in workloads[name].modules]
    tree = open_tree(order.tree, trees)
    base = NamedRevision(asked["base_commit"], asked["base_tree_id"], asked["base_name"])
    return BuildRequest(
        tree=tree,
        base=base,
        revision=NamedRevision(order.commit, order.tree_id, order.commit),
        config=_config(asked["config_base"], asked["fragments"]),
        base_config=_config(asked["config_base"], asked["base_fragments"]),
        toolchain=detect_toolchain(asked["cc"]),
        modules=tuple(ModuleSource(module.name, module.files) for module in sources),
        # Requests from an older release lack these fields.
        trusted=asked.get("vouched", False) and asked.get("withdrawal", "") == withdrawal,
    )


def _config(base: str, fragments: list[list[str]]) -> ConfigRequest:
    return ConfigRequest(base, tuple(Fragment(name, text) for name, text in fragments))


def success(artifact: Artifact, *, cached: bool, wall_seconds: float) -> BuildSuccess:
    """Describe an artifact as the tables keep it; a cached one cost nothing now."""
    return BuildSuccess(
        artifact_key=artifact.key,
        release=artifact.metadata.release,
        code_hash=artifact.metadata.code_hash,
        cpu_seconds=0.0 if cached else artifact.metadata.seconds_cpu,
        wall_seconds=round(wall_seconds, 2),
        cached=cached,
    )


def failure(exc: KernelsError | LabError | SourceMissing, home: Path) -> Failure:
    """Describe why a build failed; with the name of its log if there is one."""
    log = getattr(exc, "log", None)
    return Failure(exc.blame, str(exc), exc.detail, name_of(log, home) if log else "", exc.retry)
