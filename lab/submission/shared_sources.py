# SPDX-License-Identifier: GPL-2.0-or-later
"""Put the sources of a submission into the store as git bundles, for build workers on other machines.

A variant's commit is bundled relative to its base, in some KiB. The base is bundled whole where other machines cannot fetch it:
a source archive, or a repository of this machine.
"""

from collections.abc import Iterable

from kernels.files.scratch import remove_leftovers, scratch
from kernels.trees.address import own_address
from kernels.trees.git_bundle import write_bundle
from kernels.trees.tree import NamedRevision, SourceTree
from lab.models import Tree as TreeRow
from lab.storage.store import Store, lab_store
from lab.submission.sources import OnProgress, Source

_BUNDLES = ".bundles"


def name_in_store(commit: str) -> str:
    """Return the name of a commit's bundle in the store."""
    return f"sources/{commit}.bundle"


def share_sources(
    tree: SourceTree, source: Source, base: NamedRevision, commits: Iterable[str], on_progress: OnProgress
) -> None:
    """Put the sources that other builders need into the store, if there is one. Raises GitFailed, StoreUnreachable, StoreRefused."""
    store = lab_store()
    if store is None:
        return
    for commit in dict.fromkeys(commits):
        if commit != base.commit:
            _share(store, tree, commit, base.commit)
    if not _fetched_by_all(source) and not store.has(name_in_store(base.commit)):
        on_progress(f"putting the sources of {base.name} into the store")
        _share(store, tree, base.commit, "")


def source_of(tree: str) -> Source | None:
    """Return a tree's source, None if it is not registered."""
    row = TreeRow.objects.filter(name=tree).first()
    return Source(row.name, row.kind, row.location) if row else None


def _share(store: Store, tree: SourceTree, commit: str, base: str) -> None:
    if store.has(name_in_store(commit)):
        return
    # On the repository's disk: git renames what it has written there, which it cannot across disks.
    root = tree.repository.parent / _BUNDLES
    remove_leftovers(root)
    with scratch(root) as place:
        file = place / "sources.bundle"
        write_bundle(tree.repository, commit, base, file)
        with file.open("rb") as data:
            store.put(name_in_store(commit), data)


def _fetched_by_all(source: Source) -> bool:
    return source.kind == "git" and own_address(source.location).protocol != "file"
