# SPDX-License-Identifier: GPL-2.0-or-later
"""Names and titles in which a character would drive a terminal, or turn the rest of a heading around."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from lab.errors import FieldRefused, SpecError
from lab.experiments.spec import spec_from_mapping
from lab.harmful_characters import harmful
from lab.models import Experiment, User
from lab.notes.changes import write_note
from lab.people.tokens import issue_token
from lab.tests.factories import make_experiment, make_user

pytestmark = [pytest.mark.hostile, pytest.mark.django_db]

HARMFUL = {
    "C1 CSI": "\x9b",
    "C1 OSC": "\x9d",
    "C1 NEL": "\x85",
    "DEL": "\x7f",
    "right-to-left override": "\u202e",
    "left-to-right isolate": "\u2066",
    "pop isolate": "\u2069",
    "Arabic letter mark": "\u061c",
    "zero width space": "\u200b",
    "zero width joiner": "\u200d",
    "byte order mark": "\ufeff",
    "line separator": "\u2028",
    "paragraph separator": "\u2029",
    "language tag": "\U000e0041",
    "private use": "\ue000",
    "unassigned": "\U000e0fff",
}
BASE: dict[str, Any] = {
    "name": "x", "tree": "tiny", "base": "v1", "cases": [{"workload": "showgids", "preset": "smoke"}],
}  # fmt: skip
PATCH = {"name": "one", "range": "v1..v2"}
# Where a stranger's line is accepted in a description.
FIELDS: dict[str, Callable[[str], dict[str, Any]]] = {
    "name": lambda bad: {"name": f"a{bad}b"},
    "tree": lambda bad: {"tree": f"a{bad}b"},
    "git": lambda bad: {"tree": None, "git": f"https://x.example/{bad}"},
    "base": lambda bad: {"base": f"v{bad}1"},
    "target": lambda bad: {"target": f"g{bad}"},
    "range": lambda bad: {"patches": [{**PATCH, "range": f"v1..v{bad}2"}]},
    "origin of a patch": lambda bad: {"patches": [{**PATCH, "origin": f"a{bad}.patch"}]},
    "a config line": lambda bad: {"configs": [{"name": "c", "lines": [f"CONFIG_X=y # {bad}"]}]},
    "a reproduced command": lambda bad: {"reproduces": {"experiment": 1, "command": f"labctl {bad}"}},
    "a reproduced release": lambda bad: {
        "reproduces": {
            "experiment": 1,
            "kernels": [{"variant": "base", "tree_id": "a", "release": f"6.1{bad}"}],
        }
    },
    "a reproduced variant": lambda bad: {
        "reproduces": {"experiment": 1, "kernels": [{"variant": f"base{bad}", "tree_id": "a"}]}
    },
}


@pytest.mark.parametrize("char", HARMFUL)
@pytest.mark.parametrize("field", FIELDS)
def test_no_line_of_a_description_holds_what_is_not_shown_as_it_is(field: str, char: str) -> None:
    bad = HARMFUL[char]
    with pytest.raises(SpecError) as caught:
        spec_from_mapping({**BASE, **FIELDS[field](bad)})
    text = f"{caught.value}\n{caught.value.detail}"
    assert bad not in text
    assert f"U+{ord(bad):04X}" in text or "not allowed there" in text


@pytest.mark.parametrize("char", HARMFUL)
def test_no_name_that_people_give_holds_it_either(char: str) -> None:
    bad, user = HARMFUL[char], make_user("alice")
    experiment = make_experiment()
    ways: list[Callable[[], object]] = [
        lambda: write_note(experiment=experiment, author=user, text=f"see{bad}!")
    ]
    # Line separators count as blanks in names, and become a single one.
    if not f"a{bad}b".split()[1:]:
        ways.append(lambda: issue_token(user=user, name=f"ci{bad}!", scopes=["read"]))
    for refused in ways:
        with pytest.raises(FieldRefused) as caught:
            refused()
        assert bad not in str(caught.value)


@pytest.mark.parametrize(
    "name", ["Größe der Tabelle", "ядро 6.1", "カーネル\u3000速度", "a\u00a0b", "naïve 🐧", "a < b & c"]
)
def test_names_of_all_scripts_are_fine(name: str) -> None:
    assert harmful(name) == ""
    assert spec_from_mapping({**BASE, "name": name}).name == name


def test_over_rest_the_refusal_names_the_field(client: Client) -> None:
    client.force_login(make_user("alice", User.Role.SUBMITTER))
    answer = client.post("/api/v1/experiments/", {**BASE, "name": "a\u202eb"}, "application/json")
    assert answer.status_code == 422
    assert "U+202E" in answer.content.decode()
    assert "\u202e" not in answer.content.decode()
    assert not Experiment.objects.exists()
