# SPDX-License-Identifier: GPL-2.0-or-later
"""Small kernel-like source trees for the tests, as tarballs."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Mapping
from pathlib import Path

MAKEFILE = b"# comment\nVERSION = 6\nPATCHLEVEL = 1\nSUBLEVEL = 192\nEXTRAVERSION =\nNAME = Curry\nall:\n\techo $(VERSION)\n"
INODE = b"".join(b"line %d of inode\n" % number for number in range(1, 41))
FILES: dict[str, bytes] = {
    "Makefile": MAKEFILE,
    "fs/inode.c": INODE,
    "fs/dir.c": b"int dir;\n",
    ".gitignore": b"*.o\nfs/ignored.txt\n",
    ".gitattributes": b"*.txt text eol=crlf\n*.c export-ignore\n",
    "fs/ignored.txt": b"kept, with a unix line end\n",
    'tools/a "quoted\\" name.c': b"odd\n",
    "tools/gr\u00fc\u00dfe.c": b"\xff\xfe not utf-8\n",
}
SCRIPT = "scripts/run.sh"
LINK = "include/asm"


def make_archive(
    path: Path,
    files: Mapping[str, bytes] = FILES,
    *,
    top: str = "linux-6.1/",
    mode: str = "w",
    mtime: int = 0,
    extra: tuple[tarfile.TarInfo, ...] = (),
) -> Path:
    """A tarball of files plus an executable script and a symbolic link, all under `top`."""
    with tarfile.open(path, mode) as tar:  # type: ignore[call-overload]
        for name, data in {**files, SCRIPT: b"#!/bin/sh\n"}.items():
            member = tarfile.TarInfo(top + name)
            member.size, member.mtime = len(data), mtime
            member.mode = 0o755 if name == SCRIPT else 0o644
            tar.addfile(member, io.BytesIO(data))
        link = tarfile.TarInfo(top + LINK)
        link.type, link.linkname, link.mtime = tarfile.SYMTYPE, "../arch/x86", mtime
        tar.addfile(link)
        folder = tarfile.TarInfo(top + "empty")
        folder.type = tarfile.DIRTYPE
        tar.addfile(folder)
        for member in extra:
            tar.addfile(member)
    return path
