# SPDX-License-Identifier: GPL-2.0-or-later
"""Write profiles of an experiment's variants, and their differences, in other tools' formats."""

from collections.abc import Sequence

from lab.errors import UnknownRow
from lab.profiles.case_profiles import kind_named
from lab.profiles.difference import WHOLE, SeenFrom, caller_text, difference, variant_tree
from lab.profiles.exports.data import profiled_case, profiled_cases
from lab.profiles.exports.formats import DIFFERENCE_FORMS, TREE_FORMS
from lab.profiles.exports.stacks import NoSuchForm


def profile_file(
    experiment_id: int,
    form: str,
    *,
    case: int = 0,
    variant: str = "",
    base: str = "",
    kind: str = "",
    seen: SeenFrom = WHOLE,
) -> bytes:
    """All boots of a variant, or with `base` how they differ from that one's.

    case: its number, from 1; 0 is the first that is profiled. seen: from which symbol. Raises UnknownRow,
    ExportTooLarge.
    """
    kind = kind_named(kind)
    case_id = profiled_case(experiment_id, case, kind)
    forms = DIFFERENCE_FORMS if base else TREE_FORMS
    if form not in forms:
        raise UnknownRow(f'form: there is no format "{form[:40]}" here; there are {", ".join(forms)}')
    body: str | bytes
    if base:
        found = difference(experiment_id, case_id, base=base, variant=variant, kind=kind, seen=seen)
        body = DIFFERENCE_FORMS[form].write(found)
    else:
        drawn = variant_tree(experiment_id, case_id, variant=variant, kind=kind, seen=seen)
        try:
            body = TREE_FORMS[form].write(drawn.tree, **drawn.context)
        except NoSuchForm as exc:
            raise UnknownRow(f"form: {exc}") from exc
    return body.encode() if isinstance(body, str) else body


def callers_text(experiment_id: int, *, symbols: Sequence[str] = (), kind: str = "") -> str:
    """Return the callers of the symbols in all profiled cases, as text trees. Raises UnknownRow."""
    kind = kind_named(kind)
    return "".join(
        caller_text(experiment_id, case, variant="", symbols=tuple(symbols), kind=kind)
        for case in profiled_cases(experiment_id, kind)
    )
