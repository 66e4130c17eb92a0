# SPDX-License-Identifier: GPL-2.0-or-later
"""The pipelines of docs/ci, filled with the reader's host and with a tree that this lab has."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from lab.operations.newest_base import NewestBase

_FOLDER = Path(__file__).resolve().parents[1] / "docs" / "ci"
FILES = ("kperflab.sh", "kperflab.json", "github.yml", "gitlab.yml")


@dataclass(frozen=True, slots=True)
class Pipeline:
    """A text to copy. key: its name in the page's address; place: where the file belongs, "" for commands."""

    key: str
    title: str
    place: str
    text: str


def pipelines(server: str, base: NewestBase) -> tuple[Pipeline, ...]:
    """Return the pipelines in the order of the page. server: this lab's address without a final slash."""
    return (
        Pipeline("gitlab", "GitLab CI", ".gitlab-ci.yml", read_pipeline("gitlab.yml", server, base)),
        Pipeline(
            "github",
            "GitHub Actions",
            ".github/workflows/kperflab.yml",
            read_pipeline("github.yml", server, base),
        ),
        Pipeline("shell", "Shell with curl", "", _shell(server, base)),
        Pipeline("labctl", "labctl", "", _labctl(server, base)),
    )


def get_files(server: str) -> str:
    """Return the commands that put the script and the description into ci/."""
    return (
        f"mkdir -p ci\ncurl -fsS {server}/help/ci/kperflab.sh -o ci/kperflab.sh\n"
        f"curl -fsS {server}/help/ci/kperflab.json -o ci/kperflab.json\n"
    )


def read_pipeline(name: str, server: str, base: NewestBase) -> str:
    """Return a file of docs/ci for this lab. name: one of FILES."""
    text = (_FOLDER / name).read_text()
    if name == "kperflab.json":
        filled = json.loads(text) | {"tree": base.tree, "base": base.revision}
        return json.dumps(filled, indent=2, ensure_ascii=False) + "\n"
    text = text.replace("${{ vars.KPERFLAB_SERVER }}", server)
    text = text.replace(
        "variables: {GIT_DEPTH: 0,", f'variables: {{KPERFLAB_SERVER: "{server}", GIT_DEPTH: 0,'
    )
    return text.replace(
        "KPERFLAB_SERVER and KPERFLAB_TOKEN are CI/CD variables", "KPERFLAB_TOKEN is a masked CI/CD variable"
    )


def _shell(server: str, base: NewestBase) -> str:
    return (
        f"{get_files(server)}export KPERFLAB_SERVER={server} KPERFLAB_TOKEN=…\n"
        f"sh ci/kperflab.sh {base.revision}..HEAD ci/kperflab.json\n"
    )


def _labctl(server: str, base: NewestBase) -> str:
    return (
        f"labctl login --server {server}\n"
        f"labctl submit --branch HEAD --base {base.revision} --tree {base.tree} --workload {base.workload} --wait\n"
    )
