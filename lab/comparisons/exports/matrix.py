# SPDX-License-Identifier: GPL-2.0-or-later
"""Numbers of every boot in lkp-tests' format: a matrix.json for each case and variant, `workload.metric` → a value for each boot.

A tar archive of `<workload>-<preset>-<place>/<variant>/{matrix,avg,stddev}.json`, as LKP's own result roots hold them.
`stats_source` names the run behind each column. Columns are boots that count, in order of their blocks; a value is the
median of the boot's iterations. Standard deviations are of a sample (ddof 1) and 0 for a single boot.
"""

import hashlib
import io
import json
import re
import tarfile
from collections import defaultdict
from collections.abc import Iterator
from statistics import fmean, stdev
from typing import Any

from lab.comparisons.distribution import CaseSpread, boots_of, case_spreads
from lab.experiments.page import get_experiment
from lab.experiments.shown_description import case_views
from lab.models import Experiment

SOURCE = "stats_source"


def write_matrix(experiment_id: int) -> bytes:
    """The archive; equal boots are equal bytes. Raises UnknownRow."""
    experiment = get_experiment(experiment_id)
    whole = io.BytesIO()
    with tarfile.open(fileobj=whole, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name, text in _files(experiment):
            entry = tarfile.TarInfo(name)
            entry.size = len(text)
            entry.mode = 0o644
            archive.addfile(entry, io.BytesIO(text))
    return whole.getvalue()


def _files(experiment: Experiment) -> Iterator[tuple[str, bytes]]:
    spreads = case_spreads(experiment, boots_of(experiment))
    for case in case_views(experiment):
        folder = _safe(f"{case.workload}-{case.preset}-{case.position + 1}")
        for variant, matrix in _matrices(case.workload, spreads[case.id]).items():
            numbers = {name: values for name, values in matrix.items() if name != SOURCE}
            for kind, content in (
                ("matrix", matrix),
                ("avg", {name: fmean(values) for name, values in numbers.items()}),
                ("stddev", {name: _deviation(values) for name, values in numbers.items()}),
            ):
                text = json.dumps(content, indent=2, allow_nan=False)
                yield f"{folder}/{_safe(variant)}/{kind}.json", f"{text}\n".encode()


def _matrices(workload: str, spread: CaseSpread) -> dict[str, dict[str, list[Any]]]:
    """Return by variant its matrix. A metric that a boot lacks is 0, as in LKP's files."""
    runs: dict[str, dict[int, int]] = defaultdict(dict)
    values: dict[str, dict[str, dict[int, float]]] = defaultdict(dict)
    for metric in spread.metrics:
        for variant in metric.variants:
            runs[variant.variant] |= {boot.run_id: boot.block for boot in variant.boots}
            values[variant.variant][metric.metric] = {boot.run_id: boot.number for boot in variant.boots}
    matrices = {}
    for name, blocks in runs.items():
        order = sorted(blocks, key=lambda run: (blocks[run], run))
        matrix: dict[str, list[Any]] = {
            f"{workload}.{metric}": [boots.get(run, 0.0) for run in order]
            for metric, boots in values[name].items()
        }
        matrices[name] = {**matrix, SOURCE: [f"runs/{run}" for run in order]}
    return matrices


def _deviation(values: list[float]) -> float:
    return stdev(values) if len(values) > 1 else 0.0


def _safe(name: str) -> str:
    """Return a folder's name: odd characters become "_", and a name that changed or is too long ends in a hash."""
    plain = re.sub(r"[^A-Za-z0-9._+-]", "_", name).lstrip(".") or "_"
    if len(plain) <= 200 and plain == name:
        return plain
    return f"{plain[:180]}-{hashlib.sha256(name.encode()).hexdigest()[:12]}"
