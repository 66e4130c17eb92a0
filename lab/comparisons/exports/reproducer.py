# SPDX-License-Identifier: GPL-2.0-or-later
"""One file that repeats an experiment: its description with every patch inline, and the hashes of its kernels.

It is TOML that `labctl submit FILE --local` accepts unchanged. The part `[reproduces]` does not affect builds and
measurements; the new kernels are compared with the ones it names.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from django.conf import settings

from kernels.mails.letters import as_text
from kernels.mails.stored_diff import diff_of
from lab.comparisons.described import public_location
from lab.experiments.environment import lab_version
from lab.experiments.page import get_experiment
from lab.experiments.reproduction import kernel_of
from lab.experiments.spec import TEXT_LIMIT
from lab.experiments.stored_spec import description_as_toml
from lab.models import Experiment, Switch
from lab.models.states import BuildState, Role
from lab.one_line import plain

_HEAD = """\
# Repeats experiment {number} of kperflab: {name}
#
#     labctl submit {file} --local
#
# builds its kernels again, boots and compares them, and reports whether each is identical, bit for bit, to the kernel below.
# Base: {tree} {base_name}, whose files are git tree {tree_id}{archive}.
# Identical bytes require the same toolchain: {toolchain}.
{hint}
"""
_LOCAL_TREE = """\
# The tree is a repository of that lab: on another lab, give yours as git = "URL or path" in place of tree.
"""


def write_reproducer(experiment_id: int, *, link: str = "") -> str:
    """Return the file's text, the same each time for one experiment. Raises UnknownRow."""
    experiment = get_experiment(experiment_id)
    facts = _facts(experiment, link)
    toolchain = next(
        (kernel["toolchain"] for kernel in facts["kernels"] if kernel.get("toolchain")), "not known any more"
    )
    head = _HEAD.format(
        number=experiment.pk,
        name=plain(experiment.name),
        file=file_name(experiment_id),
        tree=plain(experiment.tree.name),
        base_name=plain(experiment.base_name),
        tree_id=experiment.base_tree_id,
        archive=f", from {plain(facts['archive'])}" if facts["archive"] else "",
        toolchain=plain(toolchain),
        hint=_LOCAL_TREE if experiment.tree.kind == "git" and not public_location(experiment) else "",
    )
    return head + description_as_toml({**_description(experiment), "reproduces": facts})


def file_name(experiment_id: int) -> str:
    """Return the file's name."""
    return f"experiment-{experiment_id}.reproducer.toml"


def _description(experiment: Experiment) -> dict[str, Any]:
    """Return the description, with the base as a commit and each patch as text."""
    asked = {key: value for key, value in experiment.spec.items() if key != "reproduces"}
    switches = {switch.name: switch for switch in experiment.switches.all()}
    patches = [_patch(patch, switches[patch["name"]]) for patch in asked.get("patches") or []]
    return asked | {"base": experiment.base_commit, "patches": patches} | _tree(experiment)


def _tree(experiment: Experiment) -> dict[str, Any]:
    """Return a git tree by its URL, if that is public; else the tree's name in this lab."""
    if location := public_location(experiment):
        return {"git": location, "tree": None}
    return {"tree": experiment.tree.name, "git": None}


def _patch(asked: Mapping[str, Any], switch: Switch) -> dict[str, Any]:
    """Return a patch as submitted if it was text that needed no repair or one mail cannot hold it; else as applied."""
    rules = {"requires": switch.requires, "excludes": switch.excludes}
    applied = _as_mail(switch)
    if (
        (asked.get("text") and not switch.report)
        or len(applied) > TEXT_LIMIT
        or _touches_twice(diff_of(switch.text))
    ):
        return {**asked, **rules}
    return {"name": switch.name, "text": applied, **rules}


def _touches_twice(diff: str) -> bool:
    """Return whether a diff touches a file twice: patches over one another, which one diff cannot express."""
    files = re.findall(r"^diff --git .*$", diff, re.MULTILINE)
    return len(files) != len(set(files))


def _as_mail(switch: Switch) -> str:
    """Return the diff as a mail, with headers for its author, title and message id."""
    match = re.fullmatch(r"https://lore\.kernel\.org/\S*?/([^/\s]+@[^/\s]+)/?", switch.link)
    heads = [("From", switch.author), ("Subject", f"[PATCH] {switch.title or switch.name}")]
    heads.append(("Message-Id", f"<{match[1]}>" if match else ""))
    lines = [f"{name}: {' '.join(value.split())}" for name, value in heads if value]
    return as_text("\n".join([*lines, "", "---", diff_of(switch.text)]).encode("utf-8", "surrogateescape"))


def _facts(experiment: Experiment, link: str) -> dict[str, Any]:
    base = experiment.variants.select_related("build").filter(role=Role.BASE).first()
    fragments = base.build.request.get("fragments", []) if base and base.build else []
    archive = experiment.tree.kind == "archive"
    return {
        "experiment": experiment.pk,
        "permalink": f"{link.rstrip('/')}/experiments/{experiment.pk}/" if link else "",
        "lab": lab_version(),
        "submitted": experiment.created_at.isoformat(timespec="seconds"),
        "command": f"labctl submit {file_name(experiment.pk)} --local",
        "base_name": experiment.base_name,
        "base_tree_id": experiment.base_tree_id,
        "archive": Path(experiment.tree.location).name if archive else "",
        "kernels": [
            kernel_of(variant, settings.HOME).model_dump()
            for variant in experiment.variants.select_related("build").exclude(build=None)
            if variant.build and variant.build.state == BuildState.BUILT
        ],
        "fragments": [{"name": name, "text": text} for name, text in fragments],
    }
