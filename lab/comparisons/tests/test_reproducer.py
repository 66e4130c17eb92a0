# SPDX-License-Identifier: GPL-2.0-or-later
"""The one file that repeats an experiment, and what is said of the kernels that came of it."""

from __future__ import annotations

import hashlib
import json
import tomllib
from pathlib import Path

import pytest
from django.conf import settings

from kernels.artifacts.store import ArtifactMetadata, ArtifactStore
from lab.comparisons.exports.reproducer import write_reproducer
from lab.conftest import P1, P2, Describe
from lab.errors import SpecError
from lab.experiments.reproduction import told_difference
from lab.experiments.spec import ExperimentSpec, ReproducedKernel, Reproduces, read_spec, spec_digest
from lab.models import Build, Experiment, Switch, Tree
from lab.models.storable import storable_text
from lab.submission.submit import submit_experiment
from lab.tests.comparisons import HOSTILE
from lab.tests.factories import finish_build
from lab.tests.tiny_tree import git

pytestmark = pytest.mark.django_db

KERNEL = ReproducedKernel.model_construct(
    variant="p",
    tree_id="t" * 40,
    release="6.1-k1",
    artifact="a" * 64,
    code_hash="c" * 64,
    config="0" * 64,
    vmlinux="f" * 64,
    toolchain="gcc 12; ld 2.40",
    toolchain_identity="59e3",
)


def other(**facts: str) -> ReproducedKernel:
    return KERNEL.model_copy(update=facts)


def trees(experiment: Experiment) -> dict[str, str]:
    return dict(experiment.variants.values_list("name", "tree_id"))


def again(experiment: Experiment) -> ExperimentSpec:
    return read_spec(write_reproducer(experiment.pk).encode(), None)


@pytest.mark.process
def test_a_reproducer_is_a_description_of_the_very_same_sources(describe: Describe, home: Path) -> None:
    config = {"name": "no-mitigations", "lines": ["# CONFIG_SPECULATION_MITIGATIONS is not set"]}
    rules = {**P2, "requires": ["one"]}
    first = submit_experiment(
        spec=describe(patches=[P1, rules], configs=[config], design="cumulative"), home=home
    )
    spec = again(first)
    second = submit_experiment(spec=spec, home=home)
    assert trees(second) == trees(first)
    assert (second.base_commit, second.seed, second.design) == (first.base_commit, first.seed, "cumulative")
    assert spec.base == first.base_commit
    assert [b.inputs for b in Build.objects.all()] == [
        b.inputs for b in Build.objects.filter(variants__experiment=first).distinct()
    ]
    reproduced = spec.reproduces
    assert reproduced
    assert (reproduced.experiment, reproduced.base_tree_id) == (first.pk, first.base_tree_id)
    assert {fragment.name for fragment in reproduced.fragments} > {"guest"}


@pytest.mark.process
def test_a_reproducer_keeps_the_line_ends_of_a_file_from_windows(describe: Describe, home: Path) -> None:
    diff = (
        "diff --git a/fs/new.c b/fs/new.c\nnew file mode 100644\n--- /dev/null\n+++ b/fs/new.c\n"
        "@@ -0,0 +1,2 @@\n+one\r\n+two\r\n"
    )
    first = submit_experiment(spec=describe(patches=[{"name": "new", "text": diff}]), home=home)
    second = submit_experiment(spec=again(first), home=home)
    assert trees(second) == trees(first)


@pytest.mark.process
def test_the_same_experiment_is_the_same_text(describe: Describe, home: Path) -> None:
    experiment = submit_experiment(spec=describe(), home=home)
    assert write_reproducer(experiment.pk) == write_reproducer(experiment.pk)
    assert "\r" not in write_reproducer(experiment.pk)


@pytest.mark.process
def test_a_repaired_patch_goes_out_as_it_was_applied_with_its_author(describe: Describe, home: Path) -> None:
    head = "From: Ada <ada@example.org>\nSubject: [PATCH v2] fs: faster\nMessage-Id: <x@example.org>\n\n---\n"
    spoilt = head + P1["text"].replace("\n line", "\nline")
    experiment = submit_experiment(spec=describe(patches=[{"name": "one", "text": spoilt}]), home=home)
    assert experiment.switches.get().report
    second = submit_experiment(spec=again(experiment), home=home)
    switch = second.switches.get()
    assert (switch.report, trees(second)) == ([], trees(experiment))
    assert (switch.author, switch.title) == ("Ada <ada@example.org>", "fs: faster")
    assert switch.link == "https://lore.kernel.org/r/x@example.org"


@pytest.mark.process
def test_a_range_goes_out_as_a_diff_unless_its_patches_lie_over_one_another(
    describe: Describe, home: Path, tmp_path: Path, repository: Path
) -> None:
    clone = tmp_path / "clone"
    git(repository, "clone", "-q", str(repository), str(clone))
    for number, name in enumerate(("a", "b"), 1):
        (clone / "fs" / f"{name}.c").write_text("1\n")
        git(clone, "add", "-A")
        git(clone, "commit", "-q", "-m", name)
        git(clone, "branch", f"tip{number}")
    (clone / "fs" / "a.c").write_text("2\n")
    git(clone, "commit", "-qam", "a again")
    patches = [{"name": "apart", "range": "v6.1..tip2"}]
    experiment = submit_experiment(spec=describe(git=str(clone), patches=patches), home=home)
    spec = again(experiment)
    assert spec.patches[0].range is None
    assert trees(submit_experiment(spec=spec, home=home)) == trees(experiment)
    patches = [{"name": "over", "range": "v6.1..main"}]
    experiment = submit_experiment(spec=describe(git=str(clone), patches=patches), home=home)
    assert again(experiment).patches[0].range == "v6.1..main"


@pytest.mark.process
def test_a_trees_address_goes_out_only_where_others_may_have_it(describe: Describe, home: Path) -> None:
    experiment = submit_experiment(spec=describe(), home=home)
    location = experiment.tree.location
    text = write_reproducer(experiment.pk)
    assert location not in text
    assert "a repository of that lab" in text
    Tree.objects.update(location="https://git.example/linux.git")
    assert again(experiment).git == "https://git.example/linux.git"
    Tree.objects.update(location="https://me:secret@git.example/linux.git")
    assert "secret" not in write_reproducer(experiment.pk)


@pytest.mark.process
def test_an_address_that_a_registered_tree_has_is_that_tree(describe: Describe, home: Path) -> None:
    first = submit_experiment(spec=describe(), home=home)
    Tree.objects.update(name="mine")
    (home / "trees" / f"{first.tree.name}.git").rename(home / "trees" / "mine.git")
    second = submit_experiment(spec=describe(name="again"), home=home)
    assert (second.tree_id, second.tree.name) == (first.tree_id, "mine")


@pytest.mark.process
def test_hostile_texts_stay_where_they_were_put(describe: Describe, home: Path) -> None:
    experiment = submit_experiment(spec=describe(), home=home)
    bad = storable_text(" ".join(HOSTILE))
    Experiment.objects.filter(pk=experiment.pk).update(name=bad[:200], base_name=bad[:200])
    Switch.objects.filter(name="one").update(title=bad, author=bad[:300], link=bad, report=[bad])
    text = write_reproducer(experiment.pk)
    read = tomllib.loads(text)
    assert set(read) == {
        "name",
        "tree",
        "base",
        "design",
        "target",
        "patches",
        "cases",
        "measure",
        "reproduces",
    }
    comments = text[: text.index("\nname = ")].strip().split("\n")
    assert [line for line in comments if not line.startswith("#")] == []
    assert read["patches"][0]["text"].count("\ndiff --git") == 1


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('experiment = "x"', "reproduces.experiment"),
        ("experiment = 1\nkernel = 3", 'reproduces: unknown field "kernel"; did you mean "kernels"?'),
        ('experiment = 1\nbase_tree_id = "z"', "reproduces.base_tree_id"),
    ],
)
def test_a_wrong_reproducer_names_the_field(line: str, said: str) -> None:
    text = f'name = "x"\ntree = "t"\n[[cases]]\nworkload = "showgids"\n[reproduces]\n{line}\n'
    with pytest.raises(SpecError) as caught:
        read_spec(text.encode(), None)
    assert str(caught.value).startswith(said)


def test_a_description_that_reproduces_nothing_keeps_the_digest_it_had(describe: Describe) -> None:
    spec = describe()
    before = spec_digest(spec)
    repeats = spec.model_copy(update={"reproduces": Reproduces(experiment=1)})
    assert "reproduces" not in json.loads(canonical(spec))
    assert hashlib.sha256(canonical(spec).encode()).hexdigest() == before != spec_digest(repeats)


def canonical(spec: ExperimentSpec) -> str:
    """Return the digest's input as it was before reproducers, off-CPU profiles, priorities and series with gaps."""
    fields = spec.model_dump(mode="json")
    for patch in fields["patches"]:
        del patch["partial"]
    del fields["reproduces"], fields["measure"]["off_cpu"], fields["priority"]
    return json.dumps(fields, sort_keys=True, separators=(",", ":"))


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (KERNEL, "reproduced bit for bit: vmlinux is ffffffffffff again"),
        (
            other(vmlinux="e" * 64, toolchain="gcc 13; ld 2.41", toolchain_identity="77aa"),
            "the loaded code is identical, vmlinux is not: different toolchain (gcc 13; ld 2.41, originally gcc 12; ld 2.40)",
        ),
        (
            other(vmlinux="e" * 64, code_hash="d" * 64, config="1" * 64),
            "not the reproduced kernel: different config (111111111111, originally 000000000000)",
        ),
        (
            other(vmlinux="e" * 64, code_hash="d" * 64, toolchain_identity="77aa"),
            "not the reproduced kernel: different toolchain (with a different flex, bison, bc, make or pahole)",
        ),
        (
            other(vmlinux="e" * 64, code_hash="d" * 64, tree_id="b" * 40),
            f"not the reproduced kernel: different sources (tree {'b' * 12}, originally {'t' * 12})",
        ),
        (
            other(vmlinux="e" * 64, code_hash="d" * 64),
            "not the reproduced kernel: from equal inputs: the build does not reproduce itself",
        ),
        (
            other(vmlinux="e" * 64, code_hash="d" * 64, artifact="b" * 64),
            "not the reproduced kernel: sources, config and toolchain are the same: modules or the build procedure differ",
        ),
        (other(vmlinux=""), "reproduced: the loaded code is identical"),
    ],
)
def test_two_kernels_are_told_apart_by_their_causes(found: ReproducedKernel, said: str) -> None:
    assert told_difference(KERNEL, found) == said


def build_all(experiment: Experiment, marks: dict[str, str], toolchain: str = "gcc 12; ld 2.40") -> None:
    """Finish every build with an artifact in the store whose vmlinux is the mark of its variant."""
    store = ArtifactStore(settings.HOME / "artifacts")
    for build in Build.objects.filter(variants__experiment=experiment).distinct():
        name = (
            build.variants.filter(experiment=experiment)
            .order_by("position")
            .values_list("name", flat=True)[0]
        )
        key = f"{hash((marks[name], toolchain)) & (2**200 - 1):064x}"
        store.remove(key)
        folder = settings.HOME / "artifacts" / f".draft-{key[-8:]}"
        folder.mkdir(parents=True)
        (folder / "vmlinux").write_text(marks[name])
        metadata = ArtifactMetadata(
            release="6.1-k1",
            tree="tiny",
            revision=build.commit,
            tree_id=build.tree_id,
            base="c" * 40,
            config_sha256="0" * 64,
            toolchain=toolchain,
            toolchain_identity=f"{hash(toolchain) & 0xFFFFFF:016x}",
            code_hash=f"{hash(marks[name]) & 0xFFFFFF:064x}",
            seconds_cpu=1.0,
            seconds_wall=1.0,
            layer="",
            built_at="2026-11-20",
        )
        artifact = store.add(key, folder, metadata)
        finish_build(build, artifact_key=key, release="6.1-k1", code_hash=artifact.metadata.code_hash)


def notes(experiment: Experiment) -> dict[str, str]:
    return dict(experiment.variants.values_list("name", "note"))


@pytest.mark.process
def test_each_kernel_of_a_reproducer_is_compared_with_its_forerunner(describe: Describe, home: Path) -> None:
    marks = {"base": "base", "one": "one"}
    first = submit_experiment(spec=describe(patches=[P1]), home=home)
    build_all(first, marks)
    spec = again(first)
    assert notes(first) == {"base": "", "one": "", "base-again": ""}
    # Kernels that this lab already has are reported at once.
    held = submit_experiment(spec=spec, home=settings.HOME)
    assert set(map(len, notes(held).values())) == {
        len("reproduced bit for bit: vmlinux is 012345678901 again")
    }
    # Another lab has none of them, and another compiler.
    Build.objects.all().update(state="failed")
    second = submit_experiment(spec=spec, home=home)
    build_all(second, {"base": "base", "one": "ONE"}, toolchain="gcc 13; ld 2.40")
    remarks = notes(second)
    assert remarks["base"] == remarks["base-again"]
    assert remarks["base"].startswith("reproduced bit for bit: ")
    assert (
        remarks["one"]
        == "not the reproduced kernel: different toolchain (gcc 13; ld 2.40, originally gcc 12; ld 2.40)"
    )


@pytest.mark.process
def test_a_note_on_code_and_one_on_reproduction_stand_together(describe: Describe, home: Path) -> None:
    first = submit_experiment(spec=describe(patches=[P1]), home=home)
    build_all(first, {"base": "same", "one": "same"})
    assert notes(first)["one"] == "this switch changes no code here: the kernel is the base's"
    second = submit_experiment(spec=again(first), home=settings.HOME)
    assert notes(second)["one"].startswith(
        "this switch changes no code here: the kernel is the base's; reproduced bit"
    )
