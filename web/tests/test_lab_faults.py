# SPDX-License-Identifier: GPL-2.0-or-later
"""Late answers and corrupt artifacts, on the operator's page and in the API."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from lab.leases.process import worker_identity
from lab.models import Build, Experiment, Run, User
from lab.models.states import Outcome
from lab.operations.lab_faults import late_answers
from lab.people.tokens import issue_token
from lab.runs.claim import Claim
from lab.runs.claiming import claim_next_build
from lab.runs.hand_back import take_back
from lab.runs.record import (
    BuildSuccess,
    RunRecord,
    note_corrupt_artifact,
    record_build_success,
    record_run,
    refuse_late,
)
from lab.tests.factories import ME, claim_run, finish_builds, make_grid
from web.tests.conftest import Page


@pytest.fixture
def late(charlie: User) -> Experiment:
    """An experiment with a build and a boot that were taken back before they answered."""
    experiment = make_grid()
    Experiment.objects.update(name="kernfs <b>")
    build = claim_next_build(queue="build.x86_64.gcc", by=ME)
    assert build
    take_back(by=charlie, kind="build", work=build.id)
    assert not record_build_success(build, BuildSuccess("k", "6.1-k1", "h"))
    finish_builds(experiment)
    run = claim_run(Run.objects.order_by("position")[0].pk, by=ME)
    assert run
    take_back(by=charlie, kind="run", work=run.id)
    assert not record_run(run, RunRecord(Outcome.PANICKED, blame="kernel", problem="Oops"))
    return experiment


def of_section(text: str, name: str) -> str:
    return text.partition(f'<h2 id="{name}">')[2].partition("</section>")[0]


def asks(client: Client, user: User, place: str, *scopes: str) -> Any:
    _, token = issue_token(user=user, name="t", scopes=scopes or ("read", "operate"), days=1)
    return client.get(f"/api/v1/late-answers/{place}", headers={"Authorization": f"Token {token}"})


def test_late_answers_are_told_with_experiment_place_and_worker(
    late: Experiment, operator: Client, page: Page
) -> None:
    section = of_section(page("/lab/", operator), "late")
    run, build = Run.objects.order_by("position")[0], Build.objects.order_by("pk")[0]
    for words in (
        f'<a href="/runs/{run.pk}/">Run {run.pk}</a>',
        f'<a href="/builds/{build.pk}/log">Build {build.pk}</a>',
        f'<a href="/experiments/{late.pk}/">#{late.pk}</a> kernfs &lt;b&gt;',
        '<td class="break" data-label="Where">guest</td>',
        '<td class="break" data-label="Where">build.x86_64.gcc</td>',
        worker_identity(),
        "panicked: Oops",
        "built 6.1-k1",
        "it is queued now",
    ):
        assert words in section, words


def test_an_answer_to_what_was_deleted_links_nowhere(operator: Client, page: Page) -> None:
    refuse_late(Claim("run", 4711, "x", "rack7"), "finished")
    section = of_section(page("/lab/", operator), "late")
    assert "Run 4711" in section
    assert "rack7" in section
    assert "it was deleted" in section
    assert "href" not in section


def test_more_late_answers_are_no_more_questions(late: Experiment) -> None:
    with CaptureQueriesContext(connection) as few:
        late_answers()
    for run in Run.objects.all():
        refuse_late(Claim("run", run.pk, "x", "guest"), "finished")
    with CaptureQueriesContext(connection) as many:
        answers = late_answers()
    assert len(answers) == 2 + Run.objects.count()
    assert len(many) == len(few)


def test_the_api_tells_operators_alone_of_late_answers(
    late: Experiment, client: Client, charlie: User, alice: User
) -> None:
    assert asks(client, alice, "", "read", "submit").status_code == 403
    assert asks(client, charlie, "", "read").status_code == 403
    assert client.get("/api/v1/late-answers/").status_code in (401, 403)
    run, build = asks(client, charlie, "").json()["results"]
    assert (run["kind"], run["target"], run["said"], run["experiment"]) == (
        "run",
        "guest",
        "panicked: Oops",
        late.pk,
    )
    assert (build["kind"], build["target"], build["experiment"]) == ("build", "", late.pk)
    assert asks(client, charlie, f"{run['id']}/").json() == run
    (only,) = asks(client, charlie, "?kind=build&search=6.1-k1").json()["results"]
    assert only == build
    assert asks(client, charlie, "?target=rack").json()["results"] == []
    assert asks(client, charlie, "?kind=boot").status_code == 400


def test_a_spoilt_artifact_is_listed_with_how_often_it_was(operator: Client, page: Page) -> None:
    assert "None." in of_section(page("/lab/", operator), "corrupt")
    make_grid()
    first, second = Build.objects.order_by("pk")[:2]
    for build in (first, second, second):
        note_corrupt_artifact(build.pk)
    section = of_section(page("/lab/", operator), "corrupt")
    assert section.index(f"Build {second.pk}") < section.index(f"Build {first.pk}")
    assert '<td class="n" data-label="Times">2</td>' in section
    rows = operator.get(f"/api/v1/builds/{second.pk}/").json()
    assert rows["corrupted"] == 2
