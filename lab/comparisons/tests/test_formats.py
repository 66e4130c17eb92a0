# SPDX-License-Identifier: GPL-2.0-or-later
"""Reports written out of the tables: KCIDB's own checker, LKP's matrices, and the table of forms."""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Iterator
from typing import Any

import pytest
from junitparser import JUnitXml
from pytest_django import DjangoDbBlocker

from lab.comparisons.exports.formats import REPORT_FORMS
from lab.comparisons.exports.kcidb import patchset_hash, write_kcidb
from lab.comparisons.exports.matrix import write_matrix
from lab.comparisons.page import comparison_data
from lab.errors import SpecError, UnknownRow
from lab.experiments.shown_description import case_titles
from lab.models import Build, Comparison, Experiment, Run, Tree
from lab.models.states import BuildState, ExperimentState, Outcome, Purpose, VariantState
from lab.tests.comparisons import HOSTILE
from lab.tests.factories import (
    finish_builds,
    finish_run,
    make_case,
    make_experiment,
    make_patch_switch,
    make_run,
    make_twin,
    make_variant,
)
from lab.tests.file_rows import rows_of_a_file

pytestmark = pytest.mark.django_db
BAD = " ".join(HOSTILE).replace("\x00", "")


def experiment_of(base: list[float], p: list[float | None], **fields: Any) -> Experiment:
    """A base and one patch, measured; None is a boot that panicked."""
    experiment = make_experiment(boots=len(base), **fields)
    make_patch_switch(experiment, "p", title=BAD, author=BAD[:300], text="diff --git a/x b/x\n")
    unpatched, other = make_variant(experiment), make_variant(experiment, "p")
    twin = make_twin(experiment)
    case = make_case(experiment)
    runs = [
        (make_run(variant, case, block=block), value)
        for block, values in enumerate(zip(base, p, base, strict=True))
        for variant, value in zip((unpatched, other, twin), values, strict=True)
    ]
    finish_builds(experiment)
    for run, value in runs:
        if value is None:
            finish_run(run, outcome=Outcome.PANICKED, blame="kernel", problem=BAD)
        else:
            finish_run(run, {"ns_per_open": [1e6, value, value], "user": [9.0, 1.0, 1.0]})
    return experiment


BASE: list[float] = [100.0, 101.0, 100.5, 99.8, 100.2, 100.1, 100.4, 99.9]
WORSE: list[float | None] = [120.0, 121.3, 120.4, 119.8, 120.1, 120.2, 120.6, 119.9]
BETTER: list[float | None] = [80.0, 81.3, 80.4, 79.8, 80.1, 80.2, 80.6, 79.9]
WILD: list[float | None] = [80.0, 130.0, 70.0, 150.0, 100.0, 60.0, 140.0, 90.0]


@pytest.fixture(scope="module")
def worse_number(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[int]:
    with rows_of_a_file(django_db_blocker):
        yield experiment_of(BASE, WORSE).pk


@pytest.fixture
def worse(worse_number: int) -> Experiment:
    return Experiment.objects.get(pk=worse_number)


def kcidb(experiment: Experiment, **options: str) -> dict[str, Any]:
    """The report, after KCIDB's own library found nothing wrong with it."""
    from kcidb_io.schema import V5_3

    read: dict[str, Any] = json.loads(write_kcidb(experiment.pk, **options))
    V5_3.validate(read)
    return read


def statuses(report: dict[str, Any], path: str) -> list[str]:
    return [entry["status"] for entry in report["tests"] if entry["path"] == path]


def test_kcidb_calls_a_regression_a_failure_and_plain_measurements_done(worse: Experiment) -> None:
    report = kcidb(worse)
    # Base, patch, base again.
    assert statuses(report, "kperflab.showgids.smoke.ns_per_open") == ["DONE", "FAIL", "DONE"]
    assert statuses(report, "kperflab.showgids.smoke.user") == ["DONE", "DONE", "DONE"]
    assert statuses(report, "boot") == ["PASS", "PASS", "PASS"]
    failed = next(entry for entry in report["tests"] if entry["status"] == "FAIL")
    assert failed["number"] == {"value": 120.15, "unit": "ns"}
    assert failed["misc"]["comparison"]["verdict"] == "regression"


def test_every_report_tells_two_cases_of_one_workload_and_preset_apart() -> None:
    experiment = make_experiment(boots=8)
    make_patch_switch(experiment, "p")
    unpatched, other = make_variant(experiment), make_variant(experiment, "p")
    few, many = (make_case(experiment, params={"threads": number, "opens": 100}) for number in (2, 8))
    runs = [
        (make_run(variant, case, block=block), value)
        for case, patched in ((few, WORSE), (many, BASE))
        for variant, series in ((unpatched, BASE), (other, patched))
        for block, value in enumerate(series)
    ]
    finish_builds(experiment)
    for run, value in runs:
        finish_run(run, {"ns_per_open": [1e6, value or 0.0]})
    data = comparison_data(experiment.pk)
    titles = ["showgids (smoke, threads=2)", "showgids (smoke, threads=8)"]
    assert [case["title"] for case in data["cases"]] == titles
    assert "showgids (smoke, threads=2)" in data["conclusion"]["text"]
    suites = [suite.name for suite in JUnitXml.fromstring(REPORT_FORMS["junit"].render(data).encode())]
    assert suites == ["kernels", *titles]
    for form in ("ktap", "markdown", "reply", "csv"):
        text = REPORT_FORMS[form].render(data)
        assert all(title in text for title in titles), form
    tests = {entry["id"]: entry for entry in kcidb(experiment)["tests"]}
    assert {entry["misc"]["case"] for entry in tests.values() if "number" in entry} == set(titles)
    paths = {entry["path"] for entry in tests.values() if "number" in entry}
    assert paths == {f"kperflab.showgids.smoke__threads_{number}.ns_per_open" for number in (2, 8)}


def test_two_equal_cases_are_told_apart_by_their_places() -> None:
    experiment = make_experiment()
    cases = [make_case(experiment), make_case(experiment), make_case(experiment, preset="small")]
    titles = ["showgids (smoke, case 1)", "showgids (smoke, case 2)", "showgids (small)"]
    assert list(case_titles(cases).values()) == titles


def test_kcidb_calls_improvement_a_pass_and_what_cannot_be_told_done() -> None:
    path = "kperflab.showgids.smoke.ns_per_open"
    better = kcidb(experiment_of(BASE, BETTER))
    assert statuses(better, path)[1] == "PASS"
    wild = kcidb(experiment_of(BASE, WILD, name="wild"))
    assert statuses(wild, path)[1] == "DONE"


def test_a_verdict_of_a_newer_lab_counts_as_inconclusive() -> None:
    """Old programs go on beside the newer tables while a fleet is upgraded."""
    experiment = experiment_of(BASE, WORSE)
    Comparison.objects.filter(experiment=experiment, primary=True).update(verdict="tail-worse")
    assert statuses(kcidb(experiment), "kperflab.showgids.smoke.ns_per_open") == ["DONE", "DONE", "DONE"]
    assert comparison_data(experiment.pk)["exit_code"] == 2


def test_kcidb_tells_a_panic_from_a_boot_the_lab_lost_and_from_one_left_out() -> None:
    experiment = experiment_of([100.0, 100.0], [None, None], name="panics")
    assert statuses(kcidb(experiment), "kperflab.showgids.smoke") == ["FAIL"]
    Run.objects.filter(variant__name="p").update(blame="lab", outcome=Outcome.LOST)
    assert statuses(kcidb(experiment), "kperflab.showgids.smoke") == ["MISS"]
    Run.objects.filter(variant__name="p").update(outcome=Outcome.WORKLOAD_FAILED)
    assert statuses(kcidb(experiment), "kperflab.showgids.smoke") == ["ERROR"]
    Run.objects.filter(variant__name="p").update(state="cancelled", outcome="")
    assert statuses(kcidb(experiment), "kperflab.showgids.smoke") == ["SKIP"]


@pytest.mark.parametrize(("blame", "status"), [("kernel", "FAIL"), ("submission", "FAIL"), ("lab", "ERROR")])
def test_kcidb_blames_a_failed_build_on_whom_it_should(worse: Experiment, blame: str, status: str) -> None:
    build = Build.objects.get(variants__name="p")
    Build.objects.filter(pk=build.pk).update(
        state=BuildState.FAILED, blame=blame, problem=BAD, problem_detail="x" * 50_000
    )
    reported = {entry["id"]: entry for entry in kcidb(worse)["builds"]}[f"kperflab:{build.inputs}"]
    assert reported["status"] == status
    assert len(reported["log_excerpt"]) <= 16384


def test_kcidb_has_a_checkout_a_patchset_and_links_only_with_an_address(worse: Experiment) -> None:
    plain, linked = kcidb(worse), kcidb(worse, link="https://lab.example/", origin="ours")
    hashes = [checkout["patchset_hash"] for checkout in plain["checkouts"]]
    assert hashes == ["", patchset_hash(["diff --git a/x b/x\n"])]
    assert not any("log_url" in build for build in plain["builds"])
    assert all(build["log_url"].startswith("https://lab.example/builds/") for build in linked["builds"])
    assert {checkout["origin"] for checkout in linked["checkouts"]} == {"ours"}


def test_the_patchset_hash_is_what_sha256sum_says() -> None:
    # printf a >1; printf b >2; sha256sum 1 2 | cut -c-64 | sha256sum
    assert patchset_hash(["a", "b"]) == "bf75fafab8e46555836b92f1b04106b795a9ed36bd39b351f103b28819895f33"


def test_kcidb_names_no_path_of_this_machine_and_no_password(worse: Experiment) -> None:
    text = write_kcidb(worse.pk)
    assert "/srv/tiny" not in text
    Tree.objects.update(location="https://me:secret@git.example/linux.git")
    assert "secret" not in write_kcidb(worse.pk)
    Tree.objects.update(location="https://git.example/linux.git")
    assert kcidb(worse)["checkouts"][0]["git_repository_url"] == "https://git.example/linux.git"


@pytest.mark.parametrize("origin", ["", "Kernel CI", "a:b", "x\n"])
def test_an_origin_kcidb_does_not_know_is_refused(worse: Experiment, origin: str) -> None:
    with pytest.raises(SpecError, match="origin: "):
        write_kcidb(worse.pk, origin=origin)


def members(experiment: Experiment) -> dict[str, Any]:
    with tarfile.open(fileobj=io.BytesIO(write_matrix(experiment.pk))) as archive:
        return {
            entry.name: json.load(archive.extractfile(entry) or io.BytesIO())
            for entry in archive.getmembers()
        }


def test_a_matrix_holds_a_value_a_boot_in_the_order_of_blocks(worse: Experiment) -> None:
    files = members(worse)
    matrix = files["showgids-smoke-1/base/matrix.json"]
    assert matrix["showgids.ns_per_open"] == BASE
    assert len(matrix["stats_source"]) == 8
    assert files["showgids-smoke-1/p/avg.json"]["showgids.ns_per_open"] == pytest.approx(120.2875)
    assert files["showgids-smoke-1/p/stddev.json"]["showgids.user"] == 0.0
    assert {name.split("/")[1] for name in files} == {"base", "p", "base-again"}


def test_a_matrix_leaves_out_warm_up_profiled_and_invalid_boots(worse: Experiment) -> None:
    base = worse.variants.get(name="base")
    profiled = make_run(base, worse.cases.get(), purpose=Purpose.PROFILED)
    finish_run(profiled, {"ns_per_open": [1.0, 1.0]})
    Run.objects.filter(variant=base, purpose=Purpose.MEASURED, block=2).update(invalid=["busy host"])
    matrix = members(worse)["showgids-smoke-1/base/matrix.json"]
    assert matrix["showgids.ns_per_open"] == [*BASE[:2], *BASE[3:]]


def test_a_matrix_names_no_place_outside_its_own_folder(worse: Experiment) -> None:
    worse.variants.filter(name="p").update(name="../../../etc/" + "x" * 400)
    names = list(members(worse))
    assert all(part not in {"..", ""} and len(part) < 255 for name in names for part in name.split("/"))


@pytest.mark.parametrize("form", REPORT_FORMS)
def test_every_form_is_written_by_an_experiments_number(worse: Experiment, form: str) -> None:
    made = REPORT_FORMS[form]
    assert made.write(worse.pk, link="https://lab.example")
    assert made.file_name(7).startswith("experiment-7.")
    with pytest.raises(UnknownRow):
        made.write(4711)


def test_an_experiment_that_has_only_begun_can_be_written_too() -> None:
    experiment = make_experiment(state=ExperimentState.RUNNING)
    make_variant(experiment, state=VariantState.PLANNED)
    make_case(experiment)
    for form in REPORT_FORMS.values():
        assert form.write(experiment.pk)


def test_the_data_tells_boots_that_failed_by_how_they_ended(worse: Experiment) -> None:
    Run.objects.filter(variant__name="p", block__lt=2).update(
        state="failed", outcome="hung", blame="kernel", problem="in open"
    )
    data = comparison_data(worse.pk, link="https://lab.example/")
    assert data["cases"][0]["failures"] == [
        {"variant": "p", "outcome": "hung", "blame": "kernel", "problem": "in open", "boots": 2}
    ]
    assert data["permalink"] == f"https://lab.example/experiments/{worse.pk}/comparison/"
    assert (data["format"], data["exit_code"], data["verdicts"]) == (1, 1, {"regression": 1})


def test_a_patch_that_never_booted_is_not_exit_code_0() -> None:
    experiment = experiment_of([100.0, 100.0], [None, None])
    assert comparison_data(experiment.pk)["exit_code"] == 2


def test_under_the_contention_clock_the_guest_has_the_most_cpus_of_its_cases() -> None:
    experiment = make_experiment(clock="contention")
    make_case(experiment, params={"cpus": [1, 2, 32]})
    make_case(experiment, params={"cpus": [1, 8]})
    environment = comparison_data(experiment.pk)["environment"]
    assert (environment["vcpus"], environment["memory_mib"]) == (32, 2048)
    for form in ("reply", "markdown"):
        assert "32 vCPUs" in str(REPORT_FORMS[form].write(experiment.pk))
