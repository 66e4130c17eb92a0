# SPDX-License-Identifier: GPL-2.0-or-later
"""Before make, the front goes through a base's objects: what a change leaves as it is needs no recipe, everything else gets one."""

from __future__ import annotations

import re
import subprocess
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from kernels.artifacts.store import Artifact, ArtifactStore
from kernels.builds.builder import Builder, BuildRequest, Limits
from kernels.builds.front_program import compile_front
from kernels.builds.layer_changes import can_sweep
from kernels.builds.tests.test_front_builds import same
from kernels.errors import CompileFailed
from kernels.tests.kept import kept
from kernels.tests.pretend import FAKELINUX, PretendKernel
from kernels.trees.tree import NamedRevision

LAST = "struct inode *find_inode_fast(struct inode *head, unsigned long ino);\n"
FS_H = (FAKELINUX / "include/linux/fs.h").read_text()
USED = "static inline unsigned long number_of(struct inode *inode)\n{\n\treturn inode->i_ino;\n}\n"
# Of the four objects that read fs.h, buffer.o has a function of it with its lines (-g1 has none of what is inlined), and version.o
# a release that make generates.
BASE = {
    "include/linux/fs.h": FS_H.replace(LAST, LAST + USED),
    "fs/buffer.c": "#include <linux/fs.h>\nunsigned long (*used)(struct inode *) = number_of;\n",
    "init/version.c": "#include <linux/fs.h>\n" + (FAKELINUX / "init/version.c").read_text(),
}
_OBJECT = re.compile(r"  (CC|SAME) +(\S+)\.o")


@dataclass(frozen=True, slots=True)
class Sweeps:
    """A state directory with the base's objects, and how to build what changes it."""

    pretend: PretendKernel
    home: Path
    base: NamedRevision
    files: Mapping[str, str] = field(default_factory=lambda: BASE)

    def request(self, files: Mapping[str, str]) -> BuildRequest:
        """Return the request for the base with some files as they are here."""
        revision = self.pretend.variant({**self.files, **files}) if files else self.base
        return replace(self.pretend.request(revision), base=self.base, trusted=True)

    def build(self, files: Mapping[str, str]) -> tuple[Artifact, dict[str, str], Counter[str]]:
        """Build over the base; return the artifact, SAME or CC for each object, and the front's events."""
        builder = Builder(self.home, Limits(seconds=120, cores=2), front=True)
        artifact = builder.build(self.request(files))
        # What the sweep compiled, make names too.
        steps = {path: step for step, path in _OBJECT.findall(artifact.log.read_text())}
        return artifact, steps, builder.front_events

    def clean(self, files: Mapping[str, str], folder: Path) -> Artifact:
        """Build the same from nothing, without a store."""
        artifacts = ArtifactStore(folder / "artifacts")
        builder = Builder(
            folder, Limits(seconds=120, cores=2), artifacts=artifacts, layered=False, front=True
        )
        return builder.build(self.request(files))


@pytest.fixture(scope="module")
def unproven() -> Iterator[None]:
    """A front that compiles no answer for a proof."""
    program = compile_front(kept("front"))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("kernels.builds.front_build.compile_front", lambda root: program)
        patched.setattr("kernels.builds.front_build.PROVEN", 0)
        yield


@pytest.fixture(scope="module")
def sweeps(pretend: PretendKernel, unproven: None, tmp_path_factory: pytest.TempPathFactory) -> Sweeps:
    sweeps = Sweeps(pretend, tmp_path_factory.mktemp("sweep") / "home", pretend.variant(BASE))
    _, steps, _ = sweeps.build({})
    assert set(steps.values()) == {"CC"}
    return sweeps


FIELD = ("unsigned long i_ino;", "long i_more;\n\tunsigned long i_ino;")


def header(old: str, new: str) -> dict[str, str]:
    """Return fs.h of the base with one place changed."""
    text = BASE["include/linux/fs.h"]
    assert text.count(old) == 1
    return {"include/linux/fs.h": text.replace(old, new)}


@pytest.mark.process
@pytest.mark.parametrize(
    ("old", "new", "made"),
    [
        pytest.param(USED, USED + "int nobody_calls(int);\n", [], marks=pytest.mark.thorough),
        # The lines of a function move: its user is assembled again, from what the sweep left.
        (USED, "int nobody_calls(int);\n" + USED, ["fs/buffer"]),
        pytest.param("i_ino;\n}", "i_ino + 1;\n}", ["fs/buffer"], marks=pytest.mark.thorough),
        # panic.o reaches the structure, so it is compiled to be seen unchanged.
        (*FIELD, ["fs/buffer", "fs/inode"]),
    ],
    ids=["a declaration at the end", "lines that move", "a body", "a field"],
)
def test_only_what_a_change_reaches_is_made_again_and_boots_to_the_bit_as_from_nothing(
    sweeps: Sweeps, tmp_path: Path, old: str, new: str, made: list[str]
) -> None:
    files = header(old, new)
    artifact, steps, events = sweeps.build(files)
    # The release in version.o is this build's own: make generated it after the sweep.
    assert sorted(path for path, step in steps.items() if step == "CC") == sorted([*made, "init/version"])
    assert sorted(steps) == ["fs/buffer", "fs/inode", "init/version", "kernel/panic"]
    assert (events["ready"], events["unchanged"]) == (len(made), int((old, new) == FIELD))
    assert f"left {4 - len(made) - events['unchanged']} as they were" in artifact.log.read_text()
    # make compiles nothing that the sweep compiled, and version.o is answered.
    assert events["miss"] == {"i_ino;\n}": 1, FIELD[0]: 3}.get(old, 0)
    assert same(artifact, sweeps.clean(files, tmp_path))


@pytest.mark.process
def test_an_object_that_reads_another_file_now_is_made_again(sweeps: Sweeps, tmp_path: Path) -> None:
    # make must hear of it.
    files = header("struct inode {", "#include <linux/more.h>\nstruct inode {")
    files["include/linux/more.h"] = "int nobody_calls(int);\n"
    artifact, steps, _ = sweeps.build(files)
    assert set(steps.values()) == {"CC"}
    assert same(artifact, sweeps.clean(files, tmp_path))


@pytest.mark.process
def test_an_object_that_newly_depends_on_a_symbol_of_the_config_is_made_again(
    sweeps: Sweeps, tmp_path: Path
) -> None:
    """Else its list would lack the symbol, and who switches it on over this layer would get the old object."""
    files = header(USED, USED + "#ifdef CONFIG_FAST_INODES\nint nobody_calls(int);\n#endif\n")
    artifact, steps, _ = sweeps.build(files)
    assert set(steps.values()) == {"CC"}
    assert same(artifact, sweeps.clean(files, tmp_path))


@pytest.mark.process
def test_a_mistake_that_no_object_has_fails_the_build(sweeps: Sweeps) -> None:
    with pytest.raises(CompileFailed, match="unknown type name"):
        sweeps.build(header(USED, USED + "unknown nobody_calls(int);\n"))


@pytest.mark.process
def test_after_a_first_mistake_the_sweep_compiles_nothing_ahead(sweeps: Sweeps) -> None:
    builder = Builder(sweeps.home, Limits(seconds=120, cores=1), front=True)
    with pytest.raises(CompileFailed, match="unknown_type") as failed:
        builder.build(sweeps.request(header(FIELD[0], "unknown_type i_ino;")))
    assert failed.value.log
    assert "READY" not in failed.value.log.read_text()


@pytest.mark.process
def test_a_file_whose_text_alone_has_warnings_is_compiled_by_make_alone(
    pretend: PretendKernel, unproven: None, tmp_path: Path
) -> None:
    spared = (
        '#pragma GCC diagnostic warning "-Waddress"\n#define IS_THERE(place) ((place) != 0)\n'
        "extern int shapes[3];\nint two(int a)\n{\n\treturn IS_THERE(shapes) ? a : 0;\n}\n"
    )
    base = {**BASE, "fs/buffer.c": BASE["fs/buffer.c"] + spared}
    sweeps = Sweeps(pretend, tmp_path / "home", pretend.variant(base), base)
    sweeps.build({})
    files = header(*FIELD)
    artifact, steps, events = sweeps.build(files)
    assert steps["fs/buffer"] == "CC"
    # Each was compiled once, by make or ahead of it.
    assert (events["miss"], events["own-unknown"]) == (3, 3)
    assert same(artifact, sweeps.clean(files, tmp_path))
    # Where only what it does not use has changed, gcc reads the source once.
    files = header(USED, USED + "int another(int);\n")
    artifact, steps, events = sweeps.build(files)
    assert (steps["fs/buffer"], events["again-check"], events["miss"]) == ("SAME", 0, 0)
    assert same(artifact, sweeps.clean(files, tmp_path))


@pytest.mark.process
def test_what_is_drawn_for_a_proof_is_compiled(sweeps: Sweeps, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kernels.builds.front_build.PROVEN", 1)
    _, steps, events = sweeps.build(header(USED, USED + "int another(int);\n"))
    assert set(steps.values()) == {"CC"}
    assert events["proven"] == 4


@pytest.mark.process
def test_an_object_of_which_nobody_knows_what_it_was_made_of_is_made_again(
    sweeps: Sweeps, tmp_path: Path
) -> None:
    subprocess.run(["cp", "-a", str(sweeps.home), str(tmp_path / "home")], check=True)
    for record in (tmp_path / "home/objects").glob("*/obj/fs/.inode.o.front"):
        record.unlink()
    _, steps, _ = replace(sweeps, home=tmp_path / "home").build(header(USED, USED + "int more(int);\n"))
    assert (steps["fs/inode"], steps["kernel/panic"]) == ("CC", "SAME")


@pytest.mark.parametrize(
    ("path", "config", "swept"),
    [
        ("include/linux/fs.h", "", True),
        ("fs/inode.c", "CONFIG_A=y\n", True),
        ("Documentation/mm/slub.rst", "", True),
        ("MAINTAINERS", "", True),
        ("fs/Makefile", "", False),
        ("Documentation/Kconfig", "", False),
        ("fs/table.txt", "", False),
        ("include/asm-generic/Kbuild", "", False),
        ("arch/x86/entry/syscalls/syscall_64.tbl", "", False),
        ("tools/objtool/check.c", "", False),
        ("scripts/recordmcount.h", "", False),
        ("include/linux/fs.h", "CONFIG_MODVERSIONS=y\n", False),
    ],
)
def test_a_change_of_what_objects_depend_on_unseen_is_left_to_make(
    path: str, config: str, *, swept: bool
) -> None:
    assert can_sweep(["kernel/fork.c", path], config, config) is swept


def test_another_config_is_left_to_make() -> None:
    assert not can_sweep([], "CONFIG_A=y\n", "")
