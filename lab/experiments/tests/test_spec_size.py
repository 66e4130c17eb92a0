# SPDX-License-Identifier: GPL-2.0-or-later
"""Descriptions that are cheap to send and dear to read."""

from __future__ import annotations

import time
import tomllib
from contextlib import suppress
from typing import Any

import pytest

from lab.errors import SpecError
from lab.experiments.spec import read_spec, spec_from_mapping, toml_mapping
from lab.experiments.spec_size import check_toml

pytestmark = pytest.mark.hostile
GOOD = {"name": "x", "tree": "debian-6.1", "cases": [{"workload": "showgids", "preset": "smoke"}]}
DEEP: Any = 0
for _ in range(30):
    DEEP = [DEEP]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a" + ".a" * 60_000 + " = 1", "a key has more than 8 parts (line 1)"),
        ('"a"' + '."b"' * 60_000 + " = 1", "a key has more than 8 parts (line 1)"),
        ("[" + "a." * 60_000 + "b]", "a key has more than 8 parts (line 1)"),
        ("x = {" + "a." * 60_000 + "b = 1}", "a key has more than 8 parts (line 1)"),
        ("\n\nx = " + "[" * 10_000, "brackets are nested more than 8 deep (line 3)"),
        ("x = " + "{a = " * 10_000, "brackets are nested more than 8 deep (line 1)"),
        ("x = " + "9" * 5_000, "a number has more than 40 digits (line 1)"),
        ("x = 0x" + "f" * 5_000, "does not fit into 64 bits"),
        ("".join(f"a{n} = 1\n" for n in range(60_000)), "without its texts it is larger than 512 KiB"),
        ("# " + "x" * (16 << 20), "it is larger than 16 MiB"),
        ('x = """' + "a." * 1000, "not valid TOML"),
        ("x = '''" + "[" * 1000, "not valid TOML"),
        ("x = 1e999", "larger than a double"),
        ("x = 99999999999999999999", "does not fit into 64 bits"),
        ("a = 1\n" * 3, "not valid TOML"),
        ("x = \x00", "not valid TOML"),
    ],
    ids=lambda value: value[:24] if isinstance(value, str) else None,
)
def test_a_file_that_would_be_dear_to_read_is_refused_before_it_is(text: str, said: str) -> None:
    with pytest.raises(SpecError) as caught:
        read_spec(text.encode(), None)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 500


@pytest.mark.parametrize("text", ["x = " + "[" * 8 + "]" * 8, ".".join("a" * 8) + " = 1"])
def test_a_file_at_a_limit_is_accepted(text: str) -> None:
    check_toml(text)
    assert tomllib.loads(text)


@pytest.mark.parametrize(
    "text",
    [
        'x = "a.b.c.d.e.f.g.h.i.j [[[[[[[[[["',
        "x = '''\n" + "a.b" * 1000 + "[" * 1000 + "\n'''",
        'x = """' + '\\"' * 1000 + '"""',
        "# a.b.c.d.e.f.g.h.i.j [[[[[[[[[[[[\nx = 1",
        'x = """a""b"""',
        "x = 1.5\ny = -2.25e3\nz = 1979-05-27T07:32:00.999",
        "x = '''it''s'''",
    ],
)
def test_what_texts_and_comments_hold_counts_nothing(text: str) -> None:
    assert "x" in toml_mapping(text.encode())


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (dict.fromkeys(map(str, range(200_000)), 0), "fields, at most 200 are allowed"),
        (
            {"patches": [{}] * 200_000},
            "a list of the description has 200,000 items, at most 1,000 are allowed",
        ),
        ({"cases": [{"params": {f"p{n}": 1 for n in range(150)}}] * 900}, "more than 30,000 values"),
        ({"measure": DEEP}, "nested more than 8 deep"),
        ({"k" * 100_000: 1}, "has a name of more than 200 characters"),
        ({"measure": {"seed": 10**400}}, "does not fit into 64 bits"),
        ({"measure": {"seed": float("inf")}}, "larger than a double can be"),
        ({"patches": [{"name": "p", "text": "x", "requires": ["q"] * 900}]}, "at most 32 entries"),
        ({"configs": [{"name": f"c{n}", "lines": ["CONFIG_A=y"]} for n in range(40)]}, "at most 16 entries"),
    ],
)
def test_a_description_of_too_much_is_refused_in_one_line(more: dict[str, Any], said: str) -> None:
    with pytest.raises(SpecError) as caught:
        spec_from_mapping(GOOD | more)
    assert said in str(caught.value)
    assert len(caught.value.detail.splitlines()) <= 50


@pytest.mark.parametrize(
    "make",
    [
        lambda n: "x = '''" + "a.[" * n + "'''",
        lambda n: 'x = """' + '\\"' * n + '"""',
        lambda n: 'x = "' + "a" * n,
        lambda n: "x = '''" + "'a" * n,
        lambda n: "#" * n,
        lambda n: "'" * n,
        lambda n: '"' * n,
        lambda n: "\\" * n,
    ],
)
def test_the_scan_is_linear_in_the_file(make: Any) -> None:
    def spent(size: int) -> float:
        text, began = make(size), time.process_time()
        with suppress(SpecError):
            check_toml(text)
        return time.process_time() - began

    least = min(spent(1 << 17) for _ in range(3))
    assert min(spent(1 << 19) for _ in range(3)) < max(0.05, 8 * least)
