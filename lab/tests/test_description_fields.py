# SPDX-License-Identifier: GPL-2.0-or-later
"""Each field of a description is known wherever a description goes: here to exports and to what is stored."""

from __future__ import annotations

import tomllib

import pytest

from lab.comparisons.exports.reproducer import write_reproducer
from lab.comparisons.page import comparison_data
from lab.experiments.measure import MeasureSpec
from lab.experiments.spec import spec_from_mapping
from lab.experiments.stored_spec import description_as_toml
from lab.tests.descriptions import NOTED, REPRODUCED, SETS, URGENCY, schema_fields, specified, value_at
from lab.tests.factories import make_experiment, make_patch_switch

FIELDS = tuple(SETS)


def test_each_field_of_the_schema_has_a_description_that_sets_it() -> None:
    assert set(schema_fields()) == set(SETS)


@pytest.mark.parametrize("field", FIELDS)
def test_a_description_that_sets_a_field_differs_there_from_its_default(field: str) -> None:
    described = specified(field).model_dump(mode="json")
    plain = spec_from_mapping({"name": "plain", "tree": "debian-6.1", "cases": [{"workload": "showgids"}]})
    try:
        before = value_at(plain.model_dump(mode="json"), field)
    except IndexError:
        before = None
    assert value_at(described, field) not in (before, None, "", [], {})


@pytest.mark.parametrize("field", sorted(set(SETS) - NOTED))
def test_a_description_as_toml_keeps_the_field(field: str) -> None:
    spec = specified(field)
    text = description_as_toml(spec.model_dump(mode="json"))
    assert spec_from_mapping(tomllib.loads(text)) == spec


def test_a_description_as_toml_keeps_the_line_ends_of_a_patch() -> None:
    text = "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\r\n+b\r\n"
    read = tomllib.loads(description_as_toml({"patches": [{"name": "p", "text": text}]}))
    assert read["patches"][0]["text"] == text


# A reproducer names the tree and its base by what they were then, and says itself which experiment it repeats.
@pytest.mark.parametrize("field", sorted(set(SETS) - NOTED - URGENCY - REPRODUCED - {"tree", "git", "base"}))
def test_a_reproducer_keeps_the_field(field: str, db: None) -> None:
    spec = specified(field)
    stored = spec.model_dump(mode="json", exclude={"priority"})
    row = make_experiment(name=spec.name, spec=stored, base_tree_id="a" * 40)
    for patch in spec.patches:
        rules = {"requires": list(patch.requires), "excludes": list(patch.excludes)}
        make_patch_switch(row, patch.name, **rules, text=patch.text or "diff --git a/x b/x\n")
    again = spec_from_mapping(tomllib.loads(write_reproducer(row.pk)))
    if field in ("patches[].catalog", "patches[].range"):
        # It carries the patch itself: another lab may have neither.
        assert "diff --git a/x b/x" in str(again.patches[0].text)
    else:
        assert value_at(again.model_dump(), field) == value_at(spec.model_dump(), field)


@pytest.mark.parametrize("name", sorted(MeasureSpec.model_fields))
def test_a_comparison_as_data_says_how_was_measured(name: str, db: None) -> None:
    spec = specified(f"measure.{name}")
    measure = spec.measure
    row = make_experiment(
        spec=spec.model_dump(mode="json"),
        clock=measure.clock,
        profile=bool(measure.profile),
        **{key: getattr(measure, key) for key in ("iterations", "warmup", "verify", "seed")},
    )
    assert comparison_data(row.pk)["experiment"]["measure"][name] == getattr(measure, name)
