# SPDX-License-Identifier: GPL-2.0-or-later
"""Builds of the pretend kernel through the real make and the real sandbox."""

from __future__ import annotations

import hashlib
import os
import subprocess
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from kernels.artifacts.store import Artifact, ArtifactStore
from kernels.builds.builder import Builder, BuildRequest, Limits, ModuleSource
from kernels.builds.layers import Layers, newer_than
from kernels.builds.request import local_version
from kernels.errors import CompileFailed, ConfigRejected, DiskFull
from kernels.tests.hanging import runs_in_sandbox
from kernels.tests.pretend import PretendKernel, with_lines
from kernels.trees.tree import NamedRevision

pytestmark = pytest.mark.process


def everything_below(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        + str(path.stat().st_mtime_ns)
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.is_symlink()
    }


def test_the_base_becomes_an_artifact_with_all_its_files(pretend: PretendKernel, tmp_path: Path) -> None:
    # In a state root of its own: what another test built before must not matter.
    builder = Builder(tmp_path, Limits(seconds=30, memory=1 << 30, cores=2))
    artifact = builder.build(pretend.request())
    assert artifact.metadata.release == f"6.1.7{local_version(artifact.key)}"
    assert artifact.metadata.tree_id == pretend.base.tree_id
    assert artifact.metadata.layer == ""
    for path in (
        artifact.image,
        artifact.vmlinux,
        artifact.boot_vmlinux,
        artifact.system_map,
        artifact.log,
    ):
        assert path.stat().st_size > 0
    assert "CONFIG_INODES=y" in artifact.config.read_text()
    assert "  CC      fs/inode.o" in artifact.log.read_text()
    assert builder.artifacts.verify(artifact.key) == artifact


def test_a_build_from_nothing_brings_no_warning_of_the_clock(pretend: PretendKernel, tmp_path: Path) -> None:
    artifact = Builder(tmp_path, Limits(seconds=30, memory=1 << 30, cores=2)).build(pretend.request())
    assert "in the future" not in artifact.log.read_text()


def test_a_second_build_of_the_same_thing_runs_nothing(builder: Builder, pretend: PretendKernel) -> None:
    first = builder.build(pretend.request())
    lines: list[str] = []
    assert builder.build(pretend.request(), on_line=lines.append) == first
    assert lines == []


def test_a_variant_compiles_only_what_it_touches(builder: Builder, pretend: PretendKernel) -> None:
    builder.build(pretend.request())
    lines: list[str] = []
    revision = pretend.edited("fs/buffer.c", "block * 3", "block * 4")
    artifact = builder.build(pretend.request(revision), on_line=lines.append)
    compiled = [line.split()[-1] for line in lines if line.startswith("  CC ")]
    # The release is in init/version.o, and differs for every variant.
    assert sorted(compiled) == ["fs/buffer.o", "init/version.o"]
    assert artifact.metadata.layer != ""


def test_a_variant_is_bit_for_bit_what_a_clean_build_makes(
    builder: Builder, pretend: PretendKernel, tmp_path: Path
) -> None:
    revision = pretend.edited("include/linux/fs.h", "unsigned long i_ino;", "unsigned long i_ino, i_more;")
    layered = builder.build(pretend.request(revision))
    store = ArtifactStore(tmp_path / "clean")
    clean = Builder(builder.home, builder.limits, artifacts=store, layered=False).build(
        pretend.request(revision)
    )
    assert layered.metadata.layer != ""
    assert clean.metadata.layer == ""
    assert layered.key == clean.key
    assert layered.vmlinux.read_bytes() == clean.vmlinux.read_bytes()


def compiled_over_base(
    builder: Builder, request: BuildRequest, folder: Path, base: NamedRevision
) -> set[str]:
    """Build a variant over its base, which must give the bytes of a build from nothing; return what was compiled."""
    request = replace(request, base=base)
    builder.build(replace(request, revision=base))
    lines: list[str] = []
    layered = builder.build(request, on_line=lines.append)
    clean = Builder(builder.home, builder.limits, artifacts=ArtifactStore(folder), layered=False).build(
        request
    )
    assert layered.metadata.layer
    assert layered.vmlinux.read_bytes() == clean.vmlinux.read_bytes()
    return {line.split()[-1] for line in lines if line.startswith("  CC ")}


@pytest.mark.parametrize("added", [True, False], ids=["added", "removed"])
def test_a_header_where_it_is_found_first_is_followed(
    builder: Builder, pretend: PretendKernel, tmp_path: Path, added: bool
) -> None:
    header = (pretend.work / "include/linux/fs.h").read_text()
    first = header.replace("unsigned long i_ino;", "unsigned long i_more, i_ino;")
    other = pretend.variant({"arch/x86/include/linux/fs.h": first})
    base, revision = (pretend.base, other) if added else (other, pretend.base)
    compiled = compiled_over_base(builder, pretend.request(revision), tmp_path, base)
    assert {"fs/inode.o", "kernel/panic.o"} <= compiled
    assert "fs/buffer.o" not in compiled


def test_a_makefiles_own_rule_that_changes_is_followed(
    builder: Builder, pretend: PretendKernel, tmp_path: Path
) -> None:
    rule = "kernel/panic.o: kernel/made.h\nkernel/made.h:\n\t@mkdir -p kernel include; echo '#define MADE {}' >$@\n"
    panic = (pretend.work / "kernel/panic.c").read_text()
    made = {"kernel/panic.c": f"#include <../kernel/made.h>\nint made = MADE;\n{panic}"}
    base, revision = (pretend.variant({**made, "kernel/Makefile": rule.format(number)}) for number in (1, 2))
    compiled = compiled_over_base(builder, pretend.request(revision), tmp_path, base)
    assert compiled == {"kernel/panic.o", "init/version.o"}


def test_a_changed_tool_of_the_build_is_built_with_from_nothing(
    builder: Builder, pretend: PretendKernel
) -> None:
    builder.build(pretend.request())
    lines: list[str] = []
    revision = pretend.variant({"scripts/sorted.sh": "sort\n"})
    artifact = builder.build(pretend.request(revision), on_line=lines.append)
    assert artifact.metadata.layer == ""
    assert "kperflab: make cannot tell what scripts/sorted.sh changes; building from nothing" in lines


def test_over_a_layer_of_tomorrow_nothing_is_built(pretend: PretendKernel, tmp_path: Path) -> None:
    """All that make generates would be older than its objects."""
    builder = Builder(tmp_path, Limits(seconds=30, memory=1 << 30, cores=2))
    builder.build(pretend.request())
    objects = builder.layer_of(pretend.request())
    tomorrow = objects.stat().st_mtime + 86400
    os.utime(objects, (tomorrow, tomorrow))
    lines: list[str] = []
    variant = pretend.request(pretend.edited("fs/buffer.c", "block * 3", "block * 37"))
    artifact = builder.build(variant, on_line=lines.append)
    assert artifact.metadata.layer == ""
    assert [line for line in lines if "clock was set back" in line]


def test_changes_are_newer_than_all_of_a_layer_though_the_clock_was_set_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """make writes in folders of folders last, which the time of the uppermost does not show."""
    layers = Layers(tmp_path)
    made = tmp_path / "objects/own/obj/arch/x86/boot/bzImage"
    made.parent.mkdir(parents=True)
    made.touch()
    os.utime(tmp_path / "objects/own/obj", (1, 1))
    layers.keep("layer", tmp_path / "objects/own/obj", {}, lambda: None)
    monkeypatch.setattr("kernels.builds.layers.time.time", lambda: 1e9)
    newest = max(path.stat().st_mtime for path in layers.objects_of("layer").rglob("*"))
    assert newer_than(layers.objects_of("layer")) > newest


def test_a_variant_leaves_the_base_as_it_was(builder: Builder, pretend: PretendKernel, home: Path) -> None:
    builder.build(pretend.request())
    before = everything_below(home / "objects"), everything_below(home / "sources")
    revision = pretend.variant(
        {
            "include/linux/fs.h": "#define FEWER 1\n" + (pretend.work / "include/linux/fs.h").read_text(),
            "trouble.h": "write",
        }
    )
    lines: list[str] = []
    builder.build(pretend.request(revision), on_line=lines.append)
    assert [line for line in lines if line.startswith("wrote")] == []
    assert len([line for line in lines if line.startswith("refused")]) == 4
    after = everything_below(home / "objects"), everything_below(home / "sources")
    changed = {
        name for old, new in zip(before, after, strict=True) for name in set(old.items()) ^ set(new.items())
    }
    assert [name for name, _ in changed if "/obj/" in name or "fs" in name] == []


def test_a_clock_that_was_set_back_hides_no_change(
    builder: Builder, pretend: PretendKernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    builder.build(pretend.request())
    monkeypatch.setattr("kernels.builds.layers.time.time", lambda: 1e9)
    lines: list[str] = []
    revision = pretend.edited("fs/buffer.c", "block * 3", "block * 31")
    builder.build(pretend.request(revision), on_line=lines.append)
    assert "  CC      fs/buffer.o" in lines


def test_files_can_be_added_and_removed_by_a_variant(builder: Builder, pretend: PretendKernel) -> None:
    text = (pretend.work / "fs/inode.c").read_text()
    revision = pretend.variant(
        {
            "fs/inode.c": '#include "../fs/added.h"\n' + text,
            "fs/added.h": "",
            "fs/buffer.c": None,
            "fs/Makefile": (pretend.work / "fs/Makefile").read_text().replace(" fs/buffer.o", ""),
        }
    )
    builder.build(pretend.request(revision))
    moved = pretend.variant({"drivers/dummy.c": None, "drivers": "a file now"})
    builder.build(pretend.request(moved))
    broken = pretend.variant({"fs/buffer.c": None})
    with pytest.raises(CompileFailed, match=r"fs/buffer\.o|fs/buffer\.c"):
        builder.build(pretend.request(broken))


def test_a_comment_changes_no_code_but_a_statement_does(builder: Builder, pretend: PretendKernel) -> None:
    base = builder.build(pretend.request())
    comment = pretend.edited("fs/inode.c", "/* Walks a chain. */", "/* Walks\n * a\n * chain.\n */")
    statement = pretend.edited("fs/inode.c", "i_ino == ino", "i_ino >= ino")
    assert builder.build(pretend.request(comment)).metadata.code_hash == base.metadata.code_hash
    assert builder.build(pretend.request(statement)).metadata.code_hash != base.metadata.code_hash


def test_a_patch_that_does_not_compile_is_told_by_its_first_error(
    builder: Builder, pretend: PretendKernel
) -> None:
    revision = pretend.edited("fs/inode.c", "return inode;", "return innode;")
    with pytest.raises(CompileFailed) as caught:
        builder.build(pretend.request(revision))
    assert str(caught.value).startswith("fs/inode.c:16:")
    assert "error: ‘innode’ undeclared" in str(caught.value) or "error: 'innode' undeclared" in str(
        caught.value
    )
    assert "innode" in caught.value.detail
    assert caught.value.log is not None
    assert "innode" in caught.value.log.read_text()
    assert builder.build(pretend.request()).key != builder.key(pretend.request(revision))


def test_a_variant_can_repair_a_base_that_does_not_compile(pretend: PretendKernel, tmp_path: Path) -> None:
    broken = pretend.edited("fs/buffer.c", "block * 3", "blok * 3")
    builder = Builder(tmp_path, Limits(seconds=30, cores=2))
    request = replace(pretend.request(), base=broken)
    lines: list[str] = []
    artifact = builder.build(request, on_line=lines.append)
    assert artifact.metadata.layer == ""
    assert any("the base does not compile" in line for line in lines)


def test_a_variant_without_its_layer_builds_the_base_first(pretend: PretendKernel, tmp_path: Path) -> None:
    builder = Builder(tmp_path, Limits(seconds=30, cores=2))
    revision = pretend.edited("fs/buffer.c", "block * 3", "block * 5")
    artifact = builder.build(pretend.request(revision))
    assert artifact.metadata.layer != ""
    assert builder.artifacts.has(builder.key(pretend.request()))


def test_builds_at_the_same_time_share_one_base(pretend: PretendKernel, tmp_path: Path) -> None:
    """Three variants, one of them asked for twice, of a base that nobody has built."""
    revisions = [
        pretend.edited("fs/buffer.c", "block * 3", f"block * {factor}") for factor in (41, 42, 43, 43)
    ]
    lines: list[str] = []

    def build(revision: NamedRevision) -> Artifact:
        builder = Builder(tmp_path, Limits(seconds=60, cores=1))
        return builder.build(pretend.request(revision), on_line=lines.append)

    with ThreadPoolExecutor(4) as pool:
        artifacts = list(pool.map(build, revisions))
    assert len({artifact.key for artifact in artifacts}) == 3
    assert all(artifact.metadata.layer for artifact in artifacts)
    assert lines.count("  CC      kernel/panic.o") == 1
    assert lines.count("  CC      fs/buffer.o") == 4


def test_a_config_switch_is_a_variant_of_its_base(builder: Builder, pretend: PretendKernel) -> None:
    base = pretend.request().config
    request = pretend.request(config=with_lines("CONFIG_EXPERT=y", "CONFIG_FAST_INODES=y"), base_config=base)
    lines: list[str] = []
    artifact = builder.build(request, on_line=lines.append)
    assert (
        artifact.metadata.layer
        == builder.build(pretend.request(pretend.edited("fs/buffer.c", "* 3", "* 6"))).metadata.layer
    )
    assert "fast_inodes" in artifact.system_map.read_text()


def test_external_modules_are_built_against_the_variant(builder: Builder, pretend: PretendKernel) -> None:
    source = b"#include <linux/fs.h>\nunsigned long size = sizeof(struct inode);\n"
    request = pretend.request()
    modules = (ModuleSource("bh-lookup", {"bh_lookup.c": source}),)
    built = builder.build(replace(request, modules=modules))
    assert (built.modules / "bh_lookup.ko").stat().st_size > 0
    other = (ModuleSource("bh-lookup", {"bh_lookup.c": source + b"int more;\n"}),)
    again = builder.build(replace(request, modules=other))
    assert len({built.key, again.key, builder.key(request)}) == 3
    assert len({built.metadata.code_hash, again.metadata.code_hash}) == 2


def test_an_external_module_that_does_not_compile_is_told(builder: Builder, pretend: PretendKernel) -> None:
    modules = (ModuleSource("bh-lookup", {"bh_lookup.c": b"int f(void) { return x; }\n"}),)
    with pytest.raises(CompileFailed, match=r"^bh-lookup/bh_lookup.c:1:22: error: "):
        builder.build(replace(pretend.request(), modules=modules))
    with pytest.raises(ConfigRejected, match="not a plain file name"):
        builder.key(replace(pretend.request(), modules=(ModuleSource("m", {"../x.c": b""}),)))


def test_modules_of_the_tree_are_handed_out(builder: Builder, pretend: PretendKernel) -> None:
    config = with_lines("CONFIG_MODULES=y", "CONFIG_DUMMY=m")
    artifact = builder.build(pretend.request(config=config, base_config=pretend.request().config))
    assert [path.name for path in artifact.modules.iterdir()] == ["dummy.ko"]


def test_a_kernel_without_modules_hands_out_none_of_its_base(
    builder: Builder, pretend: PretendKernel
) -> None:
    base = with_lines("CONFIG_MODULES=y", "CONFIG_DUMMY=m")
    artifact = builder.build(pretend.request(base_config=base))
    assert list(artifact.modules.iterdir()) == []


def test_progress_is_told_with_what_to_expect(builder: Builder, pretend: PretendKernel) -> None:
    seen: list[tuple[int, int]] = []
    for factor in (7, 8):
        seen.clear()
        revision = pretend.edited("fs/buffer.c", "block * 3", f"block * {factor}")
        builder.build(pretend.request(revision), on_progress=lambda *counts: seen.append(counts))
    done, expected = seen[-1]
    assert done == expected > 0
    assert seen[1][1] == expected


def test_a_callback_can_cancel_the_build(builder: Builder, pretend: PretendKernel) -> None:
    class CancelledError(Exception):
        pass

    def refuse(line: str) -> None:
        if "hanging" in line:
            raise CancelledError

    with pytest.raises(CancelledError):
        builder.build(pretend.request(pretend.variant({"trouble.h": "hang"})), on_line=refuse)
    assert not runs_in_sandbox(builder.home)


def test_a_tree_whose_kconfig_is_broken_is_the_submissions_fault(
    builder: Builder, pretend: PretendKernel
) -> None:
    revision = pretend.edited("Kconfig", "mainmenu", "config BROKEN_KCONFIG\nmainmenu")
    with pytest.raises(ConfigRejected, match="broken"):
        builder.key(pretend.request(revision))


def test_a_variant_that_leaves_kconfig_alone_asks_it_nothing(
    builder: Builder, pretend: PretendKernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    builder.key(pretend.request())
    monkeypatch.setenv("PATH", os.devnull + ":" + os.environ["PATH"])
    monkeypatch.setattr("kernels.builds.resolve_config.run", None)
    revision = pretend.edited("fs/buffer.c", "block * 3", "block * 9")
    assert builder.key(pretend.request(revision)) != builder.key(pretend.request())


def test_a_symbol_that_may_be_missing_for_one_request_is_not_lost_for_another(
    builder: Builder, pretend: PretendKernel
) -> None:
    builder.key(pretend.request(config=with_lines("CONFIG_OF_LATER=y # [if defined]")))
    with pytest.raises(ConfigRejected, match=r"CONFIG_OF_LATER=y.*no such symbol"):
        builder.key(pretend.request(config=with_lines("CONFIG_OF_LATER=y")))


def test_the_reproducer_builds_the_same_bytes(
    builder: Builder, pretend: PretendKernel, tmp_path: Path
) -> None:
    revision = pretend.edited("fs/buffer.c", "block * 3", "block * 10")
    artifact = builder.build(pretend.request(revision))
    checkout = tmp_path / "checkout"
    subprocess.run(["git", "clone", "-q", pretend.work, checkout], check=True, timeout=60)
    subprocess.run(["git", "-C", checkout, "checkout", "-q", pretend.base.commit], check=True, timeout=60)
    command = ["sh", str(artifact.reproducer), str(checkout), str(tmp_path / "objects")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert "vmlinux: OK" in done.stdout, done.stdout + done.stderr


def test_a_disk_that_is_full_while_the_config_is_made_is_nobodys_patch(
    pretend: PretendKernel, tmp_path: Path
) -> None:
    never_enough = Limits(seconds=30, memory=1 << 30, cores=2, reserve=1 << 60)
    with pytest.raises(DiskFull, match="config") as caught:
        Builder(tmp_path, never_enough).key(pretend.request())
    assert (caught.value.blame, caught.value.retry) == ("lab", True)
