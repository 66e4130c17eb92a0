# SPDX-License-Identifier: GPL-2.0-or-later
"""Rows as an older version of the code would have written them: `python -m lab.tests.oldrows 0033_build_steps`.

Every table of that version gets some, through the models as they were then.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import django
from django.core.management import call_command
from django.db import connection, models
from django.db.migrations.executor import MigrationExecutor

NUMBER = 3
LONG_AGO = datetime(2026, 1, 1, tzinfo=UTC)
# Values that have to mean something.
GIVEN: dict[tuple[str, str], Any] = {
    ("Build", "request"): {"cc": "gcc-12", "config_base": "tiny", "fragments": [], "modules_of": []},
    ("Build", "log"): "objects/logs/{number}.log",
    ("Run", "directory"): "runs/{number}-1",
    ("Run", "console"): "runs/{number}-1/console.log",
    ("Run", "state"): "done",
    ("Case", "metrics"): [
        {"name": "metric", "unit": "ns", "better": "lower", "margin": 0.01, "primary": True}
    ],
    ("Sample", "metric"): "metric",
    ("BasePoint", "metric"): "metric",
    ("Note", "experiment"): 1,
}


def tables(apps: Any) -> Iterator[type[models.Model]]:
    """The lab's models, each after those that it must name."""
    left = list(apps.get_app_config("lab").get_models())
    made: set[type[models.Model]] = set(apps.get_models()) - set(left)
    while left:
        for model in left:
            needs = {field.related_model for field in _links(model) if not field.null} - {model}
            if needs <= made:
                break
        left.remove(model)
        made.add(model)
        yield model


def _links(model: type[models.Model]) -> list[Any]:
    return [field for field in model._meta.concrete_fields if field.is_relation]


def row(model: type[models.Model], number: int) -> models.Model:
    """One row, different from its fellows in every column that need not be equal."""
    values = {
        field.attname: _value(model.__name__, field, number)
        for field in model._meta.concrete_fields
        if not isinstance(field, models.AutoField)
        and (not field.null or (model.__name__, field.name) in GIVEN)
    }
    return model(**values)


def _value(model: str, field: Any, number: int) -> Any:
    fixed = GIVEN.get((model, field.name))
    if field.is_relation:
        return number
    if isinstance(fixed, str):
        return fixed.format(number=number)
    if fixed is not None:
        return fixed
    if isinstance(field, models.JSONField):
        return field.get_default() if field.has_default() else {"of": number}
    if isinstance(field, models.DateTimeField):
        return LONG_AGO + timedelta(days=number)
    if isinstance(field, models.BooleanField):
        return bool(number % 2)
    if isinstance(field, models.BinaryField):
        return bytes([number, 0, 92, 10, 9, 255])
    if isinstance(field, models.CharField | models.TextField):
        text = field.choices[0][0] if field.choices else f"{field.name} {number}\t\\N"
        return text[: field.max_length]
    return number


def main(name: str) -> None:
    """Make the tables of a version and fill them."""
    for app in ("contenttypes", "auth", "sessions"):
        call_command("migrate", app, verbosity=0)
    call_command("migrate", "lab", name, verbosity=0)
    apps = MigrationExecutor(connection).loader.project_state([("lab", name)]).apps
    for model in tables(apps):
        there = model._default_manager.count()
        for number in range(there + 1, NUMBER + 1):
            row(model, number).save(force_insert=True)
        assert model._default_manager.count() == NUMBER, model


if __name__ == "__main__":
    django.setup()
    main(sys.argv[1])
