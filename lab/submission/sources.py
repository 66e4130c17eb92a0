# SPDX-License-Identifier: GPL-2.0-or-later
"""Open the tree and the patches that a description names.

Faults of the submission come out as SubmissionRejected with the switch's name in front; faults of
the lab (a full disk, a broken git) pass through as they are.
"""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path

from kernels.configs.request import Fragment
from kernels.mails.stored_diff import stored_diff
from kernels.patches import catalog
from kernels.patches.series import Patch, Series, read_range
from kernels.printable import shown_line
from kernels.repair import intake as repair
from kernels.trees.remote import FetchLimits, location_name
from kernels.trees.tree import (
    DEFAULT_ARCHIVES,
    NamedRevision,
    SourceTree,
    import_archive,
    open_git,
    read_file,
    unknown_tree,
)
from lab.errors import SubmissionRejected
from lab.experiments.expand import Toggle
from lab.experiments.limits import FETCH_BYTES, FETCH_DEADLINE_S, FETCH_MEMORY_BYTES
from lab.experiments.spec import ExperimentSpec, LineSwitch, PatchSpec
from lab.models import Tree
from lab.submission.blame import submission_at_fault
from lab.submission.git_addresses import tree_address

OnProgress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Source:
    """A tree's source: its name, "archive" or "git", and the file or URL."""

    name: str
    kind: str
    location: str


@dataclass(frozen=True, slots=True)
class Taken:
    """A switch that was taken in. patches is empty for a config switch, fragment None for a patch.

    text: the diff as it will be applied, as kernels.mails.stored_diff keeps it, or the fragment; report: what was repaired in it; notes: which mails were chosen, which left out, and why.
    """

    toggle: Toggle
    kind: str
    title: str
    text: str
    author: str = ""
    link: str = ""
    version: int = 1
    report: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    claims: tuple[catalog.ClaimedEffect, ...] = ()
    patches: tuple[Patch, ...] = ()
    fragment: Fragment | None = None
    files: frozenset[str] = field(default_factory=frozenset)


def find_source(spec: ExperimentSpec, registered: Mapping[str, Source]) -> Source:
    """Return where the description's tree comes from: a registered tree, a default one, or a git URL.

    The URL of a registered tree stands for that tree, so that nobody waits for a second clone.
    """
    if spec.git is not None:
        for source in registered.values():
            if source.kind == "git" and source.location == spec.git:
                return source
        return Source(location_name(spec.git), "git", spec.git)
    known = {name: Source(name, "archive", str(path)) for name, path in DEFAULT_ARCHIVES.items()}
    known |= registered
    name = spec.tree or ""
    if name not in known:
        raise SubmissionRejected(str(unknown_tree(name, known)), place="tree")
    return known[name]


def fetch_limits() -> FetchLimits:
    """Return git's limits for one fetch: those of the process around it, so that an error names the limit that was hit."""
    memory = min(FetchLimits().memory, FETCH_MEMORY_BYTES)
    return FetchLimits(seconds=FETCH_DEADLINE_S, bytes=FETCH_BYTES, memory=memory)


def open_source(source: Source, root: Path, on_progress: OnProgress) -> SourceTree:
    """Make the tree available under `root`, imported or fetched if need be."""
    said: tuple[str, int] = "", -1

    def tell(what: str, done: float) -> None:
        nonlocal said
        # Every tenth is enough for a person, and for a log.
        if (tenth := int(10 * done)) > said[1] or what != said[0]:
            said = what, tenth
            on_progress(f"{what}: {tenth * 10} %")

    if source.kind == "git":
        fetching = f"fetching {source.location}"
        on_progress(fetching)
        return open_git(
            source.name,
            tree_address(source.location),
            root,
            fetch_limits(),
            on_note=on_progress,
            on_progress=lambda stage, done: tell(f"{fetching}, {stage}", done),
        )
    archive = Path(source.location)
    return import_archive(
        source.name, archive, root, on_progress=lambda done: tell(f"importing {archive.name}", done)
    )


def take_in(spec: PatchSpec | LineSwitch, tree: SourceTree, base: NamedRevision) -> Taken:
    """Read one switch, and repair what a web archive did to it. Raises SubmissionRejected."""
    with blamed_on_switch(spec.name):
        if isinstance(spec, LineSwitch):
            return Taken(_toggle(spec), spec.kind, "", spec.text, fragment=spec.fragment())
        if spec.catalog is not None:
            return _from_catalogue(spec, tree)
        if spec.range is not None:
            start, _, tip = spec.range.partition("..")
            return _taken(spec, read_range(tree, start, tip), ())
        return _from_text(spec, tree, base)


def blamed_on_switch(name: str) -> AbstractContextManager[None]:
    """Put the switch's name before what is wrong with it, unless the lab is at fault."""
    return submission_at_fault(f'switch "{name}": ')


def _from_text(spec: PatchSpec, tree: SourceTree, base: NamedRevision) -> Taken:
    data = (spec.text or "").encode()
    intake = repair.take_in(data, lambda path: read_file(tree, base.tree_id, path), partial=spec.partial)
    series = _chosen(spec, intake)
    titles = {patch.title for patch in series.patches}
    refused = [str(hunk) for hunk in intake.refused if not intake.alternatives or hunk.patch in titles]
    if refused:
        more = f" (and {len(refused) - 1} more hunks)" if len(refused) > 1 else ""
        raise SubmissionRejected(
            f'switch "{spec.name}" cannot be repaired onto {base.name}: {refused[0]}{more}',
            "\n".join(refused),
        )
    return _taken(spec, series, intake.repaired)


def _chosen(spec: PatchSpec, intake: repair.Intake) -> Series:
    """The series itself, or the alternative the description asks for."""
    offered = intake.alternatives
    if not offered:
        return intake.series
    if spec.alternative is None or spec.alternative > len(offered):
        titles = [f"{number}: {series.title}" for number, series in enumerate(offered, 1)]
        raise SubmissionRejected(
            f'switch "{spec.name}": the mail offers {len(offered)} diffs for the same places; '
            f"choose one with alternative = 1 to {len(offered)}",
            "\n".join(titles),
        )
    return offered[spec.alternative - 1]


def _from_catalogue(spec: PatchSpec, tree: SourceTree) -> Taken:
    entry = catalog.load_catalog()[spec.catalog or ""]
    patch = catalog.entry_patch(entry, tree.name)
    return Taken(
        toggle=_toggle(spec),
        kind="patch",
        title=patch.title or entry.title,
        author=entry.author,
        link=entry.link,
        claims=catalog.entry_claims(entry, tree.name),
        text=stored_diff(patch.diff),
        patches=(patch,),
        files=frozenset(patch.files),
    )


def _taken(spec: PatchSpec, series: Series, report: tuple[str, ...]) -> Taken:
    first = series.patches[0]
    return Taken(
        toggle=_toggle(spec),
        kind="patch",
        title=series.title or first.title,
        author=first.author,
        link=f"https://lore.kernel.org/r/{first.message_id}" if first.message_id else "",
        version=series.version,
        text=stored_diff("\n".join(patch.diff for patch in series.patches)),
        report=tuple(shown_line(line) for line in report),
        notes=tuple(shown_line(line) for line in series.notes),
        patches=series.patches,
        files=frozenset(path for patch in series.patches for path in patch.files),
    )


def _toggle(spec: PatchSpec | LineSwitch) -> Toggle:
    return Toggle(spec.name, spec.requires, spec.excludes)


def with_catalogue_rules(specs: tuple[PatchSpec, ...], toggles: Mapping[str, Toggle]) -> dict[str, Toggle]:
    """Add what catalogue entries require and exclude, as far as those are switches here too."""
    entries = catalog.load_catalog()
    here = {spec.catalog: spec.name for spec in specs if spec.catalog}
    ruled = dict(toggles)
    for spec in specs:
        if spec.catalog is None:
            continue
        entry, own = entries[spec.catalog], ruled[spec.name]
        requires = dict.fromkeys([*own.requires, *(here[n] for n in entry.requires if n in here)])
        excludes = dict.fromkeys([*own.excludes, *(here[n] for n in entry.excludes if n in here)])
        ruled[spec.name] = Toggle(spec.name, tuple(requires), tuple(excludes))
    return ruled


def registered_sources() -> dict[str, Source]:
    """Return where the registered trees come from, by name, in the order they were registered."""
    return {row.name: Source(row.name, row.kind, row.location) for row in Tree.objects.order_by("pk")}


def tree_row(source: Source, default_revision: str = "") -> Tree:
    """Return the row of a tree, written if it is new. Raises SubmissionRejected where the name belongs to another location."""
    known = {"kind": source.kind, "location": source.location, "default_revision": default_revision}
    row, _ = Tree.objects.get_or_create(name=source.name, defaults=known)
    if (row.kind, row.location) != (source.kind, source.location):
        raise SubmissionRejected(
            f"the name {source.name} stands for the tree at {row.location} already; it was not changed"
        )
    if default_revision and row.default_revision != default_revision:
        row.default_revision = default_revision
        row.save(update_fields=["default_revision"])
    return row
