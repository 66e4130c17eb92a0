# SPDX-License-Identifier: GPL-2.0-or-later
from __future__ import annotations

from typing import Any

import pytest

from lab.experiments.switch_names import switch_name
from lab.submission.received_series import file_stem
from web.forms import (
    TypedCase,
    TypedForm,
    TypedSwitch,
    describe,
    read_form,
    read_params,
    sort_errors,
)


def typed(**fields: Any) -> TypedForm:
    defaults = {"name": "x", "tree": "debian-6.1", "cases": {"showgids": TypedCase(True, "small")}}
    return TypedForm(**(defaults | fields))


def test_what_was_typed_comes_back_as_typed() -> None:
    fields = {
        "name": " a name ", "tree": "debian-6.1", "boots": "many", "patch-3-name": "p", "patch-3-text": "a\r\nb\r\n",
        "preset-showgids": "small", "params-showgids": "threads = 2", "profile": "yes",
    }  # fmt: skip
    form = read_form(fields, {"case": ["showgids"], "catalog": ["vfs-iget-rcu"]})
    assert form.name == "a name"
    assert form.measure["boots"] == "many"
    assert form.patches == (TypedSwitch("p", "a\nb\n"),)
    assert form.cases == {"showgids": TypedCase(True, "small", "threads = 2")}
    assert form.catalog == ("vfs-iget-rcu",)
    assert form.measure["profile"] == "yes"
    assert form.measure["verify"] == "no"


@pytest.mark.parametrize(
    ("file", "name"),
    [
        ("0001-a.patch", "a"),
        ("../../etc/passwd", "passwd"),
        ("<script>.diff", "script"),
        (".patch", "patch"),
        ("ä.txt", "patch"),
    ],
)
def test_a_file_name_becomes_a_valid_switch_name(file: str, name: str) -> None:
    assert switch_name(file_stem(file)) == name


def test_a_form_becomes_the_description_labctl_would_send() -> None:
    made = describe(
        typed(
            catalog=("kernfs-iattr-rwsem",),
            patches=(TypedSwitch("mine", "diff", "", "kernfs-iattr-rwsem, other", "2"),),
            lines={"configs": (TypedSwitch("no-debug", "CONFIG_A=n\n\nCONFIG_B=y\n"),)},
            measure={"boots": "7"},
        )
    )
    assert made.errors == {}
    assert made.mapping["patches"] == [
        {"catalog": "kernfs-iattr-rwsem"},
        {
            "name": "mine",
            "requires": [],
            "excludes": ["kernfs-iattr-rwsem", "other"],
            "alternative": 2,
            "text": "diff",
        },
    ]
    assert made.mapping["configs"][0]["lines"] == ["CONFIG_A=n", "CONFIG_B=y"]
    assert made.mapping["cases"] == [{"workload": "showgids", "preset": "small", "params": {}}]
    assert made.mapping["measure"]["boots"] == 7


def test_a_git_address_wins_over_the_tree() -> None:
    mapping = describe(typed(git="/srv/linux.git")).mapping
    assert mapping["git"] == "/srv/linux.git"
    assert "tree" not in mapping


def test_only_a_priority_other_than_the_usual_is_described() -> None:
    assert describe(typed(priority="high")).mapping["priority"] == "high"
    assert "priority" not in describe(typed(priority="normal")).mapping


def test_a_form_without_a_case_says_so_beside_the_cases() -> None:
    assert describe(typed(cases={"showgids": TypedCase()})).errors == {"cases": "Tick at least one workload."}


@pytest.mark.parametrize("value", ["", "ten", "1.5", "٣", "9" * 30])
def test_what_is_no_whole_number_is_told_beside_its_field(value: str) -> None:
    assert "whole number" in describe(typed(measure={"boots": value})).errors["boots"]


def test_a_negative_number_is_called_that() -> None:
    assert "below 0" in describe(typed(measure={"boots": "-1"})).errors["boots"]


def test_parameters_are_read_as_toml_or_else_as_text() -> None:
    params, wrong = read_params("threads = 2\nblocks = [1, 4]; cache=cold\nload = true\n\nsize = 4Gi")
    assert wrong == ""
    assert params == {"threads": 2, "blocks": [1, 4], "cache": "cold", "load": True, "size": "4Gi"}
    quoted = {"glob": 'a;b = "c"; d', "threads": 2}
    assert read_params('glob = "a;b = \\"c\\"; d"; threads = 2') == (quoted, "")
    assert read_params('glob = "a; b') == ({"glob": '"a; b'}, "")


@pytest.mark.parametrize("text", ["threads", "= 3", "threads ="])
def test_a_parameter_without_name_or_value_is_told(text: str) -> None:
    assert "parameter = value" in read_params(text)[1]


def test_faults_go_to_the_field_they_lie_in() -> None:
    made = describe(typed(catalog=("c",), patches=(TypedSwitch("mine", ""), TypedSwitch("two", "x"))))
    lines = [
        'patches[1].text: "": too short',
        'switch "two" is damaged beyond repair on v6.1: hunk 3',
        "cases[0].params.threads: 0 is not valid",
        "measure.boots: 1: should be at least 2",
        "name is missing",
        'debian-6.1 has no revision "v9"',
        "something else: entirely",
    ]
    assert sort_errors(lines, made.fields) == {
        "patch-0-text": '"": too short',
        "patch-1-text": 'switch "two" is damaged beyond repair on v6.1: hunk 3',
        "case-showgids": "0 is not valid",
        "boots": "1: should be at least 2",
        "name": "This is missing.",
        "base": 'debian-6.1 has no revision "v9"',
        "form": "something else: entirely",
    }


def test_a_fault_in_a_catalogued_switch_goes_to_its_box() -> None:
    made = describe(typed(catalog=("a", "b")))
    assert sort_errors(["patches[1].catalog: there is no such"], made.fields) == {
        "catalog-b": "there is no such"
    }
