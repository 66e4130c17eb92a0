# SPDX-License-Identifier: GPL-2.0-or-later
"""Builds of the pretend kernel through the compiler front, beside builds without a store."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from kernels.artifacts.store import Artifact, ArtifactStore
from kernels.builds.builder import Builder, BuildRequest, Limits, ModuleSource
from kernels.builds.compiled_files import TRUSTED
from kernels.errors import CompileFailed
from kernels.tests.cases import cases
from kernels.tests.pretend import FAKELINUX, PretendKernel
from kernels.trees.tree import NamedRevision

pytestmark = pytest.mark.process

Clean = Callable[[Builder, BuildRequest], Artifact]
# Lines of fs.h that move, and one that nobody uses.
CHANGES = {
    "a declaration at the beginning": ("struct inode {", "int nobody_calls(int);\n\nstruct inode {"),
    "a declaration at the end": ("\n#endif", "int nobody_calls(int);\n\n#endif"),
    "an inline function": (
        "struct inode {",
        "static inline int nobody(int a)\n{\n\treturn a;\n}\n\nstruct inode {",
    ),
    "a comment": ("struct inode {", "/* One.\n * Two. */\nstruct inode {"),
    "a macro": ("struct inode {", "#define NOBODY 1\nstruct inode {"),
}
QUICK = ("a declaration at the beginning", "an inline function")
# What a hostile makefile does to the folder that its build writes to.
SPOILS = (
    "for each in /build/out/compiled/*/*.o; do printf x >>$$each; done",
    "rm -rf /build/out/compiled; ln -s /etc /build/out/compiled",
    "rm -rf /build/out/compiled; ln -s /build/compiled0 /build/out/compiled",
    "for each in /build/out/compiled/*/*.o; do ln -sf /etc/hostname $$each; done",
    "chmod -R 0 /build/out/compiled || true",
    "rm -rf /build/out/compiled; mkfifo /build/out/compiled",
)
# Where it may not write.
PLACES = ("/build/front/gcc", "/build/front/front.conf", "/build/compiled0/aa", "/build/compiled1/aa")


@pytest.fixture(autouse=True)
def compiled(program: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Take the front that is there."""
    monkeypatch.setattr("kernels.builds.front_build.compile_front", lambda root: program)


@pytest.fixture
def own(tmp_path: Path) -> Builder:
    """A builder with an empty state directory."""
    return Builder(tmp_path / "home", Limits(seconds=120, cores=2), front=True)


@pytest.fixture(scope="module")
def home_with_base(program: Path, pretend: PretendKernel, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A state directory with the base, which the operator vouches for."""
    home = tmp_path_factory.mktemp("base") / "home"
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("kernels.builds.front_build.compile_front", lambda root: program)
        builder = Builder(home, Limits(seconds=120, cores=2), front=True)
        builder.build(trusted(pretend.request()))
    assert builder.front_events["miss"] == 4
    return home


@pytest.fixture
def based(own: Builder, home_with_base: Path) -> Builder:
    """A builder whose state directory has the base."""
    subprocess.run(["cp", "-a", f"{home_with_base}/.", str(own.home)], check=True)
    return own


def trusted(request: BuildRequest) -> BuildRequest:
    """Return the request with a base that the operator vouches for."""
    return replace(request, trusted=True)


@pytest.fixture(scope="module")
def clean(tmp_path_factory: pytest.TempPathFactory) -> Clean:
    """Build from nothing through the front, each request in a state directory of its own where nothing is kept."""
    built: dict[tuple[str, str, bool], Artifact] = {}

    def build(builder: Builder, request: BuildRequest) -> Artifact:
        key = (request.base.commit, request.revision.commit, request.trusted)
        if key not in built:
            folder = tmp_path_factory.mktemp("clean")
            artifacts = ArtifactStore(folder / "artifacts")
            own = Builder(folder, builder.limits, artifacts=artifacts, layered=False, front=True)
            built[key] = own.build(request)
        return built[key]

    return build


def same(artifact: Artifact, other: Artifact) -> bool:
    """Return whether two artifacts have the same bytes, debugging information among them."""
    modules = [
        sorted(path.name for path in (each.vmlinux.parent / "modules").iterdir())
        for each in (artifact, other)
    ]
    pairs = [
        (artifact.vmlinux, other.vmlinux),
        (artifact.boot_vmlinux, other.boot_vmlinux),
        (artifact.system_map, other.system_map),
    ]
    pairs += [
        (artifact.vmlinux.parent / "modules" / name, other.vmlinux.parent / "modules" / name)
        for name in modules[0]
    ]
    return modules[0] == modules[1] and all(a.read_bytes() == b.read_bytes() for a, b in pairs)


def stored(builder: Builder) -> dict[str, int]:
    """Return how many files each store has."""
    root = builder.home / "objects/compiled"
    return {path.name: sum(1 for _ in path.glob("*/*")) for path in root.iterdir()} if root.exists() else {}


def header(pretend: PretendKernel, change: str) -> NamedRevision:
    """Return the base with one of CHANGES in fs.h."""
    return pretend.edited("include/linux/fs.h", *CHANGES[change])


@pytest.mark.parametrize("change", cases(CHANGES, QUICK))
def test_a_changed_header_is_answered_and_boots_to_the_bit_as_from_nothing(
    based: Builder, pretend: PretendKernel, clean: Clean, change: str
) -> None:
    request = trusted(pretend.request(header(pretend, change)))
    ours = based.build(request)
    # fs/inode.o and kernel/panic.o read fs.h, and are left as they are; init/version.o has a release of its own.
    events = based.front_events
    assert (events["hit"] + events["same"], events["miss"]) == (3, 0)
    assert same(ours, clean(based, request))


def test_a_changed_structure_is_compiled(based: Builder, pretend: PretendKernel, clean: Clean) -> None:
    revision = pretend.edited(
        "include/linux/fs.h", "unsigned long i_ino;", "long i_more;\n\tunsigned long i_ino;"
    )
    request = trusted(pretend.request(revision))
    ours = based.build(request)
    # The file that has the release is answered, here as everywhere below.
    assert (based.front_events["hit"], based.front_events["miss"]) == (1, 2)
    assert same(ours, clean(based, request))


def forget_revisions(builder: Builder) -> None:
    """Have the next base built from nothing."""
    for path in builder.home.glob("objects/*/revision.json"):
        path.unlink()


def as_base(pretend: PretendKernel, revision: NamedRevision) -> BuildRequest:
    """Return the request of a revision as the base of its own experiment."""
    return replace(pretend.request(revision), base=revision)


def test_another_base_is_answered_from_the_trusted_store(
    based: Builder, pretend: PretendKernel, clean: Clean
) -> None:
    makefile = (FAKELINUX / "Makefile").read_text()
    changed = (FAKELINUX / "include/linux/fs.h").read_text().replace(*CHANGES["a comment"])
    later = pretend.variant({"include/linux/fs.h": changed, "Makefile": f"{makefile}\n# later\n"})
    request = trusted(as_base(pretend, later))
    ours = based.build(request)
    assert ours.metadata.layer == ""
    assert (based.front_events["hit"], based.front_events["miss"]) == (4, 0)
    assert same(ours, clean(based, request))


@pytest.mark.parametrize("change", cases(CHANGES, QUICK[:1]))
def test_a_base_is_built_over_the_layer_of_another_revision_and_boots_to_the_bit_as_from_nothing(
    based: Builder, pretend: PretendKernel, clean: Clean, change: str
) -> None:
    request = trusted(as_base(pretend, header(pretend, change)))
    ours = based.build(request)
    assert ours.metadata.layer == based.layer_of(trusted(pretend.request())).parent.name
    assert (based.front_events["hit"] + based.front_events["same"], based.front_events["miss"]) == (3, 0)
    assert same(ours, clean(based, request))


def test_the_nearest_layer_is_taken_and_variants_stand_on_the_new_one(
    based: Builder, pretend: PretendKernel, clean: Clean
) -> None:
    first = trusted(as_base(pretend, header(pretend, "an inline function")))
    based.build(first)
    inode = (FAKELINUX / "fs/inode.c").read_text()
    changed = (FAKELINUX / "include/linux/fs.h").read_text().replace(*CHANGES["an inline function"])
    second = trusted(
        as_base(
            pretend, pretend.variant({"include/linux/fs.h": changed, "fs/inode.c": inode + "int more;\n"})
        )
    )
    ours = based.build(second)
    assert ours.metadata.layer == based.layer_of(first).parent.name
    assert same(ours, clean(based, second))
    back = replace(second, revision=first.revision)
    variant = based.build(back)
    assert variant.metadata.layer == based.layer_of(second).parent.name
    assert same(variant, clean(based, back))


def test_a_base_that_nobody_vouches_for_is_neither_built_over_another_nor_built_over(
    based: Builder, pretend: PretendKernel
) -> None:
    strange = as_base(pretend, header(pretend, "a comment"))
    assert based.build(strange).metadata.layer == ""
    near = trusted(as_base(pretend, header(pretend, "a macro")))
    assert based.build(near).metadata.layer == based.layer_of(trusted(pretend.request())).parent.name


def test_a_base_with_a_new_link_is_built_from_nothing(based: Builder, pretend: PretendKernel) -> None:
    linked = pretend.variant({"include/linux/other.h": Path("fs.h")})
    assert based.build(trusted(as_base(pretend, linked))).metadata.layer == ""


@pytest.mark.parametrize(
    "note", ['{"family"', '{"family": "FAMILY"}', f'{{"family": "FAMILY", "tree_id": "{"5" * 40}"}}']
)
def test_a_layer_that_does_not_say_what_it_is_of_is_not_built_over(
    based: Builder, pretend: PretendKernel, note: str
) -> None:
    """Neither where its note is damaged, nor where the repository has no such revision."""
    (file,) = based.home.glob("objects/*/revision.json")
    file.write_text(note.replace("FAMILY", json.loads(file.read_text())["family"]))
    assert based.build(trusted(as_base(pretend, header(pretend, "a comment")))).metadata.layer == ""


def test_a_new_recipe_of_the_front_builds_each_base_once_more(
    based: Builder, pretend: PretendKernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a variant over the base of before would find nothing of it in the store, and be compiled whole."""
    before = based.layer_of(trusted(pretend.request()))
    monkeypatch.setattr("kernels.builds.front_sources.recipe_of_sources", lambda: "front of tomorrow")
    assert before.is_dir()
    assert based.layer_of(trusted(pretend.request())) != before
    based.build(trusted(pretend.request()))
    assert (based.front_events["miss"], based.front_events["hit"]) == (4, 0)


def test_a_kernel_by_the_front_has_the_code_of_one_by_the_compiler_alone(
    own: Builder, builder: Builder, pretend: PretendKernel
) -> None:
    ours, theirs = own.build(pretend.request()), builder.build(pretend.request())
    assert ours.key != theirs.key
    assert ours.metadata.code_hash == theirs.metadata.code_hash


def test_a_compiler_that_the_front_does_not_know_builds_under_the_key_of_today(
    own: Builder, builder: Builder, pretend: PretendKernel
) -> None:
    request = pretend.request()
    other = replace(request, toolchain=replace(request.toolchain, cc="cc"))
    assert own.key(other) == builder.key(other)
    assert own.key(request) != builder.key(request)
    own.build(other)
    assert own.front_events.total() == 0


def test_the_reproducer_brings_the_front_along(own: Builder, pretend: PretendKernel, tmp_path: Path) -> None:
    artifact = own.build(pretend.request())
    text = (artifact.vmlinux.parent / "reproducer.sh").read_text()
    assert "END_OF_FRONT" in text
    assert '--ro-bind "$front" /build/front' in text
    assert "--setenv PATH /build/front:/usr/sbin:/usr/bin" in text


class TestWhatAHostileBuildLeaves:
    """Nothing that code of a stranger's ran for is read by a build without that code."""

    pytestmark = pytest.mark.hostile

    @pytest.mark.parametrize("vouched", [False, True])
    def test_a_variant_keeps_nothing(self, own: Builder, pretend: PretendKernel, vouched: bool) -> None:
        base = replace(pretend.request(), trusted=vouched)
        own.build(base)
        before = stored(own)
        own.build(replace(base, revision=pretend.edited("fs/buffer.c", "block * 3", "block * 5")))
        assert own.front_events["miss"] > 4
        assert stored(own) == before

    def test_a_base_with_modules_keeps_nothing_of_them(self, own: Builder, pretend: PretendKernel) -> None:
        base = trusted(pretend.request())
        own.build(base)
        before = stored(own)
        own.build(replace(base, modules=(ModuleSource("lab_bh", {"lab_bh.c": b"int lab_bh;\n"}),)))
        assert stored(own) == before

    def test_a_base_that_nobody_vouches_for_writes_to_a_store_of_its_own(
        self, own: Builder, pretend: PretendKernel
    ) -> None:
        layer = own.layer_of(pretend.request()).parent.name
        own.build(pretend.request())
        counts = stored(own)
        assert counts.pop(f"base-{layer}") > 0
        assert not any(counts.values())

    def test_what_an_untrusted_base_compiled_answers_no_other_base(
        self, own: Builder, pretend: PretendKernel
    ) -> None:
        later = header(pretend, "a declaration at the end")
        own.build(replace(pretend.request(later), base=later))
        own.front_events.clear()
        own.build(trusted(pretend.request()))
        assert (own.front_events["hit"], own.front_events["miss"]) == (0, 4)

    @pytest.mark.parametrize("vouched", [False, True])
    @pytest.mark.parametrize("recipe", cases(SPOILS, SPOILS[:2]))
    def test_a_base_that_spoils_its_folder_spoils_no_store(
        self, own: Builder, pretend: PretendKernel, clean: Clean, vouched: bool, recipe: str
    ) -> None:
        text = (FAKELINUX / "Makefile").read_text()
        hostile = pretend.variant(
            {"trouble.h": "spoil", "Makefile": f"{text}\ntrouble-spoil: vmlinux System.map\n\t@{recipe}\n"}
        )
        own.build(replace(pretend.request(hostile), base=hostile, trusted=vouched))
        own.front_events.clear()
        request = replace(pretend.request(), trusted=vouched)
        ours = own.build(request)
        assert own.front_events["corrupt"] == 0
        assert same(ours, clean(own, request))

    @pytest.mark.parametrize("place", cases(PLACES, (PLACES[0], PLACES[2])))
    def test_a_tree_writes_neither_to_the_front_nor_to_a_store(
        self, own: Builder, pretend: PretendKernel, place: str
    ) -> None:
        text = (FAKELINUX / "Makefile").read_text()
        recipe = f"if (: >>{place}) 2>/dev/null; then echo wrote; else echo refused; fi"
        hostile = pretend.variant(
            {"trouble.h": "spoil", "Makefile": f"{text}\ntrouble-spoil:\n\t@{recipe}\n"}
        )
        lines: list[str] = []
        own.build(replace(pretend.request(hostile), base=hostile), on_line=lines.append)
        assert [line for line in lines if line in ("wrote", "refused")] == ["refused"]

    def test_a_build_that_fails_keeps_nothing(self, own: Builder, pretend: PretendKernel) -> None:
        broken = pretend.variant({"trouble.h": "silence"})
        with pytest.raises(CompileFailed):
            own.build(trusted(replace(pretend.request(broken), base=broken)))
        assert not any(stored(own).values())


class TestAStoreThatFails:
    """The files are compiled, and the fault is counted."""

    pytestmark = pytest.mark.hostile

    def test_corrupt_files_are_compiled_counted_and_removed(
        self, based: Builder, pretend: PretendKernel
    ) -> None:
        for path in (based.home / "objects/compiled" / TRUSTED).glob("*/*.o"):
            path.write_bytes(path.read_bytes()[:-1] + b"x")
        forget_revisions(based)
        later = header(pretend, "a comment")
        based.build(trusted(replace(pretend.request(later), base=later)))
        assert based.front_events["hit"] == 0
        assert based.front_events["corrupt"] == 4
        based.front_events.clear()
        forget_revisions(based)
        again = header(pretend, "a macro")
        based.build(trusted(replace(pretend.request(again), base=again)))
        assert (based.front_events["hit"], based.front_events["corrupt"]) == (4, 0)

    def test_a_store_that_cannot_be_made_is_done_without(
        self, own: Builder, pretend: PretendKernel, clean: Clean
    ) -> None:
        (own.home / "objects").mkdir(parents=True, exist_ok=True)
        (own.home / "objects/compiled").write_text("in the way")
        request = trusted(pretend.request())
        ours = own.build(request)
        assert own.front_events["unreachable"] >= 1
        assert same(ours, clean(own, request))

    def test_a_store_without_room_is_done_without(
        self, own: Builder, pretend: PretendKernel, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def full(path: Path, data: bytes) -> None:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr("kernels.builds.compiled_files._write", full)
        own.build(trusted(pretend.request()))
        assert own.front_events["unreachable"] == 1
        assert not any(stored(own).values())

    def test_a_store_of_an_earlier_run_may_be_removed_at_any_time(
        self, based: Builder, pretend: PretendKernel
    ) -> None:
        shutil.rmtree(based.home / "objects/compiled")
        based.build(trusted(pretend.request(header(pretend, "a comment"))))
        assert (based.front_events["hit"], based.front_events["miss"]) == (0, 3)
