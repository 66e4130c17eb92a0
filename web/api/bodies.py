# SPDX-License-Identifier: GPL-2.0-or-later
"""JSON bodies, read strictly: values that the tables cannot hold are refused here, once, for every view."""

import json
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import IO, Any

from django.conf import settings
from django.core.exceptions import RequestDataTooBig
from rest_framework.exceptions import ParseError
from rest_framework.parsers import BaseParser

from web.api.problems import Fault, Problem, Refusal

# No valid body is nested deeper; reaching Python's own limit is a crash.
DEEPEST = 40
MOST_FAULTS, LONGEST_NAME = 20, 200
# A part of the body: the place of its container, and its name or number there; empty for the whole body.
Place = tuple[Any, ...]


class StrictJSON(BaseParser):
    """JSON by RFC 8259: UTF-8, no NaN, no number beyond a double, no NUL, no half of a surrogate pair."""

    media_type = "application/json"

    def parse(
        self,
        stream: IO[Any],
        media_type: str | None = None,
        parser_context: Mapping[str, Any] | None = None,
    ) -> Any:
        """Return the parsed body. Raises ParseError, Refusal, RequestDataTooBig."""
        limit = settings.DATA_UPLOAD_MAX_MEMORY_SIZE or 0
        data = stream.read(limit + 1)
        if len(data) > limit:
            raise RequestDataTooBig
        try:
            parsed = json.loads(data.decode(), parse_constant=_no_number, parse_float=_finite)
        except UnicodeDecodeError:
            raise ParseError("the body is not UTF-8") from None
        except RecursionError:
            raise ParseError("the body is nested too deeply") from None
        except ValueError as exc:
            raise ParseError(f"the body is not JSON: {str(exc)[:200]}") from None
        faults = tuple(islice(_unstorable(parsed, (), DEEPEST), MOST_FAULTS))
        if faults:
            raise Refusal(Problem(400, f"{faults[0].pointer}: {faults[0].detail}", "validation", faults))
        return parsed


def _no_number(name: str) -> float:
    raise ValueError(f"{name} is not a number in JSON")


def _finite(text: str) -> float:
    number = float(text)
    if number in {float("inf"), float("-inf")}:
        raise ValueError("a number is larger than a double can be")
    return number


def _unstorable(value: Any, at: Place, deeper: int) -> Iterator[Fault]:
    """Yield values that the tables cannot hold. A path is only built for a fault: names may be long."""
    if deeper < 0:
        yield Fault("the body is nested too deeply", pointer=_pointer(at))
    elif isinstance(value, str):
        yield from _bad_text(value, at)
    elif isinstance(value, dict):
        for key, part in value.items():
            yield from _bad_text(key, at)
            yield from _unstorable(part, (at, key), deeper - 1)
    elif isinstance(value, list):
        for index, part in enumerate(value):
            yield from _unstorable(part, (at, index), deeper - 1)


def _pointer(at: Place) -> str:
    parts = []
    while at:
        at, name = at
        parts.append(str(name)[:LONGEST_NAME].replace("~", "~0").replace("/", "~1"))
    return "".join(f"/{part}" for part in reversed(parts)).encode(errors="replace").decode()


def _bad_text(text: str, at: Place) -> Iterator[Fault]:
    if "\0" in text:
        yield Fault("a text holds a NUL character", pointer=_pointer(at))
    try:
        text.encode()
    except UnicodeEncodeError:
        yield Fault("a text holds half of a surrogate pair", pointer=_pointer(at))
