# SPDX-License-Identifier: GPL-2.0-or-later
from pathlib import Path
from typing import Any

import pytest

from kernels.errors import GitFailed
from kernels.patches.series import read_series
from lab.conftest import P1, P2, Describe
from lab.errors import LabUnable, SubmissionRejected
from lab.models import Build, Experiment, Revision, Run, Target, Variant
from lab.runs.record import Failure, record_build_failure
from lab.runs.settle import cancel_experiment
from lab.runs.work_orders import build_order, run_order
from lab.submission import parts, prepare, submit
from lab.submission.submit import find_unfinished, submit_experiment
from lab.tests.factories import claimed_build, finish_builds
from lab.tests.tiny_tree import INODE, diff, git

pytestmark = [pytest.mark.django_db, pytest.mark.process]


RIVAL = {"name": "rival", "text": diff("fs/inode.c", 11, "rival")}


def variants(experiment: Experiment) -> dict[str, Variant]:
    return {variant.name: variant for variant in experiment.variants.all()}


def store(home: Path, build: Build) -> None:
    """Put an artifact's metadata where the store looks for it."""
    build.refresh_from_db()
    key = f"{build.pk:064x}"
    Build.objects.filter(pk=build.pk).update(artifact_key=key)
    (home / "artifacts" / key).mkdir(parents=True)
    (home / "artifacts" / key / "metadata.json").write_text("{}")


def test_a_description_becomes_a_whole_experiment(describe: Describe, home: Path) -> None:
    said: list[str] = []
    spec = describe(measure={"boots": 3, "profile": True, "profile_boots": 2, "seed": 7})
    experiment = submit_experiment(spec=spec, home=home, on_progress=said.append)
    assert [(v.name, v.role) for v in experiment.variants.all()] == [
        ("base", "base"),
        ("one", "candidate"),
        ("two", "candidate"),
        ("one+two", "candidate"),
        ("base-again", "a/a"),
    ]
    assert variants(experiment)["base-again"].build == variants(experiment)["base"].build
    assert {variant.state for variant in variants(experiment).values()} == {"planned"}
    assert experiment.state == "queued"
    assert experiment.tree.kind == "git"
    assert [(s.name, s.kind) for s in experiment.switches.all()] == [("one", "patch"), ("two", "patch")]
    assert Build.objects.count() == 4
    assert "reading one" in said
    purposes = list(experiment.runs.order_by("position").values_list("purpose", flat=True))
    assert purposes == ["measured"] * 15 + ["profiled"] * 10
    blocks = list(
        experiment.runs.filter(purpose="measured").order_by("position").values_list("block", flat=True)
    )
    assert blocks == [0] * 5 + [1] * 5 + [2] * 5
    case = experiment.cases.get()
    assert any(metric["primary"] for metric in case.metrics)
    assert case.params["threads"] >= 1


def test_the_base_is_noted_as_a_revision_for_the_trends(describe: Describe, home: Path) -> None:
    experiment = submit_experiment(spec=describe(), home=home)
    revision = Revision.objects.get(tree=experiment.tree)
    assert revision.commit == variants(experiment)["base"].commit
    assert revision.subject == "first"


def test_the_order_of_boots_follows_the_seed(describe: Describe, home: Path) -> None:
    def order(seed: int) -> list[str]:
        spec = describe(measure={"boots": 8, "seed": seed})
        runs = submit_experiment(spec=spec, home=home).runs.order_by("position")
        return list(runs.values_list("variant__name", flat=True))

    assert order(1) == order(1)
    assert order(1) != order(2)


def test_profiled_boots_come_in_blocks_too_with_the_base_twice(describe: Describe, home: Path) -> None:
    measure = {"boots": 2, "profile": True, "placebo": True, "seed": 3}
    experiment = submit_experiment(spec=describe(measure=measure), home=home)
    profiled = experiment.runs.filter(purpose="profiled").order_by("position").select_related("variant")
    rounds: dict[int, list[str]] = {}
    for run in profiled:
        rounds.setdefault(run.block, []).append(run.variant.name)
    assert list(rounds) == [0, 1, 2]
    names = ["base", "base-again", "one", "one+two", "two"]
    assert [sorted(order) for order in rounds.values()] == [names] * 3
    assert len({tuple(order) for order in rounds.values()}) > 1


def test_each_variants_tree_holds_just_its_patches(describe: Describe, home: Path) -> None:
    experiment = submit_experiment(spec=describe(), home=home)
    bare = next((home / "trees").glob("*.git"))

    def inode(name: str) -> str:
        return git(bare, "show", f"{variants(experiment)[name].tree_id}:fs/inode.c")

    assert inode("base") == INODE
    assert inode("one") == INODE.replace("line 10\n", "one\n")
    assert inode("two") == INODE
    assert git(bare, "show", f"{variants(experiment)['one+two'].commit}:fs/dcache.c") != INODE


def test_patches_that_clash_are_pruned_with_the_file(describe: Describe, home: Path) -> None:
    experiment = submit_experiment(spec=describe(patches=[P1, P2, RIVAL]), home=home)
    pruned = {name: v.problem for name, v in variants(experiment).items() if v.state == "pruned"}
    assert set(pruned) == {"one+rival", "one+two+rival"}
    assert pruned["one+two+rival"].startswith("rival clashes with one in fs/inode.c, hunk 1 of 1")
    assert "line 10" in variants(experiment)["one+rival"].problem_detail
    assert not Run.objects.filter(variant__name="one+rival").exists()


def test_a_catalogued_switch_brings_its_own_rules(
    describe: Describe, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The two kernfs switches, by other names, with patches that fit the tiny tree."""
    monkeypatch.setattr("lab.submission.sources.catalog.entry_claims", lambda *_: ())
    monkeypatch.setattr(
        "lab.submission.sources.catalog.entry_patch",
        lambda entry, _: read_series(diff("fs/inode.c", len(entry.name), "x").encode()).patches[0],
    )
    patches = [
        {"name": "global", "catalog": "kernfs-iattr-rwsem"},
        {"name": "hashed", "catalog": "kernfs-iattr-hashed-rwsem"},
    ]
    experiment = submit_experiment(spec=describe(patches=patches), home=home)
    assert variants(experiment)["global+hashed"].problem == "global excludes hashed"
    assert experiment.switches.get(name="global").excludes == ["hashed"]
    assert experiment.switches.get(name="hashed").author == "Imran Khan"


def test_a_catalogued_switch_for_other_trees_is_refused(describe: Describe, home: Path) -> None:
    with pytest.raises(
        SubmissionRejected, match='switch "vfs-iget-rcu": vfs-iget-rcu is not made for linux-'
    ):
        submit_experiment(spec=describe(patches=[{"catalog": "vfs-iget-rcu"}]), home=home)


def test_what_a_patch_requires_is_its_ground_and_not_its_rival(describe: Describe, home: Path) -> None:
    follow_up = diff("fs/inode.c", 11, "next").replace(" line 10\n", " one\n")
    patches = [P1, RIVAL | {"excludes": []}, {"name": "next", "text": follow_up, "requires": ["one"]}]
    experiment = submit_experiment(spec=describe(patches=patches), home=home)
    problems = {name: v.problem for name, v in variants(experiment).items() if v.state == "pruned"}
    assert "one+next" not in problems
    assert problems["next"] == "next requires one"
    assert problems["one+rival"].startswith("rival clashes with one in fs/inode.c")


def test_a_patch_is_blamed_for_the_clash_and_a_bystander_is_not(describe: Describe, home: Path) -> None:
    bystander = {"name": "bystander", "text": diff("fs/inode.c", 30, "far away")}
    spec = describe(patches=[bystander, P1, RIVAL], design="leave-one-out")
    rows = variants(submit_experiment(spec=spec, home=home))
    assert rows["bystander+one+rival"].problem.startswith("rival clashes with one in fs/inode.c")


def test_a_patch_that_fails_even_on_what_it_requires_says_so(describe: Describe, home: Path) -> None:
    spec = describe(patches=[P1, RIVAL | {"requires": ["one"]}])
    with pytest.raises(SubmissionRejected, match=r"rival does not apply to v6\.1 with one: fs/inode\.c"):
        submit_experiment(spec=spec, home=home)


def test_rivals_are_pruned_by_their_own_word(describe: Describe, home: Path) -> None:
    experiment = submit_experiment(spec=describe(patches=[P1, RIVAL | {"excludes": ["one"]}]), home=home)
    assert variants(experiment)["one+rival"].problem == "rival excludes one"


def test_variants_of_equal_trees_share_one_build(describe: Describe, home: Path) -> None:
    experiment = submit_experiment(
        spec=describe(patches=[P1, P1 | {"name": "copy", "excludes": ["one"]}]), home=home
    )
    built = variants(experiment)
    assert built["one"].build == built["copy"].build
    assert Build.objects.count() == 2


def test_a_config_switch_changes_the_config_and_not_the_tree(describe: Describe, home: Path) -> None:
    spec = describe(patches=[P1], configs=[{"name": "debug", "lines": ["CONFIG_DEBUG_LIST=y"]}])
    built = variants(submit_experiment(spec=spec, home=home))
    assert built["debug"].tree_id == built["base"].tree_id
    assert built["debug"].build != built["base"].build
    build = built["one+debug"].build
    assert build is not None
    order = build_order(build.pk)
    fragments = order.request["fragments"]
    assert fragments[-1] == ["debug", "CONFIG_DEBUG_LIST=y\n"]
    assert fragments[:-1] == order.request["base_fragments"]
    assert (order.request["base_name"], order.tree_id) == ("v6.1", built["one"].tree_id)


def test_the_workloads_needs_are_in_every_config(describe: Describe, home: Path) -> None:
    cases = [{"workload": "showgids", "preset": "smoke"}, {"workload": "bh-lookup", "preset": "smoke"}]
    experiment = submit_experiment(spec=describe(cases=cases), home=home)
    build = variants(experiment)["base"].build
    assert build is not None
    order = build_order(build.pk)
    names = [name for name, _ in order.request["fragments"]]
    assert names[0] == "guest"
    assert "workload showgids" in names
    assert order.request["modules_of"] == ["bh-lookup"]


def test_a_verified_run_is_made_for_workloads_that_have_something_to_count(
    describe: Describe, home: Path
) -> None:
    cases = [{"workload": "showgids", "preset": "smoke"}, {"workload": "stat-walk", "preset": "smoke"}]
    spec = describe(cases=cases, measure={"boots": 2, "verify": True})
    experiment = submit_experiment(spec=spec, home=home)
    verified = experiment.runs.filter(purpose="verified")
    assert set(verified.values_list("case__workload", flat=True)) == {"stat-walk"}
    assert verified.count() == 4


def test_verifying_what_nothing_counts_is_refused(describe: Describe, home: Path) -> None:
    with pytest.raises(
        SubmissionRejected, match=r"measure\.verify: none of the cases can be verified; those of .*stat-walk"
    ):
        submit_experiment(spec=describe(measure={"boots": 2, "verify": True}), home=home)


def test_a_run_knows_all_that_a_worker_needs(describe: Describe, home: Path) -> None:
    experiment = submit_experiment(spec=describe(), home=home)
    finish_builds(experiment)
    order = run_order(experiment.runs.order_by("position")[0].pk)
    assert (order.workload, order.iterations, order.warmup) == ("showgids", 5, 1)
    assert (order.target, order.driver, order.vcpus) == ("guest", "libvirt", 2)
    assert order.artifact_key


@pytest.mark.parametrize(
    ("fields", "line"),
    [
        ({"base": "v9.9"}, 'has no revision "v9.9"'),
        ({"target": "metal"}, 'there is no target "metal"; valid: guest'),
        ({"git": None, "tree": "debian-6.2"}, 'there is no tree "debian-6.2". Did you mean'),
        ({"git": "/nowhere/at/all"}, '"/nowhere/at/all" is not a git repository'),
        ({"patches": [{"name": "p", "text": "no diff at all"}]}, 'switch "p": '),
        ({"patches": [{"name": "p", "range": "v6.1..nowhere"}]}, 'has no revision "nowhere"'),
        (
            {"patches": [{"name": "p", "text": diff("fs/inode.c", 10, "x").replace("line 9", "line nine")}]},
            'switch "p" applies in no variant of design full: p does not apply to v6.1: fs/inode.c',
        ),
        ({"configs": [{"name": "c", "lines": ["CONFIG_X = y"]}]}, 'switch "c": config fragment "c" line 1'),
        (
            {"design": "cumulative", "patches": [P1, RIVAL]},
            'switch "rival" applies in no variant of design cumulative: rival clashes with one in fs/inode.c',
        ),
    ],
)
def test_what_cannot_be_carried_out_is_refused_and_nothing_is_written(
    describe: Describe, home: Path, fields: dict[str, Any], line: str
) -> None:
    with pytest.raises(SubmissionRejected) as caught:
        submit_experiment(spec=describe(**fields), home=home)
    assert line in str(caught.value)
    assert "\n" not in str(caught.value)
    assert not Experiment.objects.exists()
    assert not Build.objects.exists()


def test_a_fault_of_the_lab_is_not_blamed_on_the_submission(
    describe: Describe, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise GitFailed("git is broken")

    monkeypatch.setattr(parts, "open_source", fail)
    with pytest.raises(LabUnable):
        submit_experiment(spec=describe(), home=home)


def test_a_crash_half_way_leaves_nothing_half_written(
    describe: Describe, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def crash(*_: object) -> None:
        raise RuntimeError("out of luck")

    monkeypatch.setattr(submit, "_write_runs", crash)
    with pytest.raises(RuntimeError):
        submit_experiment(spec=describe(), home=home)
    assert not Experiment.objects.exists()
    assert not Build.objects.exists()


def test_an_experiment_too_large_to_run_is_refused(
    describe: Describe, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prepare, "MOST_RUNS", 14)
    with pytest.raises(SubmissionRejected, match="5 variants × 1 cases × 3 boots are 15 boots, at most 14"):
        submit_experiment(spec=describe(), home=home)


def test_the_same_submission_again_builds_nothing(describe: Describe, home: Path) -> None:
    first = submit_experiment(spec=describe(), home=home)
    finish_builds(first)
    for build in Build.objects.all():
        store(home, build)
    second = submit_experiment(spec=describe(), home=home)
    assert {variant.state for variant in variants(second).values()} == {"ready"}
    assert set(Build.objects.values_list("state", flat=True)) == {"built"}
    assert second.runs.filter(state="queued").count() == first.runs.count()


def test_a_build_whose_artifact_is_gone_is_made_again(describe: Describe, home: Path) -> None:
    first = submit_experiment(spec=describe(), home=home)
    finish_builds(first)
    second = submit_experiment(spec=describe(), home=home)
    assert set(Build.objects.values_list("state", flat=True)) == {"queued"}
    assert {variant.state for variant in variants(second).values()} == {"planned"}


def test_a_build_that_failed_is_tried_again_by_a_new_submission(describe: Describe, home: Path) -> None:
    first = submit_experiment(spec=describe(), home=home)
    build = variants(first)["one"].build
    assert build is not None
    record_build_failure(claimed_build(build), Failure("kernel", "error", "tail"))
    submit_experiment(spec=describe(), home=home)
    build.refresh_from_db()
    assert (build.state, build.problem, build.attempt) == ("queued", "", 0)
    assert variants(first)["one"].state == "failed"


def test_the_same_command_finds_what_it_left_unfinished(describe: Describe, home: Path) -> None:
    assert find_unfinished(describe()) is None
    first = submit_experiment(spec=describe(), home=home)
    assert find_unfinished(describe()) == first
    assert find_unfinished(describe(name="another")) is None
    cancel_experiment(first.pk)
    assert find_unfinished(describe()) is None


def test_a_range_of_commits_is_one_switch(describe: Describe, home: Path, repository: Path) -> None:
    git(repository, "checkout", "-q", "-b", "topic", "v6.1")
    for number, word in ((10, "ten"), (30, "thirty")):
        text = (repository / "fs" / "inode.c").read_text().replace(f"line {number}\n", f"{word}\n")
        (repository / "fs" / "inode.c").write_text(text)
        git(repository, "commit", "-q", "-am", f"change {word}")
    experiment = submit_experiment(
        spec=describe(patches=[{"name": "topic", "range": "v6.1..topic"}]), home=home
    )
    bare = next((home / "trees").glob("*.git"))
    text = git(bare, "show", f"{variants(experiment)['topic'].tree_id}:fs/inode.c")
    assert text == INODE.replace("line 10\n", "ten\n").replace("line 30\n", "thirty\n")


def test_a_diff_without_its_blanks_is_repaired_and_the_report_kept(describe: Describe, home: Path) -> None:
    eaten = "\n".join(line.lstrip(" ") for line in str(P1["text"]).splitlines()) + "\n"
    experiment = submit_experiment(spec=describe(patches=[{"name": "eaten", "text": eaten}]), home=home)
    switch = experiment.switches.get()
    assert switch.report
    plain = submit_experiment(spec=describe(patches=[P1]), home=home)
    assert variants(experiment)["eaten"].tree_id == variants(plain)["one"].tree_id


def test_a_target_that_is_disabled_is_not_offered(describe: Describe, home: Path) -> None:
    Target.objects.update(enabled=False)
    with pytest.raises(SubmissionRejected, match='no target "guest"'):
        submit_experiment(spec=describe(), home=home)


def test_a_machine_has_no_instruction_clock(describe: Describe, home: Path) -> None:
    Target.objects.create(name="metal-1", driver="metal", access={"mac": "52:54:00:00:00:01"})
    spec = describe(target="metal-1", measure={"clock": "instructions", "boots": 2})
    with pytest.raises(SubmissionRejected, match=r"measure\.clock: metal-1 is a metal machine") as refused:
        submit_experiment(spec=spec, home=home)
    assert refused.value.place == "measure.clock"
