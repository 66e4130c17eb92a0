# SPDX-License-Identifier: GPL-2.0-or-later
from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from pytest_django.fixtures import DjangoAssertNumQueries

from lab.errors import LabUnable
from lab.models import Comparison, Experiment, IdempotencyKey, Run, Target, User
from lab.tests.factories import (
    finish_builds,
    make_case,
    make_experiment,
    make_grid,
    make_patch_switch,
    make_variant,
)
from lab.tests.tiny_tree import diff, make_tiny_tree
from web.api.tests.conftest import As, Asking


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_tiny_tree(tmp_path_factory.mktemp("source") / "linux")


@pytest.fixture
def described(repository: Path, tmp_path: Path, settings: Any) -> dict[str, Any]:
    """A description that the lab can take in."""
    settings.HOME, settings.LOCAL_PATHS = tmp_path, True
    (tmp_path / "trees").mkdir()
    return {
        "name": "over REST",
        "git": str(repository),
        "base": "v6.1",
        "patches": [{"name": "one", "text": diff("fs/inode.c", 10, "one")}],
        "cases": [{"workload": "showgids", "preset": "smoke"}],
        "measure": {"boots": 3},
    }


@pytest.mark.process
def test_a_description_becomes_an_experiment_of_who_sent_it(ask: As, described: dict[str, Any]) -> None:
    made = ask("alice").post("experiments/", described)
    assert made.status_code == 201
    experiment = made.json()
    assert made["Location"] == experiment["url"]
    assert experiment["url"].endswith(f"/api/v1/experiments/{experiment['id']}/")
    assert (experiment["state"], experiment["submitter"], experiment["exit_code"]) == (
        "queued",
        "alice",
        None,
    )
    assert experiment["boots_total"] == experiment["progress"]["boots_total"] == 9
    assert [part["name"] for part in experiment["parts"]] == ["base", "one", "base-again"]
    assert [switch["name"] for switch in experiment["switches"]] == ["one"]
    assert experiment["cases"][0]["workload"] == "showgids"


@pytest.mark.process
def test_a_variant_whose_name_is_too_long_to_be_stored_is_refused(ask: As, described: dict[str, Any]) -> None:
    # PostgreSQL refuses a longer text than its column takes.
    configs = [{"name": f"{number}-{'x' * 58}", "lines": [f"CONFIG_X{number}=y"]} for number in range(9)]
    refused = ask("alice").post("experiments/", described | {"configs": configs, "design": "cumulative"})
    assert refused.status_code == 422
    fault = refused.json()["errors"][0]
    assert fault["pointer"] == "/design"
    assert "552 characters, at most 500" in fault["detail"]
    assert not Experiment.objects.exists()


@pytest.mark.process
def test_what_was_submitted_can_be_submitted_again(ask: As, described: dict[str, Any]) -> None:
    first = ask("alice").post("experiments/", described).json()
    again = ask().get(f"experiments/{first['id']}/description/").json()
    assert again["patches"][0]["text"] == described["patches"][0]["text"]
    second = ask("dora").post("experiments/", again).json()
    assert second["digest"] == first["digest"]
    assert second["id"] != first["id"]


def test_a_description_does_not_tell_a_password(ask: As) -> None:
    row = make_experiment(spec={"git": "https://me:secret@example.org/linux.git", "cases": []})
    assert "secret" not in ask().get(f"experiments/{row.pk}/description/").content.decode()


@pytest.mark.process
def test_a_preview_tells_what_it_takes_and_queues_nothing(ask: As, described: dict[str, Any]) -> None:
    preview = ask("alice").post("experiments/preview/", described).json()
    assert preview["boots"] == 9
    assert {variant["state"] for variant in preview["variants"]} == {"to build"}
    assert preview["seconds"] > 0
    assert preview["at_least"]
    assert preview["estimate"] == "estimated from shipped figures, not from this lab"
    assert [limit["estimate"] for limit in preview["detectable"]] == [preview["estimate"]]
    assert preview["detectable"][0]["change"] > 0
    assert not Experiment.objects.exists()


@pytest.mark.process
def test_only_operators_name_folders_of_the_labs_machine(
    ask: As, described: dict[str, Any], settings: Any
) -> None:
    settings.LOCAL_PATHS = False
    for path in ("experiments/preview/", "experiments/"):
        refused = ask("alice").post(path, described)
        assert refused.status_code == 422
        assert "only operators may name a folder" in refused.json()["detail"]
        assert ask("charlie").post(path, described).status_code in {200, 201}


@pytest.mark.process
def test_every_fault_of_a_description_is_told_with_its_place(ask: As) -> None:
    body = {
        "name": "x",
        "tree": "debian-6.1",
        "cases": [{"workload": "stat-walk", "prest": 1}],
        "patches": [{"name": "-"}],
    }
    problem = ask("alice").post("experiments/", body).json()
    assert problem["status"] == 422
    assert problem["type"].endswith("#refused")
    assert {error["pointer"] for error in problem["errors"]} >= {"/cases/0", "/patches/0/name"}
    assert any('did you mean "preset"?' in error["detail"] for error in problem["errors"])


MAILS = "".join(
    f"From {number:040x} Mon Sep 17 00:00:00 2001\nFrom: A <a@example.org>\nDate: Mon, 1 Jan 2024 00:00:00 +0000\n"
    f"Subject: [PATCH {number}/2] fs: {name}\n\nWhy.\n---\n{diff(file, 10, name)}-- \n2.39\n\n"
    for number, (file, name) in enumerate((("fs/inode.c", "one"), ("fs/dcache.c", "two")), 1)
)


@pytest.mark.process
@pytest.mark.parametrize(("each", "switches"), [(False, 1), (True, 2)])
def test_a_series_is_one_switch_or_one_for_each_patch(
    ask: As, described: dict[str, Any], each: bool, switches: int
) -> None:
    body = {**described, "series": MAILS, "each": each}
    del body["patches"]
    made = ask("alice").post("experiments/", body)
    assert made.status_code == 201, made.content
    assert len(made.json()["switches"]) == switches
    both = ask("alice").post("experiments/", described | {"series": MAILS})
    assert both.json()["errors"][0]["pointer"] == "/series"
    assert ask("alice").post("experiments/", body | {"series": 7}).status_code == 400
    alone = ask("alice").post("experiments/", described | {"each": True})
    assert alone.json()["errors"][0]["pointer"] == "/each"
    empty = ask("alice").post("experiments/", body | {"series": "no mail"})
    assert empty.status_code == 422


@pytest.mark.process
def test_files_are_labctls_to_read(ask: As) -> None:
    body = {"name": "x", "tree": "debian-6.1", "cases": [], "patches": [{"name": "p", "file": "/etc/passwd"}]}
    problem = ask("alice").post("experiments/", body).json()
    assert problem["errors"][0]["pointer"] == "/patches/0/file"
    assert "send the patch itself" in problem["detail"]


def test_a_fault_of_the_lab_is_503_and_not_the_descriptions(
    ask: As, described: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def unable(**_: Any) -> None:
        raise LabUnable("the disk is full")

    monkeypatch.setattr("web.api.submission.submit_noted", unable)
    response = ask("alice").post("experiments/", described, Idempotency_Key="k")
    assert response.status_code == 503
    assert int(response["Retry-After"]) > 0
    assert not IdempotencyKey.objects.exists(), "a key whose submission failed is free again"


@pytest.mark.process
def test_the_same_key_and_body_are_one_experiment(ask: As, described: dict[str, Any]) -> None:
    first = ask("alice").post("experiments/", described, Idempotency_Key="push-1")
    again = ask("alice").post("experiments/", described, Idempotency_Key="push-1")
    assert (first.status_code, again.status_code) == (201, 200)
    assert again["Idempotent-Replayed"] == "true"
    assert "Idempotent-Replayed" not in first
    assert again.json()["id"] == first.json()["id"]
    assert Experiment.objects.count() == 1


@pytest.mark.process
def test_the_same_key_with_another_body_is_refused(ask: As, described: dict[str, Any]) -> None:
    ask("alice").post("experiments/", described, Idempotency_Key="push-1")
    refused = ask("alice").post("experiments/", described | {"name": "other"}, Idempotency_Key="push-1")
    assert refused.status_code == 422
    assert refused.json()["type"].endswith("#idempotency-key-reused")
    other = ask("dora").post("experiments/", described, Idempotency_Key="push-1")
    assert other.status_code == 201, "keys are each person's own"


@pytest.mark.parametrize("key", ["", "a b", "x" * 201, "\xe9"])
def test_a_key_that_is_none_is_refused(ask: As, key: str) -> None:
    refused = ask("alice").post("experiments/", {}, Idempotency_Key=key)
    assert refused.status_code == 400
    assert refused.json()["errors"][0]["parameter"] == "Idempotency-Key"


@pytest.mark.process
@pytest.mark.django_db(transaction=True)
def test_submissions_that_race_under_one_key_are_one_experiment(ask: As, described: dict[str, Any]) -> None:
    # What a migration wrote is gone where a test before this one emptied the tables.
    Target.objects.get_or_create(name="guest")
    asking = ask("alice")
    answers: list[Any] = []

    def submit() -> None:
        try:
            answers.append(Asking.post(asking, "experiments/", described, Idempotency_Key="k"))
        finally:
            connection.close()

    threads = [threading.Thread(target=submit) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert Experiment.objects.count() == 1
    statuses = sorted(answer.status_code for answer in answers)
    assert statuses.count(201) == 1
    assert set(statuses) <= {200, 201, 409}
    for busy in (answer for answer in answers if answer.status_code == 409):
        assert int(busy["Retry-After"]) > 0


def test_who_submitted_it_and_operators_cancel_and_others_do_not(ask: As, people: dict[str, User]) -> None:
    mine = [make_grid() for _ in range(2)]
    Experiment.objects.update(submitter=people["alice"])
    assert ask().post(f"experiments/{mine[0].pk}/cancel/").status_code == 401
    assert ask("dora").post(f"experiments/{mine[0].pk}/cancel/").status_code == 403
    cancelled = ask("alice").post(f"experiments/{mine[0].pk}/cancel/").json()
    assert (cancelled["state"], cancelled["exit_code"]) == ("cancelled", 3)
    assert ask("charlie").post(f"experiments/{mine[1].pk}/cancel/").status_code == 200
    again = ask("alice").post(f"experiments/{mine[0].pk}/cancel/")
    assert again.status_code == 409
    assert "cancelled already" in again.json()["detail"]
    assert ask("alice").post("experiments/999/cancel/").status_code == 404


@pytest.mark.process
def test_what_is_over_is_run_again_for_who_asks(ask: As, described: dict[str, Any]) -> None:
    first = ask("alice").post("experiments/", described).json()
    open_yet = ask("dora").post(f"experiments/{first['id']}/rerun/")
    assert open_yet.status_code == 409
    ask("alice").post(f"experiments/{first['id']}/cancel/")
    again = ask("dora").post(f"experiments/{first['id']}/rerun/")
    assert again.status_code == 201
    assert (again.json()["origin"], again.json()["submitter"]) == (first["id"], "dora")
    twice = ask("dora").post(f"experiments/{first['id']}/rerun/")
    assert (twice.status_code, twice.json()["id"]) == (200, again.json()["id"])


def judged(verdict: str, **fields: Any) -> Experiment:
    experiment = make_experiment(state="done", **fields)
    case = make_case(experiment)
    make_variant(experiment)
    Comparison.objects.create(
        experiment=experiment,
        case=case,
        variant=make_variant(experiment, "p"),
        metric="ns_per_open",
        better="lower",
        primary=True,
        boots=3,
        margin=0.02,
        ratio=float("inf"),
        verdict=verdict,
    )
    return experiment


@pytest.mark.parametrize(
    ("verdict", "code"), [("regression", 1), ("improvement", 0), ("unchanged", 0), ("inconclusive", 2)]
)
def test_a_verdict_is_an_exit_code(ask: As, db: None, verdict: str, code: int) -> None:
    experiment = ask().get(f"experiments/{judged(verdict).pk}/").json()
    assert experiment["verdicts"] == {verdict: 1}
    assert experiment["exit_code"] == code


def test_a_case_that_no_kernel_finished_is_no_success(ask: As, db: None) -> None:
    experiment = judged("unchanged")
    make_case(experiment, workload="stat-walk")
    assert ask().get(f"experiments/{experiment.pk}/").json()["exit_code"] == 2


def test_experiments_are_filtered_searched_and_ordered(ask: As, people: dict[str, User]) -> None:
    worse = judged("regression", name="kernfs rwsem", submitter=people["alice"])
    better = judged("improvement", name="inode hash")
    waiting = make_experiment(name="kernfs again")

    def matches(query: str) -> list[int]:
        return [row["id"] for row in ask().get(f"experiments/?{query}").json()["results"]]

    assert matches("") == [waiting.pk, better.pk, worse.pk]
    assert matches("verdict=regression") == [worse.pk]
    assert matches("state=queued") == [waiting.pk]
    assert matches("submitter=alice") == [worse.pk]
    assert matches("search=kernfs+rwsem") == [worse.pk]
    assert matches("ordering=name") == [better.pk, waiting.pk, worse.pk]
    assert matches("ordering=-name,id") == [worse.pk, waiting.pk, better.pk]
    assert matches("tree=tiny&created_after=2020-01-01T00:00:00Z&page_size=1&page=2") == [better.pk]
    assert matches("created_before=2020-01-01T00:00:00Z") == []


def test_a_list_asks_as_often_for_many_as_for_one(
    ask: As, db: None, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    for number in range(12):
        row = judged("improvement", name=str(number))
        make_patch_switch(row, "p")
    asking = ask()
    with django_assert_max_num_queries(7):
        assert len(asking.get("experiments/").json()["results"]) == 12
    with django_assert_max_num_queries(20):
        asking.get(f"experiments/{row.pk}/")


def test_a_look_at_an_open_experiment_asks_little_for_ci_looks_every_few_seconds(
    ask: As, db: None, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    row, asking = make_grid(blocks=6), ask()
    with django_assert_max_num_queries(20):
        assert (
            asking.get(f"experiments/{row.pk}/").json()["progress"]["queue"]["text"] == "1st of 1 for a build"
        )
    finish_builds(row)
    Run.objects.filter(pk=row.runs.all()[0].pk).update(state="running", claimed_by="elsewhere:1:1", token="t")
    with django_assert_max_num_queries(16):
        (now,) = asking.get(f"experiments/{row.pk}/").json()["progress"]["now"]
    assert now["label"] == "base: showgids, boot 1"


def test_a_number_that_is_none_is_null(ask: As, db: None) -> None:
    row = judged("improvement")
    (comparison,) = ask().get(f"comparisons/?experiment={row.pk}").json()["results"]
    assert comparison["ratio"] is None
    assert comparison["verdict"] == "improvement"


def test_an_unchanged_answer_is_not_sent_again(ask: As, db: None) -> None:
    row = make_experiment()
    asking = ask()
    first = asking.get(f"experiments/{row.pk}/")
    assert asking.get(f"experiments/{row.pk}/", If_None_Match=first["ETag"]).status_code == 304
    assert first["Cache-Control"] == "private, no-cache"
    row.name = "renamed"
    row.save()
    assert asking.get(f"experiments/{row.pk}/", If_None_Match=first["ETag"]).status_code == 200


def test_a_priority_is_changed_while_it_is_open_and_above_normal_by_operators(
    ask: As, people: dict[str, User]
) -> None:
    experiment = make_grid()
    Experiment.objects.update(submitter=people["alice"])
    place = f"experiments/{experiment.pk}/priority/"

    def stands() -> int:
        return Experiment.objects.get(pk=experiment.pk).priority

    assert ask("alice").post(place, {"priority": "low"}).status_code == 200
    assert stands() == -10
    refused = ask("alice").post(place, {"priority": "high"})
    assert refused.status_code == 403
    assert "only operators" in refused.json()["detail"]
    assert ask("dora").post(place, {"priority": "low"}).status_code == 403
    assert ask("charlie").post(place, {"priority": "high"}).status_code == 200
    assert stands() == 10
    assert ask("charlie").post(place, {"priority": "urgent"}).status_code in (400, 422)
    Experiment.objects.update(state="done")
    assert ask("charlie").post(place, {"priority": "low"}).status_code == 409


def test_rows_tell_priority_and_group_and_are_found_by_them(ask: As, db: None) -> None:
    plain = make_experiment(name="plain")
    urgent = make_experiment(name="urgent", priority=10, group="rack")

    def listed(query: str = "") -> list[tuple[int, str, str]]:
        rows = ask().get(f"experiments/?ordering=id{query}").json()["results"]
        return [(row["id"], row["priority"], row["group"]) for row in rows]

    assert listed() == [(plain.pk, "normal", ""), (urgent.pk, "high", "rack")]
    assert listed("&priority=high") == [(urgent.pk, "high", "rack")]
    assert listed("&group=rack") == [(urgent.pk, "high", "rack")]
    assert listed("&priority=low") == []
    assert ask().get("experiments/?priority=10").status_code == 400
    detail = ask().get(f"experiments/{urgent.pk}/").json()
    assert (detail["priority"], detail["group"]) == ("high", "rack")
