# SPDX-License-Identifier: GPL-2.0-or-later
"""Every command that reads takes `--format json` and prints one JSON document, the same with --local as over a server."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lab.models import Experiment, User
from web.api.tests.store import TREND, fill
from workers import labctl
from workers.tests.conftest import FakeLab
from workers.tests.restlab import described
from workers.tests.test_examples import leaves, resolved
from workers.tests.test_labctl import call
from workers.tests.test_over_rest import alice, lab  # noqa: F401  fixtures

# Commands that read, with arguments; {} stands for an experiment's number.
BOTH_WAYS = {
    "list": ("--state", "done", "-n", "1"),
    "show": ("{}",),
    "watch": ("{}",),
    "compare": ("{}",),
    "profile": ("{}",),
    "notes": ("{}",),
    "preview": ("other.toml",),
    "trees": (),
    "targets": (),
    "workloads": (),
    "patches": (),
}
AT_A_SERVER = {"whoami": ()}
HERE = {
    "config": (),
    "trend": ("--local",),
    "target list": (),
    "target show": ("guest",),
    "lab status": (),
}
READS = BOTH_WAYS | AT_A_SERVER | HERE
# They act, or print a document that has a form of its own: a mail, a log, a file, what b4 reads.
OTHERS = {
    *("submit", "rerun", "priority", "keep", "unkeep", "cancel", "run", "bisect", "work", "serve"),
    *("sign-in", "login", "logout", "b4-check", "reply", "log", "export report", "export profile"),
    *("target add", "target set", "target remove", "target enable", "target disable", "target release"),
    *("target check", "target power", "lab backup", "lab expire", "lab restore"),
    "lab withdraw-trust",
}


@pytest.fixture
def number(lab: FakeLab, alice: User, tmp_path: Path) -> str:  # noqa: F811  fixtures
    described(lab)
    people = {"alice": alice, "bob": alice, "charlie": alice, "dora": alice}
    return str(fill(people, tmp_path).pk)


@pytest.fixture
def printed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    """Return what a command prints on standard output, which must be JSON and nothing else."""

    def no_number(text: str) -> None:
        raise AssertionError(f"{text} is not JSON")

    def said(*argv: str) -> Any:
        capsys.readouterr()
        code = call(monkeypatch, *argv, "--format", "json")
        captured = capsys.readouterr()
        assert code in {0, 1, 2}, captured.err
        return json.loads(captured.out, parse_constant=no_number)

    return said


def test_every_command_reads_or_is_named_as_one_that_does_not() -> None:
    assert set(leaves()) == set(READS) | OTHERS
    assert not set(READS) & OTHERS


@pytest.mark.parametrize("path", [*READS, "export report", "export profile"])
def test_the_option_is_called_the_same_everywhere(path: str) -> None:
    _, command, _ = resolved([*path.split(), "--help"])
    options = {name for parameter in command.params for name in parameter.opts}
    assert "--format" in options
    assert not {"--json", "--form"} & options


@pytest.mark.parametrize("path", BOTH_WAYS)
def test_a_command_prints_the_servers_document_with_and_without_a_server(
    path: str, number: str, printed: Any
) -> None:
    argv = [path, *(word.format(number) for word in BOTH_WAYS[path])]
    here, there = printed(*argv, "--local"), printed(*argv)
    if path in {"compare", "watch"}:
        # Without a server the lab's address comes from --link.
        assert there.pop("permalink").endswith(here.pop("permalink"))
    if path == "show":
        assert there["id"] == int(number)
    assert here
    assert here == there


@pytest.mark.parametrize("path", [*AT_A_SERVER, *HERE])
def test_a_command_of_one_place_prints_json(path: str, number: str, printed: Any) -> None:
    assert printed(*path.split(), *READS[path])


def test_documents_are_the_apis_own(number: str, printed: Any, live_server: Any) -> None:
    import httpx

    base = f"{live_server.url}/api/v1/"
    shown = httpx.get(f"{base}experiments/{number}/").json()
    assert printed("show", number, "--local") == shown
    assert printed("list", "--local") == httpx.get(f"{base}experiments/?ordering=-id").json()["results"]
    assert printed("profile", number) == httpx.get(f"{base}experiments/{number}/profile/").json()
    assert printed("trend", TREND, "--local") == httpx.get(f"{base}trends/{TREND}/").json()
    whoami = printed("whoami")
    assert (whoami["username"], whoami["finish_mails"]) == ("alice", True)


@pytest.mark.parametrize("path", READS)
def test_a_form_that_is_not_there_is_refused_with_the_nearest(
    path: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    argv = [word.format(7) for word in READS[path]]
    assert call(monkeypatch, *path.split(), *argv, "--format", "jsn") == labctl.EXIT_USAGE
    assert 'there is no format "jsn"; did you mean "json"' in " ".join(capsys.readouterr().err.split())


def test_an_experiment_that_is_not_there_is_refused_in_json_too(
    db: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert not Experiment.objects.exists()
    for command in ("show", "compare", "profile"):
        assert call(monkeypatch, command, "12345", "--local", "--format", "json") == labctl.EXIT_USAGE
        captured = capsys.readouterr()
        assert (captured.out, "12345" in captured.err) == ("", True), command
