# SPDX-License-Identifier: GPL-2.0-or-later
"""Every address of the lab, read off the URL configuration, and one example of each."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from django.urls import URLPattern, URLResolver, get_resolver

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
_PARAMETER = re.compile(r"<(?:\w+:)?(\w+)>|\(\?P<(\w+)>[^)]*\)")


@dataclass(frozen=True, slots=True)
class Route:
    """One pattern of the URL configuration: its name, and the pattern as it is written there."""

    name: str
    pattern: str

    def example(self, values: Mapping[str, object]) -> str:
        """Return an address of this route. values: by parameter, or by `<route>.<parameter>`, which goes first."""

        def fill(match: re.Match[str]) -> str:
            parameter = match[1] or match[2]
            return str(values.get(f"{self.name}.{parameter}", values[parameter]))

        plain = self.pattern.removeprefix("^").removesuffix("$").removesuffix("/?")
        return "/" + _PARAMETER.sub(fill, plain).replace("^.*", "nowhere")


def routes() -> tuple[Route, ...]:
    """Return all routes, by name."""
    return tuple(sorted(set(_walk(get_resolver().url_patterns, "")), key=lambda route: route.name))


def _walk(patterns: list[URLPattern | URLResolver], before: str) -> Iterator[Route]:
    for entry in patterns:
        pattern = before + str(entry.pattern).removeprefix("^" if before else "")
        if isinstance(entry, URLResolver):
            yield from _walk(entry.url_patterns, pattern)
        else:
            yield Route(entry.name or f"unnamed {pattern}", pattern)
