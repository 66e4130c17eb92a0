# SPDX-License-Identifier: GPL-2.0-or-later
"""The sources of a build on a machine other than the submitting one: from the tree's own place, else from the store."""

import logging
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from kernels.errors import BundleRefused, KernelsError
from kernels.files.scratch import patiently
from kernels.trees.git_bundle import MOST_BYTES, has_commit, take_bundle, tree_from_bundle, tree_of
from lab.errors import StoreLacks
from lab.runs.work_orders import BuildOrder
from lab.storage.store import Store, lab_store
from lab.submission.shared_sources import name_in_store, source_of
from lab.submission.sources import Source, open_source
from workers.errors import SourceMissing

log = logging.getLogger(__name__)


def bring_sources(order: BuildOrder, home: Path, on_wait: Callable[[], None]) -> None:
    """Bring the commit of a build, and its base, into the tree's repository here. Without a store they are already here.

    Raises SourceMissing, BundleRefused, GitFailed, DiskFull, StoreUnreachable, StoreRefused.
    """
    store = lab_store()
    if store is not None:
        source = source_of(order.tree)
        patiently(lambda: _bring(order, source, home / "trees", store), on_wait)


def _bring(order: BuildOrder, source: Source | None, trees: Path, store: Store) -> None:
    repository = trees / f"{order.tree}.git"
    base = str(order.request["base_commit"])
    if not has_commit(repository, base):
        _bring_base(order.tree, source, base, trees, store)
    if not has_commit(repository, order.commit):
        with _fetched(store, order.tree, order.commit) as file:
            take_bundle(repository, file, order.commit, base)
    for commit, tree_id in ((base, order.request["base_tree_id"]), (order.commit, order.tree_id)):
        if tree_of(repository, commit) != tree_id:
            raise BundleRefused(f"commit {commit[:12]} of {order.tree} has other files than were submitted")


def _bring_base(tree: str, source: Source | None, base: str, trees: Path, store: Store) -> None:
    """Fetch the base from the tree's own place if that has the very commit, else from the store."""
    if source is not None:
        try:
            open_source(source, trees, lambda line: log.info("%s", line))
        except KernelsError as exc:
            log.info("%s is not available from %s here: %s", tree, source.location, exc)
        if has_commit(trees / f"{tree}.git", base):
            return
    with _fetched(store, tree, base) as file:
        tree_from_bundle(tree, trees, file, base)


@contextmanager
def _fetched(store: Store, tree: str, commit: str) -> Iterator[Path]:
    """Keep a bundle of the store as a file for as long as the block runs."""
    with tempfile.TemporaryDirectory(prefix="kperflab-bundle-") as place:
        file, size = Path(place) / "sources.bundle", 0
        try:
            with store.reading(name_in_store(commit)) as stream, file.open("wb") as out:
                while chunk := stream.read(1 << 20):
                    size += len(chunk)
                    if size > MOST_BYTES:
                        raise BundleRefused(
                            f"the bundle of {commit[:12]} is larger than {MOST_BYTES >> 20} MiB"
                        )
                    out.write(chunk)
        except StoreLacks as exc:
            raise SourceMissing(
                f"commit {commit[:12]} of {tree} is neither where the tree comes from nor in the store: "
                "submit the experiment again"
            ) from exc
        yield file
