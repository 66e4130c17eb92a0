# SPDX-License-Identifier: GPL-2.0-or-later
"""Note on a variant whether its kernel is the base's, or is the one to be reproduced."""

from typing import Any

from django.conf import settings

from lab.experiments.reproduction import kernel_of, told_difference
from lab.experiments.spec import ReproducedKernel
from lab.models import Build, Experiment, Variant
from lab.models.states import Role


def note_kernels(experiment_id: int) -> None:
    """Write the notes of all built variants; doing it twice changes nothing."""
    experiment = Experiment.objects.get(pk=experiment_id)
    variants = list(experiment.variants.select_related("build"))
    base = next((variant.build for variant in variants if variant.role == Role.BASE), None)
    wanted = _wanted(experiment.spec)
    for variant in variants:
        if variant.build is None or not variant.build.code_hash:
            continue
        note = "; ".join(filter(None, (_same_code(variant, base), _reproduced(variant, wanted))))
        if note != variant.note:
            Variant.objects.filter(pk=variant.pk).update(note=note)


def runs_code_of_base(variant: Variant, base: Build | None) -> bool:
    """Return whether the switches of a variant change no code that runs: then it cannot differ from the base."""
    own = variant.build
    return bool(variant.switches and base and own and base.code_hash and own.code_hash == base.code_hash)


def _same_code(variant: Variant, base: Build | None) -> str:
    """Note a variant whose running code does not differ from the base's."""
    if not runs_code_of_base(variant, base):
        return ""
    many = "these switches change" if len(variant.switches) > 1 else "this switch changes"
    return f"{many} no code here: the kernel is the base's"


def _reproduced(variant: Variant, wanted: dict[str, ReproducedKernel]) -> str:
    if variant.name not in wanted:
        return ""
    return told_difference(wanted[variant.name], kernel_of(variant, settings.HOME))


def _wanted(spec: dict[str, Any]) -> dict[str, ReproducedKernel]:
    """Return by variant the kernels that this experiment should reproduce, if it is a reproduction."""
    kernels = (spec.get("reproduces") or {}).get("kernels") or []
    return {kernel["variant"]: ReproducedKernel.model_construct(**kernel) for kernel in kernels}
