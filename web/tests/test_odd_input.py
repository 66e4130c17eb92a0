# SPDX-License-Identifier: GPL-2.0-or-later
"""Input that passes the first look and fails a later one: it is refused or finds nothing, and breaks no page."""

from __future__ import annotations

import pytest
from django.test import Client

from lab.errors import AddressRefused, FieldRefused
from lab.hooks.outgoing_http import check_url
from lab.models import Experiment, Standing
from lab.targets.changes import TargetFields, add_target
from web.forms import read_params

pytestmark = pytest.mark.django_db

HUGE = 10**30


@pytest.mark.parametrize(
    "address",
    [
        f"/profiles/{HUGE}.tree",
        f"/experiments/1/profile/{HUGE}/",
        f"/experiments/{HUGE}/profile/5/?kind=cpu",
        f"/experiments/{HUGE}/profile/5/callers.txt",
        f"/experiments/{HUGE}/explain/5/",
        "/targets/%00/",
    ],
)
def test_what_no_database_holds_is_a_page_that_does_not_exist(client: Client, address: str) -> None:
    assert client.get(address).status_code == 404


@pytest.mark.parametrize(
    "address", [f"/regressions/?{name}=%00x" for name in ("tree", "workload", "target", "search")]
)
def test_a_nul_in_a_filter_finds_nothing(client: Client, address: str) -> None:
    assert client.get(address).status_code == 200


def test_a_nul_from_people_who_are_signed_in_breaks_nothing(operator: Client, compared: Experiment) -> None:
    case, variant = compared.cases.get(), compared.variants.get(name="p")
    assert operator.get("/lab/audit?person=%00").status_code == 200
    assert operator.post("/account/tokens/%00/revoke").status_code == 404
    assert operator.post("/trends/steps", {"bisect": "\0"}).status_code in {302, 404}
    triage = {"case": case.pk, "variant": variant.pk, "metric": "\0", "state": "acknowledged"}
    assert operator.post("/regressions/triage", triage).status_code == 404
    toml = (
        f'name = "x"\ntree = "{compared.tree.name}"\ncases = [{{workload = "showgids", preset = "smoke"}}]\n'
    )
    assert operator.post("/experiments/new", {"toml": toml, "key": "\0"}).status_code in {302, 422}


@pytest.mark.parametrize(
    ("toml", "field"),
    [
        ('patches = [{name = "p", text = "a\\u0000"}]', "patches[0].text"),
        ('cases = [{workload = "showgids", params = {x = {"\\u0000" = 1}}}]', "cases[0].params"),
        ('cases = [{workload = "showgids", params = {x = ["\\u0000"]}}]', "cases[0].params"),
    ],
)
def test_a_nul_in_a_description_that_is_kept_is_refused_beside_its_field(
    operator: Client, compared: Experiment, toml: str, field: str
) -> None:
    cases = "" if "cases" in toml else 'cases = [{workload = "showgids"}]'
    description = f'name = "x"\ntree = "{compared.tree.name}"\n{toml}\n{cases}\n'
    numbers = {"poll_minutes": "5", "quiet_from": "0", "quiet_until": "0"}
    refused = operator.post("/standing/new", {"name": "nightly", "toml": description} | numbers)
    assert f"{field}: it holds the character U+0000" in refused.content.decode()
    assert not Standing.objects.exists()


def test_a_parameter_that_is_nested_too_deeply_for_toml_is_a_text() -> None:
    assert read_params(f"x = {'[' * 900}") == ({"x": "[" * 900}, "")


@pytest.mark.parametrize("url", ["https://xn--/x", "https://xn--a/"])
def test_a_name_that_is_no_punycode_is_no_address(url: str) -> None:
    with pytest.raises(AddressRefused, match="is not an address"):
        check_url(url, private=False)


def test_a_fake_targets_access_may_not_be_nested_without_end() -> None:
    access: dict[str, object] = {}
    for _ in range(900):
        access = {"a": access}
    with pytest.raises(FieldRefused, match="nested too deeply"):
        add_target(by=None, wanted=TargetFields("box", "fake", access=access))


def test_more_symbols_than_are_answered_are_refused(client: Client, compared: Experiment) -> None:
    at = f"/api/v1/experiments/{compared.pk}/profile/?symbols="
    assert client.get(at + ",".join("abcdefgh")).status_code == 200
    refused = client.get(at + ",".join("abcdefghi"))
    assert (refused.status_code, refused.json()["errors"][0]["parameter"]) == (400, "symbols")
