# SPDX-License-Identifier: GPL-2.0-or-later
"""Put everything that is wrong with a submission beside the fields of the form. Pure."""

from collections.abc import Iterator

from lab.errors import FieldRefused, LabError, SubmissionRejected
from lab.experiments.switch_names import SWITCH_FIELDS, with_names
from web.forms import Description, sort_errors


def form_faults(error: LabError, description: Description) -> dict[str, str]:
    """Return the faults of an error by the ids of the form's fields; "form" for what has no field."""
    if isinstance(error, FieldRefused):
        return {error.field: str(error)}
    fields = description.fields | _named_switches(description)
    faults: dict[str, str] = {}
    for line, place in _refusals(error):
        field = fields.get(place)
        line_faults = {field: line.removeprefix(f"{place}: ")} if field else sort_errors([line], fields)
        faults = {**line_faults, **faults}
    return faults


def fault_lines(error: LabError) -> list[str]:
    """Return the faults of an error for a description that has one field for all of it."""
    return error.lines() if isinstance(error, SubmissionRejected) else [str(error)]


def _refusals(error: LabError) -> Iterator[tuple[str, str]]:
    """Yield each line of an error with the field of the description that it is about, "" for none."""
    if not isinstance(error, SubmissionRejected):
        yield str(error), ""
        return
    for refusal in (error, *error.others):
        yield str(refusal), refusal.place


def _named_switches(description: Description) -> dict[str, str]:
    """Return where a message about `switch "name"` belongs, also for names taken from the patches' subjects."""
    named = with_names(description.mapping)
    return {
        f'switch "{switch["name"]}"': description.fields[place]
        for kind in SWITCH_FIELDS
        for number, switch in enumerate(named[kind])
        if (place := f"{kind}[{number}]") in description.fields
    }
