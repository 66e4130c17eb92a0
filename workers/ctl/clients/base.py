# SPDX-License-Identifier: GPL-2.0-or-later
"""Requests to a lab and parts of its answers, which are JSON values in the shapes of the REST API."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Json = dict[str, Any]
Say = Callable[[str], None]
Kind = Literal["trees", "targets", "workloads", "patches"]
Written = Literal["builds", "runs"]


@dataclass(frozen=True, slots=True)
class LogChunk:
    """A log from some byte on. end: where the next part starts; complete: nothing will follow."""

    text: str
    end: int
    complete: bool


@dataclass(frozen=True, slots=True)
class Asking:
    """One request. path: below the API's base, or a whole path of this server; again: may be sent twice.

    basic: a name and a password in place of the token.
    """

    method: str
    path: str
    params: Mapping[str, str | int] = field(default_factory=dict)
    json: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)
    again: bool = True
    basic: tuple[str, str] | None = None
