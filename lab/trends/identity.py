# SPDX-License-Identifier: GPL-2.0-or-later
"""The identity of a trend: one metric of one case on one branch of a tree, by one clock, on one kind of machine, with one config."""

import hashlib
import json
from typing import Any

from lab.from_attributes import attributes
from lab.models import Case
from lab.models.hardware import Target


def kind_of_machine(target: Target) -> str:
    """Return the name under which a trend collects boots: machines of one group are equal."""
    return target.group or target.name


def trend_key(case: Case, metric: str, config: str) -> str:
    """Return the 12 hexadecimal digits that address the trend of a case's branch."""
    return _key(case, metric, config, case.experiment.base_branch)


def trunk_key(case: Case, metric: str, config: str) -> str:
    """Return the key of the same trend on the tree's default branch; "" if that is the case's own."""
    return _key(case, metric, config, "") if case.experiment.base_branch else ""


def _key(case: Case, metric: str, config: str, branch: str) -> str:
    experiment = case.experiment
    identity = [
        experiment.tree.name,
        case.workload,
        case.params,
        kind_of_machine(experiment.target),
        experiment.clock,
        config,
        metric,
        # Trends of the default branch keep the keys that all trends had before there were branches.
        *([branch] if branch else []),
    ]
    return hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()[:12]


def identity_of(name: str, config: str, case: Case) -> dict[str, Any]:
    """Return the columns that describe a trend, from its metric of this name in its latest case and from its config."""
    metric = next(metric for metric in case.metrics if metric["name"] == name)
    return {
        "tree": case.experiment.tree,
        "branch": case.experiment.base_branch,
        "trunk": trunk_key(case, name, config),
        **attributes(case, ("workload", "preset", "params")),
        "target": kind_of_machine(case.experiment.target),
        "clock": case.experiment.clock,
        "config": config,
        "metric": name,
        **{part: metric[part] for part in ("unit", "better", "margin", "primary")},
        "latest_case": case.pk,
    }
