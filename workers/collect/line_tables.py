# SPDX-License-Identifier: GPL-2.0-or-later
"""Look up where the functions of a run's profiles begin, while its kernel is on this machine."""

from collections.abc import Sequence
from dataclasses import replace

from kernels.artifacts.store import Artifact
from kernels.builds.function_lines import function_lines
from lab.models import Profile
from lab.profiles.analysis.source_lines import by_source_name, kernel_functions
from lab.runs.record import TakenProfile

# Their trees hold the functions of the program.
_EXACT = (Profile.Kind.EXACT, Profile.Kind.WAITING)


def with_lines(profiles: Sequence[TakenProfile], artifact: Artifact) -> tuple[TakenProfile, ...]:
    """Return the profiles with the source lines of those functions that the kernel's line tables have."""
    functions = [kernel_functions(taken.tree, exact=taken.kind in _EXACT) for taken in profiles]
    lines = function_lines(sorted(set().union(*functions)), artifact)
    return tuple(
        replace(taken, lines=by_source_name({name: lines[name] for name in own & lines.keys()}))
        for taken, own in zip(profiles, functions, strict=True)
    )
