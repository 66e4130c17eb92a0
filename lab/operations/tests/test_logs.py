# SPDX-License-Identifier: GPL-2.0-or-later
from __future__ import annotations

import json
import logging
import os
import threading
from pathlib import Path

import pytest
from django.conf import settings

from lab.operations.logs import FIELDS, LONGEST, NamesItsSubject, OneLine, OneObject, about, escaped, subjects
from lab.tests.fresh_python import run_python

FORGED = "guest\n2026-11-22T00:00:00.000Z INFO run=9: all is well\r\x1b[2Jgone\u202eback\u2028next"


def log_line(
    text: str, form: logging.Formatter | None = None, *, exc: BaseException | None = None, **extra: object
) -> str:
    """One line as a service would write it."""
    exc_info = (type(exc), exc, exc.__traceback__) if exc else None
    record = logging.getLogger("x").makeRecord(
        "workers.tasks", logging.WARNING, "f", 1, text, (), exc_info, extra=extra
    )
    NamesItsSubject().filter(record)
    return (form or OneLine()).format(record)


def test_a_line_says_what_it_is_about_and_the_inner_block_counts() -> None:
    with about(experiment=3, run=7), about(target="guest", run=8):
        line = log_line("booted")
    assert line.endswith("Z WARNING experiment=3 run=8 target=guest: booted")
    assert log_line("booted").endswith("Z WARNING: booted")
    with about(run=7):
        assert " run=9:" in log_line("booted", run=9), "what the call says counts more"


def test_an_object_a_line_holds_the_same_and_nothing_that_happened_to_be_on_the_record() -> None:
    with about(run=7, worker="host:1:1"):
        logged = json.loads(log_line("booted", OneObject(), password="hunter22hunter22"))
    assert set(logged) == {"time", "level", "logger", "text", "run", "worker"}
    assert (logged["run"], logged["logger"], logged["text"]) == (7, "workers.tasks", "booted")


@pytest.mark.parametrize("form", [OneLine(), OneObject()], ids=["text", "json"])
def test_nobody_writes_a_second_line_by_what_he_is_called(form: logging.Formatter) -> None:
    with about(target=FORGED):
        line = log_line(f"{FORGED} is quarantined", form)
    assert line.isprintable()
    assert len(line.splitlines()) == 1


def test_a_value_with_blanks_cannot_be_taken_for_the_next_field() -> None:
    with about(target="a run=5"):
        assert ' target="a run=5": x' in log_line("x")


def test_lines_that_an_error_quotes_stand_behind_a_bar() -> None:
    try:
        raise ValueError(FORGED)
    except ValueError as exc:
        lines = log_line("failed", exc=exc).splitlines()
        logged = json.loads(log_line("failed", OneObject(), exc=exc))
    assert len(lines) > 3
    assert all(line.startswith("  | ") for line in lines[1:])
    assert "ValueError: guest\n" in logged["traceback"]


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("postgres://lab:s3cr3t-x@db/lab refused", "postgres://***@db/lab refused"),
        ("redis://:hunter2@host:6379/0", "redis://***@host:6379/0"),
        ("Authorization: Token 0123456789abcdef0123456789abcdef", "Authorization: Token ***"),
        ("password=hunter2 user=lab", "password=*** user=lab"),
        ("{'password': 'hunter2'}", "{'password': ***"),
        ("a token is missing", "a token is missing"),
        ("https://example.org/a:b@c", "https://example.org/a:b@c"),
    ],
)
def test_credentials_are_blanked(text: str, kept: str) -> None:
    assert escaped(text) == kept


def test_the_installations_own_secrets_are_blanked_wherever_they_stand() -> None:
    assert escaped(f"x{settings.SECRET_KEY}y") == "x***y"


def test_a_long_text_ends_with_how_much_is_missing() -> None:
    assert escaped("a" * (LONGEST + 5)).endswith("a … 5 more characters")


def test_a_field_nobody_knows_is_a_fault_of_ours() -> None:
    with pytest.raises(TypeError, match="lines are about experiment, build"), about(colour="red"):
        pass


def test_a_thread_is_told_what_its_parent_worked_on() -> None:
    lines = []

    def work(context: dict[str, str | int]) -> None:
        lines.append(log_line("bare"))
        with about(**context):
            lines.append(log_line("told"))

    with about(build=4):
        thread = threading.Thread(target=work, args=(subjects(),))
        thread.start()
        thread.join()
    assert "build=4" not in lines[0]
    assert "build=4" in lines[1]


@pytest.mark.process
def test_a_service_logs_objects_when_asked_and_keeps_celery_and_django_in_the_same_form(
    tmp_path: Path,
) -> None:
    code = (
        "import logging, workers.app; from lab.operations.logs import set_up, about; set_up();"
        "log = logging.getLogger\n"
        "with about(run=1): log('workers').info('a'); log('django').warning('b'); log('gunicorn.error').info('c');"
        "log('celery.worker').info('too much'); log('celery').warning('d')"
    )
    environment = os.environ | {"KPERFLAB_HOME": str(tmp_path), "KPERFLAB_LOG": "json"}
    done = run_python(["-c", code], environment)
    records = [json.loads(line) for line in done.stderr.splitlines()]
    assert [(record["text"], record["run"]) for record in records] == [("a", 1), ("b", 1), ("c", 1), ("d", 1)]
    assert set(records[0]) <= {"time", "level", "logger", "text", *FIELDS}
