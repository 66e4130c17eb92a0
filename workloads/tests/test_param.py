# SPDX-License-Identifier: GPL-2.0-or-later
from __future__ import annotations

import pytest

from workloads.errors import BadParam
from workloads.param import Param, ParamType, ParamValue, label, written


def param(kind: ParamType) -> Param:
    return Param("p", kind, 1, "", minimum=1, maximum=1 << 40, choices=("on", "off"))


@pytest.mark.parametrize(
    ("kind", "given", "read"),
    [
        ("int", 7, 7),
        ("int", "7", 7),
        ("int", "4Gi", 4 << 30),
        ("int", " 2 Ki ", 2048),
        ("bool", True, True),
        ("bool", "off", False),
        ("int-list", [1, "4Gi"], (1, 4 << 30)),
        ("int-list", "1,2", (1, 2)),
        ("int-list", (3,), (3,)),
        ("choice", "on", "on"),
        ("str", "/sys/*", "/sys/*"),
    ],
)
def test_values_are_read_as_files_forms_and_databases_give_them(
    kind: ParamType, given: object, read: ParamValue
) -> None:
    assert param(kind).read(given) == read


@pytest.mark.parametrize(
    ("kind", "given"),
    [
        ("int", True),
        ("int", 0),
        ("int", 1 << 41),
        ("int", "1.5"),
        ("int", "-1"),
        ("int", None),
        ("int", "9" * 5000),
        ("bool", 1),
        ("bool", "maybe"),
        ("int-list", []),
        ("int-list", [1, 1]),
        ("int-list", list(range(1, 18))),
        ("int-list", 5),
        ("choice", "maybe"),
        ("str", "a\nb"),
        ("str", "\0"),
        ("str", 'say "x"'),
        ("str", "x" * 201),
    ],
)
def test_what_does_not_fit_is_refused(kind: ParamType, given: object) -> None:
    with pytest.raises(BadParam, match=r"p = .* is not valid: "):
        param(kind).read(given)


def test_values_are_written_as_programs_take_them() -> None:
    assert [written(value) for value in (True, False, 3, (1, 2), "cold")] == ["1", "0", "3", "1,2", "cold"]


def test_a_number_in_a_metrics_name_is_short() -> None:
    assert [label(number) for number in (0, 1, 1 << 30, 4 << 30, (4 << 30) + 1)] == [
        "0", "1", "1g", "4g", "4294967297",
    ]  # fmt: skip
