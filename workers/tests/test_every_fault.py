# SPDX-License-Identifier: GPL-2.0-or-later
"""Everything that is wrong with a description is reported at once and with its place, whichever way it comes."""

from __future__ import annotations

import html
import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import tomli_w
from django.conf import settings
from django.core.cache import cache
from django.test import Client

from kernels.trees.tree import import_archive
from lab.errors import SpecError, SubmissionRejected
from lab.models import Experiment, Fetch, Target, Tree, User
from lab.people.tokens import issue_token
from lab.submission.part_checks import every_fault
from lab.tests.factories import make_user
from lab.tests.tiny_tree import diff, make_tiny_tree
from workers import labctl

pytestmark = [pytest.mark.process, pytest.mark.django_db(transaction=True)]

# What no field takes, or few do.
QUICK: tuple[Any, ...] = ({}, "\ud800")
MORE: tuple[Any, ...] = ([], [[]], [{}], 0, -1, None, "", "\x00", {"": {}}, [None])
# A mistake of every stage: the form of a field, the catalogues, the lab's own rows, a text, and a patch that does not apply.
DESCRIPTION: dict[str, Any] = {
    "name": "x" * 201,
    "tree": "tiny",
    "target": "gest",
    "desing": "full",
    "patches": [
        {"name": "my patch", "text": diff("fs/absent.c", 20, "changed")},
        {"name": "second", "text": "no patch at all", "requires": ["my-patsh"]},
    ],
    "cases": [{"workload": "showgids", "params": {"treads": 2}}],
    "measure": {"boots": "many", "iterations": 0},
}
FAULTS = {
    "name": "enter at most 200 characters, not 201",
    "target": 'there is no target "gest"; did you mean "guest"?',
    "the description": 'unknown field "desing"; did you mean "design"?',
    "patches[0].name": 'did you mean "my-patch"?',
    "patches[0].text": "absent.c",
    "patches[1].text": "there is no diff in it",
    "patches[1].requires": 'there is no switch "my-patsh"; did you mean',
    "cases[0]": 'did you mean "threads"?',
    "measure.boots": "many",
    "measure.iterations": "must be at least 1, not 0",
}


@pytest.fixture
def alice(tmp_path: Path) -> User:
    """A submitter of a lab with one tree, which is imported, and one target."""
    cache.clear()
    source = make_tiny_tree(tmp_path / "linux-source-6.1")
    archive = tmp_path / "linux-source-6.1.tar.xz"
    subprocess.run(
        ["tar", "-C", str(tmp_path), "--exclude=.git", "-cJf", str(archive), source.name], check=True
    )
    import_archive("tiny", archive, settings.HOME / "trees")
    Target.objects.get_or_create(name="guest")
    Tree.objects.create(name="tiny", kind="archive", location=str(archive), default_revision="v6.1.0")
    return make_user("alice", User.Role.SUBMITTER)


def check(lines: list[str]) -> None:
    """Each fault is a line of its own that is led by its place, and there is no other."""
    for place, words in FAULTS.items():
        assert any(line.startswith(place) and words in line for line in lines), "\n".join([place, *lines])
    assert len(lines) == len(FAULTS), lines
    assert Experiment.objects.count() == Fetch.objects.count() == 0


@pytest.mark.parametrize("preview", [False, True])
def test_the_pasted_description(alice: User, preview: bool) -> None:
    client = Client()
    client.force_login(alice)
    answer = client.post(
        "/experiments/new", {"toml": tomli_w.dumps(DESCRIPTION), **({"preview": "1"} if preview else {})}
    )
    match = re.search(r'<span class="error" id="toml-error">(.*?)</span>', answer.content.decode(), re.S)
    assert match
    check(html.unescape(match[1]).splitlines())


@pytest.mark.parametrize("path", ["experiments/", "experiments/preview/"])
def test_rest(alice: User, path: str) -> None:
    answer = posted(alice, path, DESCRIPTION)
    assert answer.status_code == 422
    errors: list[dict[str, Any]] = answer.json()["errors"]
    pointers = {
        "" if place == "the description" else "/" + re.sub(r"[.\[\]]+", "/", place).strip("/")
        for place in FAULTS
    }
    assert {error["pointer"] for error in errors} == pointers
    for words in FAULTS.values():
        assert any(words in error["detail"] for error in errors), words
    assert len(errors) == len(FAULTS)


@pytest.mark.parametrize("command", ["submit", "preview"])
def test_labctl_on_the_labs_machine(
    alice: User,
    command: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = tmp_path / "wrong.toml"
    path.write_text(tomli_w.dumps(DESCRIPTION))
    monkeypatch.setattr("sys.argv", ["labctl", command, str(path), "--local"])
    with pytest.raises(SystemExit) as ended:
        labctl.main()
    assert ended.value.code == labctl.EXIT_USAGE
    said = [line for line in capsys.readouterr().err.splitlines() if line.startswith("labctl: ")]
    check([line.removeprefix("labctl: ") for line in said])


def test_what_is_plainly_wrong_is_said_before_a_worker_is_asked_for_the_tree(alice: User) -> None:
    Tree.objects.filter(name="tiny").update(kind="git", location="https://git.example/linux.git")
    cases = [{"workload": "showgids", "preset": "smoke"}]
    wanted: dict[str, Any] = {"name": "x", "tree": "tiny", "target": "gest", "cases": cases}
    wanted["patches"] = [{"name": "second", "text": "no patch at all"}]
    answer = posted(alice, "experiments/", wanted)
    assert [error["pointer"] for error in answer.json()["errors"]] == ["/target", "/patches/0/text"]
    assert Fetch.objects.count() == 0


@pytest.mark.hostile
@pytest.mark.parametrize(
    "value", [*QUICK, *(pytest.param(value, marks=pytest.mark.thorough) for value in MORE)], ids=repr
)
def test_no_type_of_a_field_breaks_the_check_of_the_others(alice: User, value: Any) -> None:
    right: dict[str, Any] = {
        "name": "x",
        "tree": "tiny",
        "patches": [{"name": "mine", "text": diff("fs/inode.c", 20, "changed")}],
        "configs": [{"name": "debug", "lines": ["CONFIG_DEBUG_LIST=y"]}],
        "cases": [{"workload": "showgids"}],
        "measure": {"clock": "wall"},
    }
    for field in (*right, "git", "base", "target", "design"):
        _tried(right | {field: value})
    for field in ("patches", "configs", "cases"):
        for inner in (*right[field][0], "requires", "excludes", "text", "catalog", "range", "file", "params"):
            _tried(right | {field: [right[field][0] | {inner: value}]})
    _tried(right | {"measure": {"clock": value}})


def _tried(description: dict[str, Any]) -> None:
    """Refuse the description's name: the refusal is reported, whatever the checks of the other fields find."""
    with pytest.raises(SubmissionRejected) as caught, every_fault(description):
        raise SpecError("name: not this one")
    assert "name: not this one" in caught.value.lines()


def posted(by: User, path: str, description: dict[str, Any]) -> Any:
    _, token = issue_token(user=by, name="t", scopes=["read", "submit"])
    return Client().post(
        f"/api/v1/{path}",
        data=json.dumps(description),
        content_type="application/json",
        headers={"Authorization": f"Token {token}"},
    )
