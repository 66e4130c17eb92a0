# SPDX-License-Identifier: GPL-2.0-or-later
"""A patch with a subject needs no name, and a validator's own words are never shown."""

from __future__ import annotations

import re
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from lab.errors import SpecError
from lab.experiments.spec import ExperimentSpec, spec_from_mapping
from lab.experiments.switch_names import name_of_patch
from lab.targets import access_schema
from lab.validation_messages import PATTERNS

PYDANTICS = re.compile(r"should be|should have|Input|input |valid (string|integer|dict|tuple)|\(\^|unable to")
FIRST, SECOND = "fs: make x faster", "fs: make x faster still"


def git(work: Path, *arguments: str) -> bytes:
    command = ["git", "-c", "user.name=A", "-c", "user.email=a@example.org", "-C", str(work), *arguments]
    return subprocess.run(command, check=True, capture_output=True).stdout


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository of three commits."""
    work = tmp_path_factory.mktemp("work")
    git(work, "init", "--quiet")
    for subject, text in (("base", "a\n"), (f"{FIRST}\n\nIt was slow.", "b\n"), (SECOND, "b\nc\n")):
        (work / "x").write_text(text)
        git(work, "add", "x")
        git(work, "commit", "--quiet", "-m", subject)
    return work


def described(**fields: Any) -> dict[str, Any]:
    return {"tree": "debian-6.1", "cases": [{"workload": "showgids", "preset": "smoke"}], **fields}


@pytest.mark.parametrize("crlf", [False, True])
@pytest.mark.parametrize(
    ("command", "name", "title"),
    [
        (("format-patch", "--stdout", "-1"), "fs-make-x-faster-still", SECOND),
        (("format-patch", "--stdout", "-2"), "fs-make-x-faster", FIRST),
        (("format-patch", "--stdout", "-2", "--cover-letter"), "fs-make-x-faster", FIRST),
        (("format-patch", "--stdout", "-2", "-v3", "--subject-prefix=PATCH RFC net-next"), "fs-make-x-faster", FIRST),
        (("log", "-p", "-1", "--pretty=mboxrd"), "fs-make-x-faster-still", SECOND),
        (("show", "HEAD~1"), "fs-make-x-faster", FIRST),
        (("show", "--format=email", "HEAD~1"), "fs-make-x-faster", FIRST),
        (("show", "--format=fuller", "--stat", "--patch", "HEAD~1"), "fs-make-x-faster", FIRST),
        (("log", "-p", "-1"), "fs-make-x-faster-still", SECOND),
        (("diff", "HEAD~1"), "changes-x", "changes x"),
    ],
)  # fmt: skip
@pytest.mark.process
def test_what_git_prints_is_a_patch_that_names_itself(
    work: Path, command: tuple[str, ...], name: str, title: str, *, crlf: bool
) -> None:
    text = git(work, *command).decode()
    if crlf:
        text = text.replace("\n", "\r\n")
    spec = spec_from_mapping(described(patches=[{"text": text}]))
    assert (spec.patches[0].name, spec.name) == (name, title)
    assert name_of_patch(text) == name


@pytest.mark.process
def test_two_patches_of_one_subject_have_two_names(work: Path) -> None:
    text = git(work, "format-patch", "--stdout", "-1").decode()
    spec = spec_from_mapping(
        described(patches=[{"text": text}, {"text": text}, {"name": "mine", "text": text}])
    )
    assert [patch.name for patch in spec.patches] == [
        "fs-make-x-faster-still",
        "fs-make-x-faster-still-2",
        "mine",
    ]
    assert spec.name == "fs-make-x-faster-still + fs-make-x-faster-still-2 + mine"


@pytest.mark.parametrize(
    ("switches", "names"),
    [
        ({"patches": [{"range": "v6.1..me/topic-x"}]}, ["me-topic-x"]),
        ({"patches": [{"catalog": "vfs-iget-rcu"}]}, ["vfs-iget-rcu"]),
        ({"patches": [{"text": "no diff"}]}, ["patch"]),
        ({"patches": [{"text": "no diff", "origin": "v2-0003-slab-shrink.patch"}]}, ["slab-shrink"]),
        ({"configs": [{"lines": ["CONFIG_DEBUG_LIST=y"]}]}, ["debug-list"]),
        (
            {"configs": [{"lines": ["# CONFIG_SMP is not set"]}, {"lines": ["CONFIG_SMP=n"]}]},
            ["no-smp", "no-smp-2"],
        ),
    ],
)
def test_a_switch_without_a_subject_has_a_name_too(switches: dict[str, Any], names: list[str]) -> None:
    spec = spec_from_mapping(described(**switches))
    assert [switch.name for switch in spec.switches] == names


def test_an_experiment_without_switches_is_named_after_what_it_measures() -> None:
    assert spec_from_mapping(described(base="v6.1")).name == "showgids on v6.1"


@pytest.mark.hostile
@pytest.mark.parametrize(
    "subject", ["\u202egnp.exe", "a\x1b[31mb", "=?utf-8?B?4oCu?=", "x" * 5000, "../../etc", "base", "a+b"]
)
def test_a_hostile_subject_makes_a_harmless_name(subject: str) -> None:
    text = (
        f"From: A <a@example.org>\nSubject: [PATCH] {subject}\n\n---\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n"
    )
    spec = spec_from_mapping(described(patches=[{"text": text}]))
    assert re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,59}", spec.patches[0].name)
    assert spec.name.isprintable()
    assert len(spec.name) <= 200


def test_all_that_is_wrong_is_said_at_once() -> None:
    wrong = described(
        design="ful",
        base="-x y",
        cases=[{"workload": "showgid"}, {"workload": "showgids", "preset": "smok"}],
        patches=[{"name": "a b", "text": "x"}, {"name": "p", "catalog": "vfs-iget-rc", "requires": ["ab"]}],
        measure={"boots": 1, "profile_boots": 51},
    )  # fmt: skip
    with pytest.raises(SpecError) as caught:
        spec_from_mapping(wrong)
    assert caught.value.detail.splitlines() == [
        'base: "-x y" has characters that are not allowed there; write a revision without blanks, which does not begin with a dash',
        'design: "ful" is not valid; did you mean "full"? valid: full, one-at-a-time, leave-one-out, cumulative',
        'patches[0].name: "a b" has characters that are not allowed there; use letters, digits, dots, dashes and '
        'underscores, and begin with a letter or digit; did you mean "a-b"?',
        'measure.boots: 1 is neither a number from 2 to 500 nor "auto"',
        "measure.profile_boots: must be at most 50, not 51",
        'cases[0].workload: there is no workload "showgid"; did you mean "showgids"? valid: bh-lookup, cyclictest-bh, showgids, stat-walk',
        'cases[1]: no preset of showgids is called "smok", did you mean "smoke"? valid: smoke, small, large, seed',
        'patches[1].catalog: there is no switch "vfs-iget-rc"; did you mean "vfs-iget-rcu"? valid: buffer-no-bh-lru, '
        "kernfs-iattr-hashed-rwsem, kernfs-iattr-rwsem, vfs-iget-rcu",
        'patches[1].requires: there is no switch "ab"; did you mean "a-b"? valid: a-b',
    ]


def test_a_partner_that_is_named_as_its_own_refusal_proposes_is_no_fault() -> None:
    patches = [{"name": "a b", "text": "x"}, {"name": "p", "text": "x", "requires": ["a-b"]}]
    with pytest.raises(SpecError) as caught:
        spec_from_mapping(described(patches=patches))
    assert [line.partition(":")[0] for line in caught.value.detail.splitlines()] == ["patches[0].name"]


WRONG: list[Any] = [
    None,
    5,
    -1,
    10**30,
    1.5,
    True,
    "",
    "x" * 10_000,
    "a\nb",
    "\0",
    [],
    [5],
    {},
    {"a": 1},
    [{"name": 5}],
    [[]],
]


@cache
def fields_of(model: str) -> list[str]:
    return list(ExperimentSpec.model_json_schema()["$defs"][model]["properties"])


@pytest.mark.hostile
@pytest.mark.parametrize("wrong", WRONG, ids=lambda value: repr(value)[:20])
@pytest.mark.parametrize("field", list(ExperimentSpec.model_fields))
def test_no_fault_is_worded_by_the_validator(field: str, wrong: Any) -> None:
    parts: dict[str, dict[str, Any]] = {
        "patches": {"name": "p", "text": "x"},
        "configs": {"name": "c", "lines": ["CONFIG_A=y"]},
        "cases": {"workload": "showgids"},
    }
    tries: list[Any] = [wrong]
    if field in parts:
        model = {"patches": "PatchSpec", "configs": "ConfigSpec", "cases": "CaseSpec"}[field]
        tries += [[{**parts[field], name: wrong}] for name in fields_of(model)]
    if field in ("measure", "reproduces"):
        model = {"measure": "MeasureSpec", "reproduces": "Reproduces"}[field]
        tries += [{"experiment": 1, name: wrong} if field == "reproduces" else {name: wrong}
                  for name in fields_of(model)]  # fmt: skip
    for value in tries:
        try:
            spec_from_mapping(described(**{field: value}))
        except SpecError as exc:
            for line in (exc.detail or str(exc)).splitlines():
                assert not PYDANTICS.search(line), line
                assert len(line) < 700


def _patterns(schema: Any) -> set[str]:
    if isinstance(schema, list):
        return {pattern for part in schema for pattern in _patterns(part)}
    if not isinstance(schema, dict):
        return set()
    own = {schema["pattern"]} if isinstance(schema.get("pattern"), str) else set()
    return own | {pattern for part in schema.values() for pattern in _patterns(part)}


def test_every_pattern_of_our_models_is_explained_in_words() -> None:
    models: list[type[BaseModel]] = [ExperimentSpec]
    models += [
        var for var in vars(access_schema).values() if isinstance(var, type) and issubclass(var, BaseModel)
    ]
    models.remove(BaseModel)
    used = {pattern for model in models for pattern in _patterns(model.model_json_schema())}
    assert used <= set(PATTERNS)
