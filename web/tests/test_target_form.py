# SPDX-License-Identifier: GPL-2.0-or-later
"""The forms of a target: for operators, the checks of REST and labctl beside the fields, no change overwritten unseen."""

from __future__ import annotations

import html
import re
from typing import Any

import pytest
from django.test import Client
from pydantic import BaseModel

from lab.models import Target
from lab.targets import access_schema as machine
from lab.targets.changes import TargetFields, add_target
from lab.targets.drivers import DRIVERS
from web.targetfields import GROUPS
from web.tests.conftest import SCRIPT, Page
from workloads.guest.tuning import Tuning

BOX: dict[str, Any] = {
    "mac": "52:54:00:12:34:56",
    "kexec": True,
    "power": {
        "kind": "redfish",
        "address": "https://bmc-1",
        "user": "lab",
        "password_file": "/etc/kperflab/bmc-1",
        "verify": "/etc/kperflab/ca.pem",
        "system": "1",
    },
    "console": {"kind": "netconsole", "address": "10.20.0.101", "to": "10.20.0.1", "port": 6667},
}
TUNING = {"governor": "performance", "turbo": False, "smt": True, "isolcpus": "2-63", "irq_affinity": "0-1"}
METAL = {
    "name": "box-1",
    "driver": "metal",
    "group": "rack",
    "vcpus": "64",
    "memory_mib": "131072",
    "enabled": "on",
    "remark": "rack 4,\r\nslot 2",
    "access.mac": "52:54:00:12:34:56",
    "access.fragments": "metal",
    "access.kexec": "on",
    "access.power.kind": "redfish",
    "access.power.address": "https://bmc-1",
    "access.power.user": "lab",
    "access.power.password_file": "/etc/kperflab/bmc-1",
    "access.power.verify": "/etc/kperflab/ca.pem",
    "access.power.system": "1",
    "access.console.kind": "netconsole",
    "access.console.netconsole.address": "10.20.0.101",
    "access.console.netconsole.to": "10.20.0.1",
    "access.console.netconsole.port": "6667",
    "tuning.governor": "performance",
    "tuning.turbo": "off",
    "tuning.smt": "on",
    "tuning.isolcpus": "2-63",
    "tuning.irq_affinity": "0-1",
}
GUEST = {"name": "guest-2", "driver": "libvirt", "vcpus": "4", "memory_mib": "2048", "enabled": "on"}


@pytest.fixture
def box(db: None) -> Target:
    """A machine with everything said of it, as the other doors take it in."""
    wanted = TargetFields(
        "box-1", "metal", "rack", 64, 131072, remark=f"rack 4\n{SCRIPT}", access=BOX, tuning=TUNING
    )
    return add_target(by=None, wanted=wanted)


def inputs(text: str) -> dict[str, str]:
    """Return the values that a browser would send of the untouched form."""
    form = text[text.index('<form class="narrow"') :].partition("</form>")[0]
    sent = {}
    for tag in re.findall(r"<input[^>]*>", form):
        attributes = dict(re.findall(r'(\w+)="([^"]*)"', tag))
        if attributes.get("type") != "checkbox" or " checked" in tag:
            sent[attributes["name"]] = html.unescape(attributes.get("value", ""))
    for name, inside in re.findall(r'<select id="[^"]*" name="([^"]*)".*?>(<option.*?)</select>', form):
        chosen = re.search(r'value="([^"]*)" selected', inside) or re.search(r'value="([^"]*)"', inside)
        assert chosen
        sent[name] = chosen[1]
    for name, inside in re.findall(r'<textarea[^>]* name="([^"]*)"[^>]*>\n(.*?)</textarea>', form, re.S):
        sent[name] = html.unescape(inside)
    return sent


def beside(text: str, key: str) -> str:
    """Return the error beside a field."""
    match = re.search(rf'id="{re.escape(key)}-error">([^<]*)<', text)
    return html.unescape(match[1]) if match else ""


def test_the_form_and_a_file_of_labctl_make_the_same_machine(operator: Client, box: Target) -> None:
    written = (box.access, box.tuning, box.group, box.vcpus, box.memory_mib)
    box.delete()
    answer = operator.post("/targets/new", METAL)
    assert answer.headers["Location"] == "/targets/box-1/"
    made = Target.objects.get(name="box-1")
    assert (made.access, made.tuning, made.group, made.vcpus, made.memory_mib) == written
    assert made.enabled
    assert made.remark == "rack 4,\nslot 2"


def test_a_guest_is_taken_in_whatever_hidden_fields_say(operator: Client) -> None:
    assert operator.post("/targets/new", METAL | GUEST | {"group": ""}).status_code == 302
    made = Target.objects.get(name="guest-2")
    assert (made.driver, made.access, made.vcpus, made.memory_mib) == ("libvirt", {}, 4, 2048)


def test_a_form_that_nobody_touched_changes_nothing(operator: Client, page: Page, box: Target) -> None:
    for name in ("box-1", "played", "guest-3", "bare"):
        if name == "played":
            add_target(by=None, wanted=TargetFields(name, "fake", access={"behaviour": {"lost": 1}}))
        elif name == "guest-3":
            add_target(by=None, wanted=TargetFields(name, enabled=False))
        elif name == "bare":
            power = {"kind": "ipmi", "address": "bmc", "user": "u", "password_file": "/p"}
            access = {"mac": "52:54:00:00:00:01", "power": power, "fragments": [], "console": {"kind": "sol"}}
            add_target(by=None, wanted=TargetFields(name, "metal", access=access))
        before = Target.objects.filter(name=name).values().get()
        sent = inputs(page(f"/targets/{name}/edit", operator))
        assert operator.post(f"/targets/{name}/edit", sent).status_code == 302, name
        assert Target.objects.filter(name=name).values().get() == before


def test_a_change_is_taken_over_and_a_machine_renamed(operator: Client, page: Page, box: Target) -> None:
    sent = inputs(page("/targets/box-1/edit", operator))
    changes = {
        "name": "box-2",
        "tuning.smt": "",
        "access.power.kind": "ipmi",
        "access.power.address": "bmc-9",
    }
    answer = operator.post("/targets/box-1/edit", sent | changes)
    assert answer.headers["Location"] == "/targets/box-2/"
    box.refresh_from_db()
    assert "smt" not in box.tuning
    assert box.access["power"] == {
        "kind": "ipmi",
        "address": "bmc-9",
        "user": "lab",
        "password_file": "/etc/kperflab/bmc-1",
    }


@pytest.mark.parametrize(
    ("typed", "key", "said"),
    [
        ({"name": "a b"}, "name", 'name: "a b" is not valid; letters, digits and . _ - are, 63 of them'),
        ({"name": "taken"}, "name", 'name: there is a target "taken" already'),
        ({"group": "taken"}, "group", 'group: "taken" is the name of a target'),
        ({"driver": "qemu"}, "driver", 'driver: "qemu" is not valid'),
        ({"vcpus": "many"}, "vcpus", "“many” is not a whole number"),
        ({"vcpus": "0"}, "vcpus", "vcpus: 0 is not valid; 1 to 1024 are"),
        ({"memory_mib": ""}, "memory_mib", "give a whole number"),
        ({"remark": "x" * 2001}, "remark", "remark: a text of at most 2,000 characters"),
        ({"remark": "a\0"}, "remark", "remark: a text of at most 2,000 characters, without NUL"),
        ({"access.mac": ""}, "access.mac", "access.mac is missing"),
        ({"access.mac": "x"}, "access.mac", "is not the address of a network card; write 52:54:00:12:34:56"),
        ({"access.fragments": "metall"}, "access.fragments", 'did you mean "metal"?'),
        (
            {"access.power.address": "bmc-1"},
            "access.power.address",
            "is not the address of a BMC; write https://host",
        ),
        (
            {"access.power.password_file": "secret"},
            "access.power.password_file",
            "is not the absolute path of a file",
        ),
        ({"access.power.verify": "maybe"}, "access.power.verify", "write true, false or the absolute path"),
        ({"access.power.kind": "apc"}, "access.power.kind", 'access.power.kind: "apc" is not valid'),
        (
            {"access.console.netconsole.to": "lab"},
            "access.console.netconsole.to",
            'access.console.to: "lab" is not an IPv4 address',
        ),
        ({"access.console.netconsole.port": "x"}, "access.console.netconsole.port", "access.console.port"),
        ({"access.console.netconsole.port": "70000"}, "access.console.netconsole.port", "65535"),
        ({"access.console.kind": "vga"}, "access.console.kind", 'access.console.kind: "vga" is not valid'),
        ({"tuning.governor": "PERF"}, "tuning.governor", "tuning.governor"),
        ({"tuning.isolcpus": "1-"}, "tuning.isolcpus", "is not a list of CPUs; write 1-3,5"),
        ({"tuning.turbo": "fast"}, "tuning.turbo", "tuning.turbo"),
        ({"driver": "fake", "access": "{"}, "access", "this is not JSON"),
        ({"driver": "fake", "access": "[1]"}, "access", "this is not a JSON object"),
        (
            {"driver": "fake", "access": '{"a": NaN}'},
            "access",
            "access: contains values that JSON cannot express",
        ),
    ],
)
def test_what_is_wrong_is_said_beside_its_field_in_the_words_of_rest(
    operator: Client, typed: dict[str, str], key: str, said: str
) -> None:
    add_target(by=None, wanted=TargetFields("taken"))
    answer = operator.post("/targets/new", METAL | typed)
    text = answer.content.decode()
    assert answer.status_code == 422
    assert said in beside(text, key)
    assert not Target.objects.exclude(name__in=("guest", "taken")).exists()
    assert inputs(text)["access.power.user"] == "lab", "what was typed is still there"


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ({"access.power.address": "http://bmc-1"}, "http:// sends the password in the clear"),
        (
            {"access.console.kind": "sol"},
            "its address, user and password_file are missing: power is not IPMI",
        ),
    ],
)
def test_what_is_wrong_with_several_fields_is_said_above_them(
    operator: Client, typed: dict[str, str], said: str
) -> None:
    text = html.unescape(operator.post("/targets/new", METAL | typed).content.decode())
    assert re.search(rf'<p class="error">[^<]*{re.escape(said)}', text)


def test_a_form_older_than_the_last_change_writes_nothing_and_says_so_in_a_line(
    operator: Client, page: Page, box: Target
) -> None:
    sent = inputs(page("/targets/box-1/edit", operator))
    Target.objects.update(group="other")
    answer = operator.post("/targets/box-1/edit", sent | {"vcpus": "2"}, follow=True)
    said = "box-1 was changed by somebody else in the meantime: reload it before changing it. Nothing was changed."
    assert said in answer.content.decode()
    assert inputs(answer.content.decode())["group"] == "other"
    box.refresh_from_db()
    assert (box.group, box.vcpus) == ("other", 64)
    assert operator.post("/targets/box-1/edit", METAL).status_code == 302, "nor one that says not what it saw"
    box.refresh_from_db()
    assert box.group == "other"


def test_only_operators_see_and_send_the_forms(
    client: Client, viewer: Client, submitter: Client, page: Page, box: Target
) -> None:
    for address in ("/targets/new", "/targets/box-1/edit"):
        assert client.get(address).headers["Location"].startswith("/sign-in/")
        for reader in (viewer, submitter):
            assert reader.get(address).status_code == 403
            assert reader.post(address, METAL | {"name": "other"}).status_code == 403
    assert not Target.objects.exclude(name__in=("guest", "box-1")).exists()
    assert "/edit" not in page("/targets/box-1/", submitter)


def test_a_form_from_elsewhere_is_refused(charlie: Any) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(charlie)
    assert client.post("/targets/new", GUEST).status_code == 403
    assert not Target.objects.filter(name="guest-2").exists()


def test_hostile_words_stay_words(operator: Client, page: Page, box: Target) -> None:
    Target.objects.update(access=BOX | {"power": BOX["power"] | {"user": SCRIPT, "address": f'"{SCRIPT}'}})
    text = page("/targets/box-1/edit", operator)
    assert SCRIPT not in text
    assert inputs(text)["access.power.user"] == SCRIPT
    shown = page("/targets/box-1/", operator)
    assert SCRIPT not in shown
    assert "rack 4" in shown
    assert "rack 4" not in page("/targets/box-1/")
    answer = operator.post("/targets/new", METAL | {"name": SCRIPT, "access.mac": SCRIPT})
    assert SCRIPT not in answer.content.decode()


def test_the_forms_are_found_from_the_labs_page_and_the_targets(
    operator: Client, page: Page, box: Target
) -> None:
    assert 'href="/targets/new"' in page("/lab/", operator)
    assert 'href="/targets/box-1/edit"' in page("/lab/", operator)
    assert 'href="/targets/box-1/edit"' in page("/targets/box-1/", operator)
    assert operator.get("/targets/none/edit").status_code == 404


def test_every_field_of_the_schema_has_an_input() -> None:
    keys = {field.key for group in GROUPS for field in group.fields}
    shapes: dict[str, type[BaseModel]] = {
        "access.power": machine.RedfishPower,
        "access.console.sol": machine.SolConsole,
        "access.console.netconsole": machine.NetConsole,
        "access": machine.Access,
        "tuning": Tuning,
    }
    for place, shape in shapes.items():
        for name in shape.model_fields:
            inside = any(key.startswith(f"{place}.{name}.") for key in keys)
            console_kind = name == "kind" and place.startswith("access.console")
            assert f"{place}.{name}" in keys or inside or console_kind, f"{place}.{name}"
    (driver,) = (field for group in GROUPS for field in group.fields if field.key == "driver")
    assert tuple(name for name, _ in driver.choices) == tuple(DRIVERS)
