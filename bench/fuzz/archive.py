# SPDX-License-Identifier: GPL-2.0-or-later
"""Source archives: what a tar stream becomes holds ordinary paths only, and as many bytes as it says."""

import io
import re

from kernels.errors import TreeUnreadable
from kernels.files.paths import check_paths
from kernels.trees.tarball import send_archive

REFUSALS = (TreeUnreadable,)
_FILE = re.compile(rb'^M (100644|100755|120000) :\d+ "(.*)"$')
_DATA = re.compile(rb"^data (\d+)$")


def feed(data: bytes) -> None:
    """Convert an archive, and read the commands for git as git would."""
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
            unquoted = re.sub(rb"\\(.)", lambda found: b"\n" if found[1] == b"n" else found[1], file[2])
            paths.append(unquoted.decode("utf-8", "surrogateescape"))
    check_paths(paths)
