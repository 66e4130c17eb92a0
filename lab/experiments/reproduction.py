# SPDX-License-Identifier: GPL-2.0-or-later
"""Compare two builds of a kernel: sources, config, toolchain and the result."""

from pathlib import Path

from lab.experiments.environment import stored_artifact
from lab.experiments.spec import ReproducedKernel
from lab.models import Variant
from lab.storage.artifacts import recorded


def kernel_of(variant: Variant, root: Path) -> ReproducedKernel:
    """Return the facts of a variant's kernel. root: the state root; without the artifact there, only those in the tables.

    tree_id: of its sources. artifact: the store's key, over all that went in. code_hash: equal where the loaded code is.
    """
    build = variant.build
    artifact = stored_artifact(build, root)
    if build is None or artifact is None:
        release, key, code = (build.release, build.artifact_key, build.code_hash) if build else ("", "", "")
        return ReproducedKernel.model_construct(
            variant=variant.name, tree_id=variant.tree_id, release=release, artifact=key, code_hash=code
        )
    metadata = artifact.metadata
    return ReproducedKernel.model_construct(
        variant=variant.name,
        tree_id=variant.tree_id,
        release=metadata.release,
        artifact=artifact.key,
        code_hash=metadata.code_hash,
        config=metadata.config_sha256,
        vmlinux=recorded(artifact).files.get("vmlinux", (0, ""))[1],
        toolchain=metadata.toolchain,
        toolchain_identity=metadata.toolchain_identity,
    )


def told_difference(wanted: ReproducedKernel, built: ReproducedKernel) -> str:
    """Return a line: bit-identical, or the differences, causes before their consequences."""
    if not wanted.vmlinux or not built.vmlinux:
        if wanted.code_hash and wanted.code_hash == built.code_hash:
            return "reproduced: the loaded code is identical"
        return _other("not known to be the reproduced kernel", wanted, built)
    if wanted.vmlinux == built.vmlinux:
        return f"reproduced bit for bit: vmlinux is {built.vmlinux[:12]} again"
    if wanted.code_hash == built.code_hash:
        return _other("the loaded code is identical, vmlinux is not", wanted, built)
    return _other("not the reproduced kernel", wanted, built)


def _other(what: str, wanted: ReproducedKernel, built: ReproducedKernel) -> str:
    causes = []
    if wanted.tree_id != built.tree_id:
        causes.append(f"different sources (tree {built.tree_id[:12]}, originally {wanted.tree_id[:12]})")
    if _differ(wanted.toolchain_identity, built.toolchain_identity):
        same_names = wanted.toolchain == built.toolchain
        tools = "with a different flex, bison, bc, make or pahole" if same_names else built.toolchain
        causes.append(
            f"different toolchain ({tools}{'' if same_names else f', originally {wanted.toolchain}'})"
        )
    if _differ(wanted.config, built.config):
        causes.append(f"different config ({built.config[:12]}, originally {wanted.config[:12]})")
    if not causes and wanted.artifact == built.artifact:
        causes.append("from equal inputs: the build does not reproduce itself")
    elif not causes:
        causes.append("sources, config and toolchain are the same: modules or the build procedure differ")
    return f"{what}: {'; '.join(causes)}"


def _differ(wanted: str, other: str) -> bool:
    return bool(wanted and other and wanted != other)
