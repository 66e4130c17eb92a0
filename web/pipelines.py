# SPDX-License-Identifier: GPL-2.0-or-later
"""The pipelines of docs/ci, filled with the reader's host and with a tree that this lab has."""

import json
import re
from dataclasses import dataclass
from pathlib import Path
from textwrap import indent

from lab.submission.choices import NewestBase

_FOLDER = Path(__file__).resolve().parents[1] / "docs" / "ci"
_COMMAND = re.compile(r"(?m)^( *)(?=.*\bsh ci/kperflab\.sh )")


@dataclass(frozen=True, slots=True)
class Pipeline:
    """A text to copy. key: its name in the page's address; place: where the file belongs, "" for commands."""

    key: str
    title: str
    place: str
    text: str


def pipelines(server: str, base: NewestBase) -> tuple[Pipeline, ...]:
    """Return the pipelines in the order of the page. server: this lab's address without a final slash."""
    github = ".github/workflows/kperflab.yml"
    return (
        Pipeline("gitlab", "GitLab CI", ".gitlab-ci.yml", _forge("gitlab.yml", server, base)),
        Pipeline("github", "GitHub Actions", github, _forge("github.yml", server, base)),
        Pipeline("shell", "Shell with curl", "", _shell(server, base)),
        Pipeline("labctl", "labctl", "", _labctl(server, base)),
    )


def script() -> str:
    """Return the script that submits a series and waits; it says nothing of this lab."""
    return (_FOLDER / "kperflab.sh").read_text()


def _setup(server: str, base: NewestBase) -> str:
    """Return the commands that put the script and a description of the experiment into ci/."""
    example = json.loads((_FOLDER / "kperflab.json").read_text())
    filled = example | {"tree": base.tree, "base": base.revision}
    return (
        f"mkdir -p ci\ncurl -fsS {server}/help/ci/kperflab.sh -o ci/kperflab.sh\n"
        f"cat >ci/kperflab.json <<'END'\n{json.dumps(filled, indent=2, ensure_ascii=False)}\nEND\n"
    )


def _forge(name: str, server: str, base: NewestBase) -> str:
    """Return a pipeline of docs/ci for this lab, which needs no other file."""
    text = (_FOLDER / name).read_text()
    text = text.replace("${{ vars.KPERFLAB_SERVER }}", server)
    text = text.replace(
        "variables: {GIT_DEPTH: 0,", f'variables: {{KPERFLAB_SERVER: "{server}", GIT_DEPTH: 0,'
    )
    # The first lines list the needed files and variables; all but the token are included here.
    text = text.replace(
        ", with kperflab.sh and kperflab.json in ci/; KPERFLAB_SERVER and KPERFLAB_TOKEN are CI/CD variables.",
        "; KPERFLAB_TOKEN is a masked CI/CD variable.",
    ).replace(
        ", with kperflab.sh and kperflab.json in ci/.", "; KPERFLAB_TOKEN is a secret of the repository."
    )
    setup = _setup(server, base)
    return _COMMAND.sub(lambda match: f"{indent(setup, match[1])}{match[1]}", text)


def _shell(server: str, base: NewestBase) -> str:
    return (
        f"{_setup(server, base)}export KPERFLAB_SERVER={server} KPERFLAB_TOKEN=…\n"
        f"sh ci/kperflab.sh {base.revision}..HEAD ci/kperflab.json\n"
    )


def _labctl(server: str, base: NewestBase) -> str:
    return (
        f"labctl login --server {server}\n"
        f"labctl submit --branch HEAD --base {base.revision} --tree {base.tree} --workload {base.workload} --wait\n"
    )
