# SPDX-License-Identifier: GPL-2.0-or-later
"""Targets over REST: operators add, change and release machines; others see how they are, not how they are reached."""

from __future__ import annotations

from typing import Any

import pytest
from django.utils import timezone

from lab.models import HealthCheck, Target
from lab.tests.factories import make_experiment
from web.api.tests.conftest import As, Asking

pytestmark = pytest.mark.django_db

METAL: dict[str, Any] = {
    "name": "box-1",
    "driver": "metal",
    "group": "rack",
    "vcpus": 64,
    "memory_mib": 131072,
    "remark": "rack 4",
    "access": {
        "mac": "52:54:00:AB:CD:EF",
        "power": {
            "kind": "redfish",
            "address": "https://bmc-1",
            "user": "root",
            "password_file": "/run/secrets/bmc-1",
        },
    },
    "tuning": {"governor": "performance", "smt": False},
}


@pytest.fixture
def operator(ask: As) -> Asking:
    """Charlie's token."""
    return ask("charlie")


def test_an_operator_takes_a_machine_in_changes_it_and_forgets_it(operator: Asking) -> None:
    made = operator.post("targets/", METAL)
    assert made.status_code == 201, made.json()
    row = made.json()
    assert row["access"]["mac"] == "52:54:00:ab:cd:ef"
    assert row["tuning"] == METAL["tuning"]
    changed = operator("PATCH", f"targets/{row['id']}/", {"tuning": {"turbo": False}, "enabled": False})
    assert (changed.json()["tuning"], changed.json()["enabled"]) == ({"turbo": False}, False)
    assert changed.json()["group"] == "rack"
    assert operator("DELETE", f"targets/{row['id']}/").status_code == 204
    assert not Target.objects.filter(name="box-1").exists()


def test_others_see_a_machine_but_not_how_it_is_reached(operator: Asking, ask: As) -> None:
    row = operator.post("targets/", METAL).json()
    HealthCheck.objects.create(target_id=row["id"], ok=True, metric="showgids ns_per_open", value=812.5)
    seen = ask("alice").get(f"targets/{row['id']}/").json()
    assert (seen["access"], seen["remark"]) == (None, None)
    assert "remark" not in ask("alice").get("targets/").json()["results"][0]
    assert operator.get(f"targets/{row['id']}/").json()["remark"] == "rack 4"
    assert [(check["ok"], check["value"]) for check in seen["checks"]] == [(True, 812.5)]
    assert ask("alice").post("targets/", {"name": "mine"}).status_code == 403
    assert ask("alice")("PATCH", f"targets/{row['id']}/", {"enabled": False}).status_code == 403
    assert ask("alice").post(f"targets/{row['id']}/release/").status_code == 403


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"name": "a b"}, 'name: "a b" is not valid'),
        ({"name": "taken"}, 'there is a target "taken" already'),
        ({"access": {}}, "access.mac is missing"),
        ({"access": METAL["access"] | {"mac": "x"}}, "is not the address of a network card"),
        ({"access": METAL["access"] | {"password": "x"}}, 'unknown field "password"'),
        ({"tuning": {"governor": "PERF"}}, "tuning.governor"),
        ({"driver": "libvirt"}, "a guest of this host needs none"),
        ({"group": "taken"}, '"taken" is the name of a target'),
    ],
)
def test_what_is_wrong_with_a_machine_is_said_in_a_line_that_names_the_field(
    operator: Asking, more: dict[str, Any], said: str
) -> None:
    Target.objects.create(name="taken")
    refused = operator.post("targets/", METAL | more)
    assert refused.status_code in {400, 422}
    assert said in refused.json()["detail"]


def test_one_network_card_is_one_machine(operator: Asking) -> None:
    operator.post("targets/", METAL)
    assert "is the card of box-1" in operator.post("targets/", METAL | {"name": "box-2"}).json()["detail"]


def test_a_machine_with_a_past_is_not_forgotten(operator: Asking) -> None:
    target = make_experiment().target
    refused = operator("DELETE", f"targets/{target.pk}/")
    assert refused.status_code in {400, 422}
    assert Target.objects.filter(pk=target.pk).exists()
    assert "disable it instead" in refused.json()["detail"]


def test_a_release_ends_a_quarantine(operator: Asking) -> None:
    target = Target.objects.create(
        name="ill", faults=3, quarantined_at=timezone.now(), quarantine_reason="3 faults"
    )
    row = operator.post(f"targets/{target.pk}/release/").json()
    assert (row["quarantined_at"], row["faults"], row["quarantine_reason"]) == (None, 0, "")


def test_a_fault_deep_in_a_machines_access_is_pointed_at(operator: Asking) -> None:
    power = METAL["access"]["power"] | {"address": "bmc-1"}
    refused = operator.post("targets/", METAL | {"access": METAL["access"] | {"power": power}})
    assert (refused.status_code, refused.json()["errors"][0]["pointer"]) == (422, "/access/power/address")
