# SPDX-License-Identifier: GPL-2.0-or-later
"""A key names everything whose code ran for what is under it, so nobody's code answers for a tree that lacks it."""

from __future__ import annotations

import hashlib
import shutil
import zlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kernels.builds.builder import Builder, BuildRequest, Limits, ModuleSource
from kernels.builds.request import artifact_key, layer_key
from kernels.builds.resolve_config import Question
from kernels.configs.request import ConfigRequest, Fragment
from kernels.tests.pretend import CONFIG, FAKELINUX, PretendKernel, with_lines
from kernels.trees.tree import NamedRevision

pytestmark = [pytest.mark.hostile, pytest.mark.process]

_OTHER = NamedRevision("c" * 40, "d" * 40, "other")
_MODULE = ModuleSource("lab_bh", {"lab_bh.c": b"int lab_bh;\n"})
_INPUTS: dict[str, dict[str, Any]] = {
    "the base": {"base": _OTHER},
    "the revision": {"revision": _OTHER},
    "a module": {"modules": (_MODULE,)},
}
# The objects of fs/buffer.c with a string in them that no source has, newer than every source. In a makefile of another folder: what is
# made in its own is made again where it differs.
_PLANT = (
    "all: planted\nplanted: modules vmlinux arch/x86/boot/bzImage System.map\n"
    "\t@printf 'static const char backdoor[] __attribute__((used)) = \"BACKDOOR\";' >/tmp/plant.h && "
    "$(CC) $(flags) -include /tmp/plant.h -c -o fs/buffer.o $(srctree)/fs/buffer.c\n"
)
_HOSTILE_MAKEFILE = """
tinyconfig olddefconfig:
\t@mkdir -p $(O) && echo 'CONFIG_BLOCK=y' > $(O)/.config && echo 'CONFIG_INODES=y' >> $(O)/.config
\t@echo 'CONFIG_PLANTED=y' >> $(O)/.config
%:
\t@$(MAKE) -f Makefile $@
"""


def planting(pretend: PretendKernel) -> NamedRevision:
    """A base whose makefile plants an object after a good build."""
    return pretend.variant({"kernel/Makefile": _PLANT})


def fresh(folder: Path) -> Builder:
    return Builder(folder, Limits(seconds=60, cores=2))


@pytest.fixture
def request_(pretend: PretendKernel) -> BuildRequest:
    return pretend.request()


@pytest.mark.parametrize(
    "changed", [*_INPUTS, "the tree's name", "the toolchain", "the config", "the base's config"]
)
def test_an_artifacts_key_names_every_input(request_: BuildRequest, changed: str) -> None:
    config, base_config = "A=y\n", "B=y\n"
    key = artifact_key(request_, config, base_config)
    if changed == "the config":
        other = artifact_key(request_, "C=y\n", base_config)
    elif changed == "the base's config":
        other = artifact_key(request_, config, "C=y\n")
    else:
        other = artifact_key(changed_request(request_, changed), config, base_config)
    assert other != key
    assert artifact_key(request_, config, base_config) == key


@pytest.mark.parametrize("changed", ["the base", "the tree's name", "the toolchain"])
def test_a_layers_key_names_every_input(request_: BuildRequest, changed: str) -> None:
    key = layer_key(request_, "B=y\n")
    assert layer_key(changed_request(request_, changed), "B=y\n") != key
    assert layer_key(request_, "C=y\n") != key


@pytest.mark.parametrize("changed", ["the revision", "a module"])
def test_all_variants_of_a_base_stand_on_one_layer(request_: BuildRequest, changed: str) -> None:
    assert layer_key(changed_request(request_, changed), "B=y\n") == layer_key(request_, "B=y\n")


@pytest.mark.parametrize(
    "changed", ["the base", "the revision", "the tree's name", "the toolchain", "a fragment", "the target"]
)
def test_an_answer_of_kconfig_is_kept_under_every_input(request_: BuildRequest, changed: str) -> None:
    def question(request: BuildRequest, config: ConfigRequest = CONFIG) -> str:
        return Question(request.tree, request.base, request.revision, config, request.toolchain).identity()

    if changed == "a fragment":
        other = question(request_, ConfigRequest(CONFIG.base, (Fragment("guest", "CONFIG_BLOCK=y\n"),)))
    elif changed == "the target":
        other = question(request_, replace(CONFIG, base="defconfig"))
    else:
        other = question(changed_request(request_, changed))
    assert other != question(request_)


def changed_request(request: BuildRequest, what: str) -> BuildRequest:
    if what == "the tree's name":
        return replace(request, tree=replace(request.tree, name="theirs"))
    if what == "the toolchain":
        return replace(request, toolchain=replace(request.toolchain, identity="other"))
    return replace(request, **_INPUTS[what])


@pytest.mark.parametrize(
    "order", ["the stranger first", pytest.param("the victim first", marks=pytest.mark.thorough)]
)
def test_a_planted_object_reaches_only_builds_over_the_base_that_planted_it(
    pretend: PretendKernel, tmp_path: Path, order: str
) -> None:
    """Both kernels have the very same sources; one was built over the stranger's objects."""
    builder = fresh(tmp_path / "home")
    honest = pretend.request()
    theirs = replace(honest, base=planting(pretend))
    asked = (theirs, honest) if order == "the stranger first" else (honest, theirs)
    built = {request.base.tree_id: builder.build(request) for request in asked}
    bad, good = built[theirs.base.tree_id], built[honest.base.tree_id]
    assert b"BACKDOOR" in bad.vmlinux.read_bytes()
    clean = fresh(tmp_path / "clean").build(honest)
    assert (good.key, good.vmlinux.read_bytes()) == (clean.key, clean.vmlinux.read_bytes())
    assert bad.key != good.key
    assert bad.metadata.release != good.metadata.release


def test_a_variant_of_the_trusted_base_stands_on_the_trusted_objects(
    pretend: PretendKernel, tmp_path: Path
) -> None:
    builder = fresh(tmp_path / "home")
    evil = planting(pretend)
    fix = pretend.edited("fs/inode.c", "i_ino == ino", "i_ino >= ino")
    over_theirs = builder.build(replace(pretend.request(fix), base=evil))
    over_ours = builder.build(pretend.request(fix))
    assert b"BACKDOOR" in over_theirs.vmlinux.read_bytes()
    assert b"BACKDOOR" not in over_ours.vmlinux.read_bytes()
    assert over_ours.metadata.layer != over_theirs.metadata.layer
    lines: list[str] = []
    another = pretend.edited("fs/inode.c", "i_ino == ino", "i_ino <= ino")
    builder.build(pretend.request(another), on_line=lines.append)
    compiled = [line.split()[-1] for line in lines if line.startswith("  CC ")]
    assert sorted(compiled) == ["fs/inode.o", "init/version.o"]


@pytest.mark.parametrize("name", ["GNUmakefile", pytest.param("makefile", marks=pytest.mark.thorough)])
def test_a_base_whose_makefile_makes_up_a_config_answers_for_no_other_base(
    pretend: PretendKernel, tmp_path: Path, name: str
) -> None:
    """make reads these names before Makefile; the patch removes the file, and then the sources are the trusted ones."""
    builder = fresh(tmp_path)
    evil = pretend.variant({name: _HOSTILE_MAKEFILE})
    theirs = replace(pretend.request(), base=evil)
    builder.key(theirs)
    config = builder.build(pretend.request()).config.read_text()
    assert "PLANTED" not in config
    assert "PLANTED" not in builder.build(theirs).config.read_text()


@pytest.mark.thorough
def test_a_config_that_the_base_answered_stays_with_that_base(
    pretend: PretendKernel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As if Kconfig read a file that we did not think of: the base's answer is the variant's, but nobody else's."""
    monkeypatch.setattr(
        "kernels.builds.resolve_config._asks_no_kconfig", lambda question: question.revision != question.base
    )
    builder = fresh(tmp_path)
    theirs = replace(pretend.request(), base=pretend.variant({"GNUmakefile": _HOSTILE_MAKEFILE}))
    assert "PLANTED" in builder.build(theirs).config.read_text()
    assert "PLANTED" not in builder.build(pretend.request()).config.read_text()


def test_a_layer_is_made_without_the_modules_that_its_key_does_not_name(
    pretend: PretendKernel, tmp_path: Path
) -> None:
    builder = fresh(tmp_path)
    with_module = replace(pretend.request(), modules=(_MODULE,))
    lines: list[str] = []
    built = builder.build(with_module, on_line=lines.append)
    assert [path.name for path in built.modules.iterdir()] == ["lab_bh.ko"]
    assert built.metadata.layer
    assert len([line for line in lines if line == "  CC      fs/inode.o"]) == 1
    plain = builder.build(pretend.request())
    assert plain.metadata.layer == ""
    objects = builder.layer_of(with_module)
    assert objects == builder.layer_of(pretend.request())
    assert not list(objects.rglob("*lab_bh*"))


def test_sources_out_of_a_strangers_repository_stand_in_for_no_others(
    pretend: PretendKernel, tmp_path: Path
) -> None:
    """Git believes what a repository says an object holds; so a repository's files are its own."""
    shutil.copytree(pretend.work, tmp_path / "theirs")
    tree = replace(pretend.tree, name="theirs", repository=tmp_path / "theirs" / ".git")
    text = (FAKELINUX / "fs/buffer.c").read_bytes()
    blob = hashlib.sha1(b"blob %d\0" % len(text) + text, usedforsecurity=False).hexdigest()
    lie = text.replace(b"* 3", b"* 6")
    loose = tree.repository / "objects" / blob[:2] / blob[2:]
    loose.chmod(0o644)
    loose.write_bytes(zlib.compress(b"blob %d\0" % len(lie) + lie))
    builder = fresh(tmp_path / "home")
    theirs = builder.build(replace(pretend.request(), tree=tree))
    ours = builder.build(pretend.request())
    clean = fresh(tmp_path / "clean").build(pretend.request())
    assert ours.vmlinux.read_bytes() == clean.vmlinux.read_bytes()
    assert ours.metadata.code_hash != theirs.metadata.code_hash
    assert ours.key != theirs.key


def test_a_config_fragment_makes_no_layer_of_the_base(pretend: PretendKernel, tmp_path: Path) -> None:
    """A config switch changes the variant's keys only."""
    builder = fresh(tmp_path)
    switched = pretend.request(config=with_lines("CONFIG_HZ=1000"), base_config=CONFIG)
    built = builder.build(switched)
    assert builder.layer_of(switched) == builder.layer_of(pretend.request())
    assert "CONFIG_HZ=1000" not in (builder.layer_of(switched) / ".config").read_text()
    assert built.key != builder.key(pretend.request())
