# SPDX-License-Identifier: GPL-2.0-or-later
from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from drf_spectacular.generators import SchemaGenerator
from pytest_django import DjangoDbBlocker
from pytest_django.fixtures import DjangoAssertNumQueries

from lab.comparisons.exports.formats import REPORT_FORMS
from lab.experiments.spec import SWITCH_MODELS
from lab.models import Build, Experiment, Profile, Run, Target, User
from lab.profiles.analysis.frame_tree import unpack
from lab.tests.file_rows import rows_of_a_file
from web.api.profiles import FORMS
from web.api.tests.conftest import As, make_people
from web.api.tests.store import TREND, fill

# Each list, and the most questions a page of it asks: how many rows there are, their numbers, their columns.
LISTS = {
    "experiments/": 7,
    "variants/": 3,
    "builds/": 3,
    "runs/": 3,
    "samples/": 3,
    "profiles/": 3,
    "comparisons/": 3,
    "targets/": 3,
    "patches/": 6,
    "trends/": 5,
    "notes/": 3,
    "triage/": 3,
    "trees/": 3,
    "workloads/": 3,
}


@pytest.fixture(scope="module")
def filled(
    django_db_setup: None, django_db_blocker: DjangoDbBlocker, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[dict[str, User], Experiment]]:
    """People and five experiments."""
    with rows_of_a_file(django_db_blocker):
        people = make_people()
        yield people, fill(people, tmp_path_factory.mktemp("logs"), experiments=5)


@pytest.fixture
def people(filled: tuple[dict[str, User], Experiment], db: None) -> dict[str, User]:
    return filled[0]


@pytest.fixture
def lab(filled: tuple[dict[str, User], Experiment], db: None) -> Experiment:
    return filled[1]


def strict(text: bytes) -> Any:
    """JSON as others read it."""

    def refuse(name: str) -> None:
        raise AssertionError(f"{name} is not JSON")

    return json.loads(text, parse_constant=refuse)


@pytest.mark.parametrize("path", LISTS)
def test_a_page_of_a_list_takes_few_questions_however_many_rows(
    ask: As, lab: Experiment, path: str, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    asking = ask()
    with django_assert_max_num_queries(LISTS[path]):
        answer = asking.get(path)
    page = strict(answer.content)
    assert set(page) == {"count", "next", "previous", "results"}
    assert page["count"] == len(page["results"]) > 0 or page["next"]


@pytest.mark.parametrize("path", LISTS)
def test_each_row_of_a_list_has_an_address(ask: As, lab: Experiment, path: str) -> None:
    row = ask().get(path).json()["results"][-1]
    key = row.get("key") or row.get("id") or row["name"]
    detail = ask().get(f"{path}{key}/")
    assert detail.status_code == 200, path
    assert set(row) <= set(strict(detail.content))


def test_pages_follow_each_other(ask: As, lab: Experiment) -> None:
    first = ask().get("runs/?page_size=7").json()
    second = ask().get(first["next"].removeprefix("http://testserver")).json()
    assert second["previous"]
    ids = [row["id"] for row in first["results"] + second["results"]]
    assert ids == sorted(ids, reverse=True)
    assert len(set(ids)) == 14


@pytest.mark.parametrize(
    ("query", "amount"),
    [
        ("samples/?experiment={e}&metric=ns_per_open", 6),
        ("samples/?experiment={e}&warmup=true", 2),
        ("samples/?run={r}&metric=ns_per_open", 3),
        ("runs/?experiment={e}&outcome=panicked", 2),
        ("runs/?experiment={e}&state=done&purpose=profiled", 2),
        ("runs/?search=panic", 0),
        ("variants/?experiment={e}&state=pruned", 1),
        ("builds/?experiment={e}&state=built", 1),
        ("profiles/?experiment={e}&kind=lock", 2),
        ("comparisons/?experiment={e}&verdict=regression&primary=true", 1),
        ("comparisons/?verdict=improvement", 0),
        ("patches/?experiment={e}", 1),
        ("notes/?experiment={e}", 1),
        ("notes/?author=dora", 1),
        ("triage/?experiment={e}&state=acknowledged", 1),
        ("trends/?metric=ns_per_open&tree=tiny", 1),
        ("trends/?workload=other", 0),
    ],
)
def test_lists_are_filtered(ask: As, lab: Experiment, query: str, amount: int) -> None:
    run = Run.objects.filter(samples__isnull=False).first()
    assert run
    assert ask().get(query.format(e=lab.pk, r=run.pk)).json()["count"] == amount


def test_a_boot_says_on_which_target_it_ran_and_one_that_waits_says_none(ask: As, lab: Experiment) -> None:
    ran, waits = lab.runs.order_by("pk")[:2]
    Run.objects.filter(pk=ran.pk).update(target=Target.objects.create(name="rack-7"))
    listed = {run["id"]: run["target"] for run in ask().get(f"runs/?experiment={lab.pk}").json()["results"]}
    assert (listed[ran.pk], listed[waits.pk]) == ("rack-7", None)
    assert ask().get(f"runs/{ran.pk}/").json()["target"] == "rack-7"
    assert [run["id"] for run in ask().get("runs/?target=rack-7").json()["results"]] == [ran.pk]


def test_patches_go_through_the_catalogue_and_then_what_was_submitted(ask: As, lab: Experiment) -> None:
    whole = ask().get("patches/?page_size=500").json()["results"]
    known = [patch for patch in whole if patch["id"] is None]
    assert len(known) >= 3
    assert known[0]["trees"]
    assert whole[: len(known)] == known
    size = len(known) - 1
    pages = [ask().get(f"patches/?page_size={size}&page={page}").json()["results"] for page in (1, 2)]
    assert [*pages[0], *pages[1]] == whole[: 2 * size]


def test_a_log_is_read_on_from_a_byte(ask: As, lab: Experiment) -> None:
    build = Build.objects.exclude(log="").first()
    assert build
    whole = Path(build.log).read_bytes()
    first = ask().get(f"builds/{build.pk}/log/")
    assert first.content == whole
    assert (first["Log-Complete"], first["Log-Next"]) == ("true", str(len(whole)))
    assert first["X-Content-Type-Options"] == "nosniff"
    assert first["Content-Type"].startswith("text/plain")
    assert ask().get(f"builds/{build.pk}/log/?offset=5").content == whole[5:]
    after = ask().get(f"builds/{build.pk}/log/?offset=99999")
    assert (after.content, after["Log-Next"]) == (b"", "99999")


def test_a_log_that_is_being_written_is_not_complete(ask: As, lab: Experiment) -> None:
    run = Run.objects.exclude(console="").first()
    assert run
    Run.objects.filter(pk=run.pk).update(state="running")
    assert ask().get(f"runs/{run.pk}/console/")["Log-Complete"] == "false"
    Run.objects.filter(pk=run.pk).update(console="/nowhere/at/all")
    nothing = ask().get(f"runs/{run.pk}/console/")
    assert (nothing.content, nothing["Log-Complete"]) == (b"", "false")
    Run.objects.filter(pk=run.pk).update(state="done")
    assert ask().get(f"runs/{run.pk}/console/").status_code == 404


def test_a_long_log_comes_in_parts(ask: As, lab: Experiment, tmp_path: Path) -> None:
    build = Build.objects.exclude(log="").first()
    assert build
    log = tmp_path / "long.log"
    log.write_bytes(bytes(range(256)) * 5000)
    Build.objects.filter(pk=build.pk).update(log=str(log))
    got, at, complete = b"", 0, "false"
    while complete == "false":
        part = ask().get(f"builds/{build.pk}/log/?offset={at}")
        got, at, complete = got + part.content, int(part["Log-Next"]), part["Log-Complete"]
    assert got == bytes(range(256)) * 5000


@pytest.mark.parametrize("form", FORMS)
def test_a_profile_comes_in_each_form(ask: As, lab: Experiment, form: str) -> None:
    for kind in ("cpu", "lock"):
        row = Profile.objects.filter(kind=kind).first()
        assert row
        answer = ask().get(f"profiles/{row.pk}/{form}/", Accept="text/csv")
        if answer.status_code == 422:
            assert (kind, form) == ("lock", "script")
            continue
        assert answer.status_code == 200, (kind, form)
        assert answer["Content-Type"] == FORMS[form][0]
        assert answer["X-Content-Type-Options"] == "nosniff"
    if form == "tree":
        assert unpack(answer.content).names


def test_a_form_that_there_is_not_is_told_with_the_nearest(ask: As, lab: Experiment) -> None:
    response = ask().get(f"profiles/{Profile.objects.values_list('pk', flat=True)[0]}/fodled/")
    assert response.status_code == 404
    assert 'did you mean "folded"?' in response.json()["detail"]


@pytest.mark.parametrize("form", REPORT_FORMS)
def test_a_comparison_comes_in_each_form(ask: As, lab: Experiment, form: str) -> None:
    answer = ask().get(f"experiments/{lab.pk}/export/{form}/")
    assert answer.status_code == 200, answer.content
    assert answer["Content-Type"] == REPORT_FORMS[form].media_type
    assert f"experiment-{lab.pk}" in answer["Content-Disposition"]


def test_a_comparison_is_what_labctl_prints(ask: As, lab: Experiment) -> None:
    comparison = strict(ask().get(f"experiments/{lab.pk}/comparison/").content)
    assert comparison["verdicts"] == {"regression": 1}
    assert comparison["exit_code"] == ask().get(f"experiments/{lab.pk}/").json()["exit_code"] == 1


def test_a_trend_has_its_points_and_goes_as_csv(ask: As, lab: Experiment) -> None:
    trend = strict(ask().get(f"trends/{TREND}/").content)
    assert [point["position"] for point in trend["points"]] == [0, 1, 2, 3, 4]
    assert trend["points"][0]["median"] == 1.5
    table = ask().get(f"trends/{TREND}/csv/")
    assert table["Content-Type"].startswith("text/csv")
    assert len(table.content.decode().splitlines()) >= 6
    assert ask().get("trends/nothing/").status_code == 404
    assert ask().get("trends/nothing/csv/").status_code == 404


def test_the_schema_is_told_without_a_warning(settings: Any, capsys: pytest.CaptureFixture[str]) -> None:
    call_command("spectacular", "--fail-on-warn", "--validate", verbosity=0)
    assert "openapi: 3.1.0" in capsys.readouterr().out


def test_the_schema_is_served_to_everybody(ask: As, settings: Any) -> None:
    settings.ANONYMOUS_MAY_READ = False
    answer = ask().get("schema/")
    assert answer.status_code == 200
    assert answer.json()["openapi"].startswith("3.1")
    assert {"token", "password"} <= set(answer.json()["components"]["securitySchemes"])


def test_the_schema_is_made_once_a_process(ask: As, monkeypatch: pytest.MonkeyPatch) -> None:
    first = ask().get("schema/").json()

    def again(*_: Any, **__: Any) -> None:
        raise AssertionError("the schema was made again")

    monkeypatch.setattr(SchemaGenerator, "get_schema", again)
    assert ask().get("schema/").json() == first


def test_the_schema_lets_every_kind_of_switch_go_without_a_name(ask: As) -> None:
    schemas = ask().get("schema/").json()["components"]["schemas"]
    for model in SWITCH_MODELS.values():
        assert "name" not in schemas[model.__name__].get("required", []), model.__name__
        assert "name" in schemas[model.__name__]["properties"]
