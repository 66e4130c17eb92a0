# SPDX-License-Identifier: GPL-2.0-or-later
from typing import Any

import pytest
from django.test import Client, RequestFactory
from drf_spectacular.generators import SchemaGenerator

from lab.tests.factories import make_grid
from web.api.problems import broken, pointer
from web.api.tests.conftest import As


@pytest.mark.parametrize(
    "path", ["nothing/", "experiments", "/api/", "/api/v2/me/", "experiments/x/", "runs/-1/"]
)
def test_an_unknown_address_is_a_problem(ask: As, path: str) -> None:
    response = ask().get(path)
    assert response.status_code == 404
    assert response.json()["type"] == "about:blank"


@pytest.mark.parametrize("path", ["/api/v1/runs/-1/cancel/", "/api/v1/nothing/", "/api/"])
def test_an_unknown_address_is_one_for_every_method_whatever_the_browser_forgot(path: str, db: None) -> None:
    for method in ("post", "delete", "patch"):
        answer = getattr(Client(enforce_csrf_checks=True), method)(path)
        assert answer.status_code == 404
        assert answer["Content-Type"] == "application/problem+json"


@pytest.mark.parametrize("number", ["1", str(2**63), "9" * 60])
def test_a_row_that_is_not_there_is_named(ask: As, number: str) -> None:
    for kind in ("experiment", "run", "build", "variant"):
        response = ask().get(f"{kind}s/{number}/")
        assert response.status_code == 404
        assert response.json()["detail"] == f"there is no {kind} {number}"


def test_a_method_that_is_not_there_names_those_that_are(ask: As) -> None:
    response = ask("charlie")("DELETE", "experiments/")
    assert response.status_code == 405
    assert set(response["Allow"].split(", ")) >= {"GET", "POST"}
    assert "DELETE" not in response["Allow"]
    assert ask()("OPTIONS", "runs/").status_code == 204


def test_a_form_that_cannot_be_had_is_406(ask: As) -> None:
    assert ask().get("experiments/", Accept="text/csv").status_code == 406
    assert ask().get("experiments/", Accept="text/html,*/*;q=0.8").status_code == 200


def test_a_body_that_is_no_json_by_its_name_is_415(ask: As) -> None:
    response = ask("alice").client.post(
        "/api/v1/experiments/", "name = 1", content_type="application/toml", headers=ask("alice").headers
    )
    assert response.status_code == 415
    assert response["Content-Type"] == "application/problem+json"


@pytest.mark.parametrize(
    ("body", "told"),
    [
        (b"{", "not JSON"),
        (b"\xff", "not UTF-8"),
        (b'{"a": NaN}', "NaN is not a number"),
        (b'{"a": 1e999}', "larger than a double"),
        (b"1" * 5000, "not JSON"),
        (b"[" * 100_000, "nested too deeply"),
        (b'{"name": "a\\u0000b"}', "NUL"),
        (b'{"name": "\\ud800"}', "surrogate"),
        (b'{"\\ud800": 1}', "surrogate"),
        (b'{"a":' * 60 + b"1" + b"}" * 60, "nested too deeply"),
        (b"[]", "JSON object"),
        (b"3", "JSON object"),
    ],
)
def test_a_body_that_no_table_can_hold_is_refused(ask: As, body: bytes, told: str) -> None:
    refused = ask("alice").post("experiments/", body)
    assert refused.status_code == 400
    assert told in refused.json()["detail"]


def test_a_nul_is_told_with_its_place(ask: As) -> None:
    refused = ask("alice").post("experiments/", {"patches": [{"text": "a\0"}], "a/b~": {"c": "\0"}})
    assert [error["pointer"] for error in refused.json()["errors"]] == ["/patches/0/text", "/a~1b~0/c"]


def test_a_body_that_is_too_large_is_413(ask: As, settings: Any) -> None:
    settings.DATA_UPLOAD_MAX_MEMORY_SIZE = 1000
    assert ask("alice").post("experiments/", {"name": "x" * 2000}).status_code == 413


@pytest.mark.parametrize(
    ("query", "parameter", "told"),
    [
        ("sate=done", "sate", 'did you mean "state"?'),
        ("state=dnoe", "state", "dnoe"),
        ("ordering=nmae", "ordering", 'did you mean "name"?'),
        ("page=0", "page", "from 1 to"),
        ("page=last", "page", "from 1 to"),
        ("page=%EF%BC%91", "page", "from 1 to"),
        ("page_size=501", "page_size", "from 1 to 500"),
        ("origin=99999999999999999999", "origin", "not a number from 0"),
        ("origin=-1", "origin", "not a number from 0"),
        ("search=%00", "search", "no NUL"),
        ("search=" + "x" * 201, "search", "200 characters"),
        ("tree=%00", "tree", "Null characters"),
        ("created_after=", "created_after", "empty"),
        ("state=", "state", "empty"),
        ("created_after=tomorrow", "created_after", "date"),
        ("created_after=0001-01-01T00:00:00%2B14:00", "created_after", "date"),
        ("created_before=9999-12-31T23:59:59-10:00", "created_before", "date"),
    ],
)
def test_a_parameter_that_means_nothing_is_told_by_its_name(
    ask: As, query: str, parameter: str, told: str
) -> None:
    refused = ask().get(f"experiments/?{query}")
    assert refused.status_code == 400
    (fault,) = refused.json()["errors"]
    assert fault["parameter"] == parameter
    assert told in fault["detail"]


def test_no_list_ignores_a_parameter_that_it_does_not_have(ask: As) -> None:
    paths = SchemaGenerator().get_schema(public=True)["paths"]  # type: ignore[no-untyped-call]
    lists = [path for path, methods in paths.items() if "get" in methods and "{" not in path]
    assert len(lists) > 20
    answers = {path: ask("charlie").get(f"{path}?kperflab_none=1") for path in lists}
    assert [path for path, answer in answers.items() if answer.status_code != 400] == []
    for answer in answers.values():
        assert answer.json()["errors"][0]["parameter"] == "kperflab_none"
        assert "there is no such parameter" in answer.json()["errors"][0]["detail"]


def test_a_search_of_many_words_is_refused_and_does_not_break_the_database(ask: As) -> None:
    assert ask().get("experiments/?search=" + "+".join("a" * 1 for _ in range(13))).status_code == 422


def test_a_page_after_the_last_is_not_there(ask: As) -> None:
    make_grid()
    assert ask().get("experiments/?page=2").status_code == 404


def test_lines_about_a_description_become_pointers() -> None:
    assert pointer("patches[0].text: give one of file, text") == "/patches/0/text"
    assert pointer("cases is missing") == "/cases"
    assert pointer('measure.boots: "x" is neither') == "/measure/boots"
    assert pointer("give one of tree and git") == ""
    assert pointer('the description: unknown field "x"') == ""


def test_a_fault_of_ours_is_a_problem_too() -> None:
    answer = broken(RequestFactory().get("/api/v1/runs/"))
    assert answer.status_code == 500
    assert answer["Content-Type"] == "application/problem+json"


def test_a_host_that_is_not_ours_is_a_problem(client: Client) -> None:
    answer = client.get("/api/v1/me/", headers={"Host": "evil.example"})
    assert answer.status_code == 400
    assert answer["Content-Type"] == "application/problem+json"


def test_the_kinds_of_problems_are_told(ask: As) -> None:
    assert "/api/v1/problems/#validation" in [kind["type"] for kind in ask().get("problems/").json()]
