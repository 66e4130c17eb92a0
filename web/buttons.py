# SPDX-License-Identifier: GPL-2.0-or-later
"""Read which of a form's buttons was pressed."""

from collections.abc import Sequence

from django.core.exceptions import BadRequest
from django.http import HttpRequest


def pressed(request: HttpRequest, name: str, values: Sequence[str]) -> str:
    """Return the value of the pressed button. Raises BadRequest for a value that no button of this name has."""
    value = request.POST.get(name, "")
    if value not in values:
        raise BadRequest(f"{name} must be one of {', '.join(values)}")
    return value
