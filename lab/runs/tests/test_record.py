# SPDX-License-Identifier: GPL-2.0-or-later

import pytest

from lab.comparisons.conclusion.collect import conclusion_data
from lab.errors import LabError
from lab.models import Build, Comparison, Experiment, Profile, Run, Sample, Variant
from lab.models.states import Outcome
from lab.profiles.analysis.frame_tree import build_tree, stacks_of, unpack
from lab.runs.claiming import renew
from lab.runs.expired_claims import return_dead_claims
from lab.runs.order import next_build, next_run
from lab.runs.record import (
    BuildSuccess,
    Failure,
    RunRecord,
    SampleValue,
    TakenProfile,
    forget_artifact,
    record_build_failure,
    record_build_log,
    record_build_success,
    record_run,
)
from lab.runs.settle import cancel_experiment, settle
from lab.tests.factories import (
    claimed_build,
    claimed_run,
    finish_build,
    finish_builds,
    finish_run,
    make_build,
    make_case,
    make_experiment,
    make_grid,
    make_run,
    make_variant,
    samples,
)

pytestmark = pytest.mark.django_db


def of(experiment: Experiment, name: str) -> Variant:
    return experiment.variants.get(name=name)


def built(experiment: Experiment, name: str) -> Build:
    build = of(experiment, name).build
    assert build is not None
    return build


def states(experiment: Experiment) -> dict[str, set[str]]:
    by_variant: dict[str, set[str]] = {}
    for run in experiment.runs.select_related("variant"):
        by_variant.setdefault(run.variant.name, set()).add(run.state)
    return by_variant


def fail(run: Run, outcome: Outcome = Outcome.PANICKED, **fields: object) -> None:
    values = {"outcome": outcome, "blame": "kernel", "problem": "Oops"} | fields
    assert record_run(claimed_run(run), RunRecord(**values))  # type: ignore[arg-type]


def test_a_build_makes_all_its_variants_ready_in_every_experiment() -> None:
    shared = make_build("shared")
    variants = [make_variant(make_experiment(), build=shared) for _ in range(2)]
    finish_build(shared)
    assert {Variant.objects.get(pk=v.pk).state for v in variants} == {"ready"}


def test_a_late_answer_to_a_build_that_was_taken_back_writes_nothing() -> None:
    build = make_build("x")
    claim = claimed_build(build)
    return_dead_claims(alive=lambda _: False)
    claimed_build(build)
    assert not record_build_success(claim, BuildSuccess("late", "r", "h"))
    assert not record_build_failure(claim, Failure("kernel", "late"))
    build.refresh_from_db()
    assert (build.state, build.artifact_key, build.problem) == ("building", "", "")


def test_a_patch_that_does_not_compile_fails_its_variant_and_the_others_go_on() -> None:
    experiment = make_grid([("bad",), ("good",)])
    finish_build(built(experiment, "base"))
    assert record_build_failure(
        claimed_build(built(experiment, "bad")), Failure("kernel", "fs/inode.c:12: error", "tail", "/log")
    )
    finish_build(built(experiment, "good"))
    bad = of(experiment, "bad")
    assert (bad.state, bad.problem, bad.problem_detail) == ("failed", "fs/inode.c:12: error", "tail")
    assert states(experiment) == {"base": {"queued"}, "bad": {"cancelled"}, "good": {"queued"}}
    cancelled = experiment.runs.filter(variant=bad).first()
    assert cancelled is not None
    assert "bad was not built: fs/inode.c:12: error" in cancelled.problem
    assert next_run() is not None


def test_a_base_that_does_not_compile_ends_the_experiment() -> None:
    experiment = make_grid()
    assert record_build_failure(claimed_build(built(experiment, "base")), Failure("kernel", "no rule"))
    experiment.refresh_from_db()
    assert (experiment.state, experiment.problem) == ("failed", "the base does not build: no rule")
    assert states(experiment) == {"base": {"cancelled"}, "p": {"cancelled"}}
    assert built(experiment, "p").state == "cancelled"


def test_a_kernel_is_not_built_for_experiments_whose_shared_base_does_not_compile() -> None:
    base, both, also = make_build("base"), make_build("both"), make_build("also")
    first, second, other = make_experiment(), make_experiment(), make_experiment()
    for experiment in (first, second):
        make_variant(experiment, build=base)
        make_variant(experiment, "p", build=both)
    make_variant(second, "q", build=also)
    make_variant(other, build=also)
    assert record_build_failure(claimed_build(base), Failure("kernel", "no rule"))
    assert dict(Build.objects.values_list("inputs", "state")) == {
        "base": "failed",
        "both": "cancelled",
        "also": "queued",
    }


def test_cancelling_takes_a_build_from_its_worker_unless_another_waits_for_it() -> None:
    shared = make_build("shared")
    first, two = make_experiment(), make_experiment()
    make_variant(first)
    make_variant(first, "p", build=shared)
    make_variant(two, build=shared)
    own, common = claimed_build(built(first, "base")), claimed_build(shared)
    cancel_experiment(first.pk)
    assert not renew(own)
    assert renew(common)


def test_a_build_that_another_experiment_waits_for_is_not_cancelled() -> None:
    shared = make_build("shared")
    first, two = make_experiment(), make_experiment()
    make_variant(first)
    make_variant(first, "p", build=shared)
    make_variant(two, build=shared)
    cancel_experiment(first.pk)
    shared.refresh_from_db()
    assert shared.state == "queued"
    cancel_experiment(two.pk)
    shared.refresh_from_db()
    assert shared.state == "cancelled"


def test_a_full_disk_is_tried_three_times_and_then_told() -> None:
    experiment = make_grid()
    build = built(experiment, "p")
    seen = []
    for _ in range(3):
        record_build_failure(claimed_build(build), Failure("lab", "disk full", retry=True))
        build.refresh_from_db()
        seen.append(build.state)
    assert seen == ["queued", "queued", "failed"]
    assert of(experiment, "p").state == "failed"


def test_the_log_of_a_build_under_way_is_known_and_stays_known() -> None:
    build = make_build("x")
    claim = claimed_build(build)
    assert record_build_log(claim, "/logs/x")
    build.refresh_from_db()
    assert build.log == "/logs/x"
    assert record_build_failure(claim, Failure("kernel", "timed out"))
    assert not record_build_log(claim, "/logs/late")
    build.refresh_from_db()
    assert build.log == "/logs/x"


def test_an_artifact_that_was_deleted_is_built_again() -> None:
    experiment = make_grid()
    finish_builds(experiment)
    build = built(experiment, "p")
    assert next_run() is not None
    assert forget_artifact(build.pk)
    assert (next_run(), next_build()) == (None, build.pk)
    finish_build(build)
    assert next_run() is not None


def test_variants_whose_code_is_the_bases_are_told_so() -> None:
    experiment = make_grid([("comment",), ("real",)])
    finish_build(built(experiment, "comment"), code_hash="same")
    finish_build(built(experiment, "base"), code_hash="same")
    finish_build(built(experiment, "real"), code_hash="other")
    assert of(experiment, "comment").note == "this switch changes no code here: the kernel is the base's"
    assert of(experiment, "real").note == ""


def test_a_boot_is_stored_whole() -> None:
    experiment = make_grid(blocks=1)
    finish_builds(experiment)
    run = experiment.runs.order_by("position")[0]
    finish_run(
        run,
        {"ns_per_open": [50.0, 40.0, 41.0]},
        environment={"cpu": "x"},
        line="3.77s user",
        extras={"histogram": {"1": 2}},
        findings=({"kind": "warning", "title": "t", "line_no": 3, "excerpt": "e"},),
        console="/c",
        directory="/d",
        profiles=(
            TakenProfile(build_tree([(("main", "down_read"), 3)]), lost=1, perf_data_sha256="ab" * 32),
            TakenProfile(build_tree([(("main", "down_read"), 900)]), Profile.Kind.LOCK, 2, overhead=0.25),
        ),
        counters={"perf stat": {"context-switches": 12.0}},
        unavailable=({"what": "cycles", "why": "no PMU"},),
    )
    run.refresh_from_db()
    assert (run.state, run.outcome, run.line, run.environment) == (
        "done",
        "finished",
        "3.77s user",
        {"cpu": "x"},
    )
    assert (run.token, run.lease_until) == ("", None)
    assert list(run.samples.order_by("iteration").values_list("warmup", "value")) == [
        (True, 50.0),
        (False, 40.0),
        (False, 41.0),
    ]
    profile = run.profiles.get(kind="cpu")
    assert (profile.samples, profile.lost, profile.perf_data_sha256) == (3, 1, "ab" * 32)
    assert dict(stacks_of(unpack(bytes(profile.tree)))) == {("main", "down_read"): 3}
    waited = run.profiles.get(kind="lock")
    assert (waited.samples, waited.waits, waited.overhead) == (900, 2, 0.25)
    assert run.counters == {"perf stat": {"context-switches": 12.0}}
    assert run.unavailable == [{"what": "cycles", "why": "no PMU"}]


def test_a_second_answer_to_the_same_boot_is_not_stored() -> None:
    experiment = make_grid(blocks=1)
    finish_builds(experiment)
    claim = claimed_run(experiment.runs.order_by("position")[0])
    first = RunRecord(outcome=Outcome.FINISHED, samples=samples({"ns_per_open": [1.0, 2.0]}))
    assert record_run(claim, first)
    assert not record_run(claim, first)
    assert Sample.objects.count() == 2


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_sample_that_is_no_number_stores_nothing_of_the_boot(value: float) -> None:
    experiment = make_grid(blocks=1)
    finish_builds(experiment)
    run = experiment.runs.order_by("position")[0]
    claim = claimed_run(run)
    record = RunRecord(outcome=Outcome.FINISHED, samples=(SampleValue("ns_per_open", 1, False, value),))
    with pytest.raises(LabError, match="ns_per_open of iteration 1"):
        record_run(claim, record)
    run.refresh_from_db()
    assert run.state == "running"


def test_what_a_kernel_measured_before_it_panicked_is_kept() -> None:
    experiment = make_grid(blocks=2)
    finish_builds(experiment)
    run = experiment.runs.order_by("position")[0]
    fail(run, samples=samples({"ns_per_open": [1.0, 2.0]}), findings=({"kind": "oops"},))
    run.refresh_from_db()
    assert (run.state, run.outcome, run.blame) == ("failed", "panicked", "kernel")
    assert run.samples.count() == 2


def test_a_boot_the_lab_lost_is_tried_again_and_leaves_no_samples() -> None:
    experiment = make_grid(blocks=1)
    finish_builds(experiment)
    run = experiment.runs.order_by("position")[0]
    fail(run, Outcome.LOST, blame="lab", retry=True, samples=samples({"ns_per_open": [1.0]}))
    run.refresh_from_db()
    assert (run.state, run.attempt, Sample.objects.count()) == ("queued", 1, 0)
    finish_run(run, {"ns_per_open": [1.0, 2.0]})
    run.refresh_from_db()
    assert (run.state, run.outcome, run.problem, run.attempt) == ("done", "finished", "", 2)


def test_a_kernel_that_never_boots_is_not_booted_a_third_time() -> None:
    experiment = make_grid(blocks=5)
    finish_builds(experiment)
    for run in experiment.runs.filter(variant__name="p").order_by("position")[:2]:
        fail(run, Outcome.BOOT_FAILED)
    assert states(experiment) == {"base": {"queued"}, "p": {"failed", "cancelled"}}


def test_a_kernel_that_panics_under_one_case_goes_on_with_the_other() -> None:
    experiment = make_grid(blocks=2)
    patched = of(experiment, "p")
    other = make_case(experiment, workload="stat-walk")
    make_run(patched, other)
    finish_builds(experiment)
    for run in experiment.runs.filter(variant=patched, case__workload="showgids"):
        fail(run)
    assert experiment.runs.get(case=other).state == "queued"


def test_a_kernel_that_booted_once_is_booted_on_though_it_fails_often() -> None:
    experiment = make_grid(blocks=5)
    finish_builds(experiment)
    first, *rest = experiment.runs.filter(variant__name="p").order_by("position")[:4]
    finish_run(first)
    for run in rest:
        fail(run, Outcome.HUNG)
    assert "queued" in states(experiment)["p"]


def test_a_base_that_never_boots_ends_the_experiment_and_says_why() -> None:
    experiment = make_grid(blocks=5)
    finish_builds(experiment)
    for run in experiment.runs.filter(variant__name="base").order_by("position")[:2]:
        fail(run, Outcome.BOOT_FAILED, problem="no init found")
    experiment.refresh_from_db()
    assert (experiment.state, experiment.problem) == (
        "failed",
        "no boot of the base finished: no init found",
    )


def test_the_last_boot_ends_the_experiment_with_its_comparisons() -> None:
    experiment = make_grid(blocks=5)
    finish_builds(experiment)
    for run in experiment.runs.select_related("variant").order_by("position"):
        slower = 1.5 if run.variant.switches else 1.0
        finish_run(run, {"ns_per_open": [99.0, 40.0 * slower + run.block, 41.0 * slower + run.block]})
    experiment.refresh_from_db()
    assert experiment.state == "done"
    assert experiment.finished_at is not None
    (comparison,) = Comparison.objects.all()
    assert (comparison.verdict, comparison.boots, comparison.primary) == ("regression", 5, True)
    assert experiment.headline.startswith("Regression: p makes showgids worse")
    assert experiment.headline == conclusion_data(experiment)["headline"]
    assert not settle(experiment.pk)


def test_an_experiment_that_a_killed_process_left_without_end_is_ended() -> None:
    experiment = make_grid(blocks=1)
    finish_builds(experiment)
    Run.objects.update(state="done", outcome="finished")
    assert settle(experiment.pk)
    assert not settle(experiment.pk)


def test_cancelling_leaves_what_was_measured_and_stops_the_rest() -> None:
    experiment = make_grid(blocks=2)
    finish_builds(experiment)
    first, second, *_ = experiment.runs.order_by("position")
    finish_run(first, {"ns_per_open": [1.0, 2.0]})
    claim = claimed_run(second)
    assert cancel_experiment(experiment.pk)
    assert not renew(claim)
    assert not record_run(claim, RunRecord(outcome=Outcome.FINISHED))
    assert sorted(experiment.runs.values_list("state", flat=True)) == ["cancelled"] * 3 + ["done"]
    assert Sample.objects.count() == 2
    experiment.refresh_from_db()
    assert experiment.state == "cancelled"
    assert experiment.headline == conclusion_data(experiment)["headline"] != ""
    assert not cancel_experiment(experiment.pk)


def test_what_a_machine_sends_is_stored_whatever_it_holds() -> None:
    """PostgreSQL keeps no NUL in a text, and neither NaN nor half a character in JSON."""
    experiment = make_grid(blocks=1)
    finish_builds(experiment)
    claim = claimed_run(experiment.runs.order_by("position")[0])
    record = RunRecord(
        outcome=Outcome.PANICKED,
        blame="kernel",
        problem="Oops\0\ud83d",
        problem_detail="\0" * 3,
        environment={"guest": {"cpu\0": "x\0", "boot_s": float("nan")}, "list": (1, float("inf"))},
        extras={"half": "\udcff"},
        findings=({"kind": "oops", "title": "\0", "line_no": 1, "excerpt": "x\0y"},),
    )
    assert record_run(claim, record)
    run = Run.objects.get(pk=claim.id)
    assert (run.problem, run.problem_detail) == ("Oops␀?", "␀␀␀")
    assert run.environment == {"guest": {"cpu␀": "x␀", "boot_s": None}, "list": [1, None]}
    assert run.extras == {"half": "?"}
    assert run.findings[0]["excerpt"] == "x␀y"
