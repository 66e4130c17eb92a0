# SPDX-License-Identifier: GPL-2.0-or-later
"""Read what an experiment's kernels were built with, for reports."""

from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from kernels.artifacts.store import Artifact
from kernels.errors import KernelsError
from lab.errors import LabError
from lab.models import Build
from lab.storage.artifacts import artifacts_of, fetch_papers
from lab.storage.store import lab_store


def lab_version() -> str:
    """The version of this program, "unknown" where it is not installed."""
    try:
        return version("kperflab")
    except PackageNotFoundError:
        return "unknown"


def stored_artifact(build: Build | None, root: Path) -> Artifact | None:
    """Return the artifact of a build, None if neither this machine nor the store has all of it.

    An artifact that only the store has comes without its kernel: metadata, config, log and script.
    """
    if build is None or not build.artifact_key:
        return None
    try:
        here = artifacts_of(root)
        if here.has(build.artifact_key):
            return here.get(build.artifact_key)
        store = lab_store()
        return fetch_papers(store, root / "papers", build.artifact_key) if store is not None else None
    except (KernelsError, LabError):
        return None
