# SPDX-License-Identifier: GPL-2.0-or-later
"""The pretend kernel of `fakelinux/` as a tree, and variants of it."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from kernels.builds.builder import BuildRequest
from kernels.builds.toolchain import detect_toolchain
from kernels.configs.request import ConfigRequest, Fragment
from kernels.trees.git import COMMITTER, git_command, git_environment
from kernels.trees.tree import NamedRevision, SourceTree

FAKELINUX = Path(__file__).parent / "fakelinux"
CONFIG = ConfigRequest("tiny", (Fragment("guest", "CONFIG_BLOCK=y\nCONFIG_INODES=y\n"),))


class PretendKernel:
    """A repository that starts with the fake tree as its base."""

    def __init__(self, folder: Path) -> None:
        self.work = folder / "work"
        shutil.copytree(FAKELINUX, self.work)
        self._git("init", "--quiet", "--template=")
        self.base = self._commit("v6.1.7")
        self.tree = SourceTree("pretend", self.work / ".git", "main")

    def variant(self, files: Mapping[str, str | Path | None]) -> NamedRevision:
        """The base with some files written, made links to a path, or removed where there is None."""
        self._git("reset", "--quiet", "--hard", self.base.commit)
        for name, text in files.items():
            path = self.work / name
            if path.is_dir():
                shutil.rmtree(path)
            path.unlink(missing_ok=True)
            path.parent.mkdir(parents=True, exist_ok=True)
            if isinstance(text, Path):
                path.symlink_to(text)
            elif text is not None:
                path.write_text(text)
        return self._commit("variant")

    def edited(self, name: str, old: str, new: str) -> NamedRevision:
        """The base with one place of one file changed."""
        text = (FAKELINUX / name).read_text()
        assert text.count(old) == 1
        return self.variant({name: text.replace(old, new)})

    def diff(self, revision: NamedRevision) -> str:
        """Return the changes of a revision against the base as a patch; ends with the newline that git apply needs."""
        return self._git("diff", self.base.commit, revision.commit) + "\n"

    def request(
        self,
        revision: NamedRevision | None = None,
        config: ConfigRequest = CONFIG,
        base_config: ConfigRequest | None = None,
    ) -> BuildRequest:
        """A request to build a revision, the base unless another is given."""
        return BuildRequest(
            self.tree,
            self.base,
            revision or self.base,
            config,
            detect_toolchain(),
            base_config=base_config,
        )

    def _commit(self, message: str) -> NamedRevision:
        self._git("add", "-A", "-f")
        self._git("commit", "--quiet", "--allow-empty", "-m", message)
        return NamedRevision(self._git("rev-parse", "HEAD"), self._git("rev-parse", "HEAD^{tree}"), message)

    def _git(self, *arguments: str) -> str:
        command = git_command("-C", str(self.work), *arguments)
        environment = git_environment(COMMITTER)
        done = subprocess.run(
            command, env=environment, check=True, capture_output=True, text=True, timeout=60
        )
        return done.stdout.strip()


def with_lines(*lines: str) -> ConfigRequest:
    """The usual config and a fragment "mine" of these lines."""
    return ConfigRequest(CONFIG.base, (*CONFIG.fragments, Fragment("mine", "\n".join(lines))))
