# SPDX-License-Identifier: GPL-2.0-or-later
"""A kernel that is moved to another base is trusted as that base is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lab.models import Build, Experiment, Variant
from lab.models.states import BuildState, Role
from lab.submission.build_rows import build_over
from lab.tests.factories import make_grid

pytestmark = pytest.mark.django_db

TODAY = {"withdrawal": "ab" * 8}


def asked(base: str, **more: Any) -> dict[str, Any]:
    """Return the request of a build over a base."""
    return {
        "tree": "t",
        "base_name": base,
        "base_commit": base,
        "base_tree_id": base,
        "base_fragments": [],
        "fragments": [],
        "cc": "gcc",
        **more,
    }


def base_of(experiment: Experiment, **fields: Any) -> Build:
    """Give the base of an experiment a build of its own."""
    variant = Variant.objects.get(experiment=experiment, role=Role.BASE)
    variant.build = Build.objects.create(
        inputs=fields["request"]["base_name"] * 64, tree_id="1" * 40, commit="2" * 40, **fields
    )
    variant.save()
    return variant.build


@pytest.mark.parametrize(
    ("ground", "own", "trusted"),
    [
        ({"vouched": True}, {"vouched": False}, True),
        ({"vouched": False}, {"vouched": True}, False),
        ({}, {"vouched": True}, False),
        ({"vouched": True}, {"vouched": True, **TODAY}, False),
        ({"vouched": True, **TODAY}, {"vouched": True, **TODAY}, True),
    ],
)
def test_the_word_for_the_new_base_counts_and_none_from_before_a_withdrawal(
    settings: Any, tmp_path: Path, ground: dict[str, Any], own: dict[str, Any], trusted: bool
) -> None:
    settings.HOME = tmp_path
    first, second = make_grid(), make_grid()
    base_of(first, request=asked("a", **ground), state=BuildState.BUILT, artifact_key="a" * 64)
    waiting = base_of(second, request=asked("b", **own), state=BuildState.QUEUED)
    build_over(first.pk, [second.pk])
    moved = Variant.objects.get(experiment=second, role=Role.BASE).build
    assert moved is not None
    assert moved.pk != waiting.pk
    assert (moved.request["base_name"], moved.request["vouched"]) == ("a", trusted)
