# SPDX-License-Identifier: GPL-2.0-or-later
"""Descriptions of experiments in TOML: what is valid has a digest and can be written as JSON."""

from lab.errors import SpecError
from lab.experiments.spec import read_spec, spec_digest

REFUSALS = (SpecError,)


def feed(data: bytes) -> None:
    """Read a description as the API does, where no file may be named."""
    spec = read_spec(data, None)
    spec_digest(spec)
    spec.model_dump_json()
