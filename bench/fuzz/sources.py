# SPDX-License-Identifier: GPL-2.0-or-later
"""Readers of what submitters send: mails, patches, config fragments, descriptions, archives and paths."""

import io
import os
import re
import tempfile
from pathlib import Path

from bench.fuzz.mutations import mutate_mail
from bench.fuzz.targets import Reader
from kernels.configs.request import Fragment, fragment_text, read_fragment
from kernels.diffs.safety import check_files
from kernels.diffs.unified import parse_diff, render_diff
from kernels.errors import ConfigRejected, PatchRejected, TreeUnreadable
from kernels.files.beneath import Beneath
from kernels.files.paths import check_paths
from kernels.mails.letters import as_text
from kernels.patches.series import read_series
from kernels.repair.intake import take_in
from kernels.tests.damaging import BEFORE, reader
from kernels.trees.tarball import send_archive
from lab.errors import SpecError
from lab.experiments.spec import read_spec, spec_digest

_FILE = re.compile(rb'^M (100644|100755|120000) :\d+ "(.*)"$')
_DATA = re.compile(rb"^data (\d+)$")
MOST_PATHS = 50
# In memory: a disk makes ten times fewer tries.
MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None


def feed_mail(data: bytes) -> None:
    """Read a series, as an upload is read before its tree is known, and the same once more from what is stored of it."""
    text = as_text(data)
    text.encode()
    series = read_series(data)
    again = read_series(text.encode())
    assert [patch.diff for patch in again.patches] == [patch.diff for patch in series.patches], "other diffs"
    titles = [patch.title for patch in series.patches]
    assert [patch.title for patch in again.patches] == titles, "other titles"
    for patch in series.patches:
        for part in (patch.title, patch.author, patch.date, patch.message_id, *patch.files):
            assert part.isprintable(), "a header that is not printable"
        patch.message.encode()


def feed_patch(data: bytes) -> None:
    """Parse a diff, check and render it: what was rendered reads as the same."""
    files = parse_diff(data.decode("utf-8", "surrogateescape"))
    check_files(files)
    rendered = render_diff(files)
    assert render_diff(parse_diff(rendered)) == rendered, "a rendered diff reads as another one"


def feed_damaged(data: bytes) -> None:
    """Take a damaged submission in against a base of a few small files: what is repaired is a diff that applies there."""
    intake = take_in(data, reader(BEFORE))
    for series in (intake.series, *intake.alternatives):
        for patch in series.patches:
            assert parse_diff(patch.diff), "a patch without a change"


def feed_fragment(data: bytes) -> None:
    """Read a Kconfig fragment, write it in the kernel's own form, and read it again."""
    first = read_fragment(Fragment("fuzz", data.decode("utf-8", "replace")))
    second = read_fragment(Fragment("fuzz", fragment_text(first)))
    assert [str(line) for line in first] == [str(line) for line in second], "a fragment reads as another one"


def feed_description(data: bytes) -> None:
    """Read a description as the API does, where no file may be named: a valid one has a digest and can be written as JSON."""
    spec = read_spec(data, None)
    spec_digest(spec)
    spec.model_dump_json()


def feed_archive(data: bytes) -> None:
    """Convert an archive, and read the commands for git as git would: ordinary paths, and blobs as long as they say."""
    pipe = io.BytesIO()
    send_archive(io.BytesIO(data), pipe)
    paths, rest = [], io.BytesIO(pipe.getvalue())
    while line := rest.readline():
        if size := _DATA.match(line):
            content = rest.read(int(size[1]))
            assert len(content) == int(size[1]), "a blob is shorter than its length"
        elif line.startswith(b"M "):
            file = _FILE.match(line)
            assert file, f"git would not understand {line[:80]!r}"
            unquoted = re.sub(rb"\\(.)", lambda match: b"\n" if match[1] == b"n" else match[1], file[2])
            paths.append(unquoted.decode("utf-8", "surrogateescape"))
    check_paths(paths)


def feed_paths(data: bytes) -> None:
    """Check the paths of a tree, one a line, and write each: the first byte says whether as a file, a link or a folder."""
    lines = data.split(b"\n")[:MOST_PATHS]
    paths = [os.fsdecode(line[1:]) for line in lines]
    try:
        check_paths(paths)
    finally:
        # Even what the check refuses: the second line of defence must hold alone.
        _write([(line[:1], path) for line, path in zip(lines, paths, strict=True)])


def _write(entries: list[tuple[bytes, str]]) -> None:
    """Write below one folder, and see that nothing is written beside it."""
    with tempfile.TemporaryDirectory(prefix="kperflab-fuzz-", dir=MEMORY) as place:
        outside, top = Path(place), Path(place) / "outer" / "top"
        top.mkdir(parents=True)
        with Beneath(top) as beneath:
            for kind, path in entries:
                try:
                    if kind == b"l":
                        beneath.link(path, os.fsencode(outside))
                    elif kind == b"d":
                        beneath.folder(path)
                    elif kind == b"r":
                        beneath.remove(path)
                    elif kind == b"m":
                        beneath.mark_absent(path)
                    else:
                        beneath.write(path, b"", 0o644)
                except TreeUnreadable:
                    continue
        assert [path.name for path in outside.iterdir()] == ["outer"], "something was written outside"
        inside = [path.name for path in (outside / "outer").iterdir()]
        assert inside == ["top"], "something was written beside the folder"


READERS = {
    "mail": Reader(feed_mail, (PatchRejected,), mutate_mail),
    "patch": Reader(feed_patch, (PatchRejected,)),
    "repair": Reader(feed_damaged, (PatchRejected,), mutate_mail),
    "fragment": Reader(feed_fragment, (ConfigRejected,)),
    "description": Reader(feed_description, (SpecError,)),
    "archive": Reader(feed_archive, (TreeUnreadable,)),
    "paths": Reader(feed_paths, (TreeUnreadable,)),
}
