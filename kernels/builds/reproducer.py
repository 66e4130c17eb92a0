# SPDX-License-Identifier: GPL-2.0-or-later
"""Writes the script that builds an artifact's kernel again, bit for bit, from a checkout of its base."""

from __future__ import annotations

import base64
import gzip
import hashlib
import io
import shlex
import tarfile
import textwrap
from pathlib import Path

from kernels.builds import kbuild
from kernels.builds.front_build import PATH
from kernels.builds.front_program import FLAGS
from kernels.builds.front_sources import source_files
from kernels.builds.request import BuildRequest, local_version
from kernels.sandbox.command import OBJECTS, SOURCE
from kernels.trees.git import run_git

# If the difference is larger, the script needs a checkout of the revision itself.
_MAX_DIFF = 8 << 20

_SCRIPT = """#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Builds the kernel {release_end} of kperflab again and compares it.
#
# Usage: reproducer.sh SOURCE OBJECTS
#   SOURCE   a checkout of {start} ({tree}); it is {touched}
#   OBJECTS  a directory to build in, empty at first
#
# Made with {cc}
#       and {ld}
# Needs gcc, make, flex, bison, bc, libelf-dev, libssl-dev{needs} and bubblewrap. The paths that the compiler sees are
# part of the bytes: so the two directories are shown to it as {source} and {objects}.
set -eu
[ $# = 2 ] || {{ sed -n '3,8s/^# //p' "$0"; exit 2; }}
source=$(realpath "$1"); mkdir -p "$2"; objects=$(realpath "$2")
{apply}
base64 -d <<'END_OF_CONFIG' | gzip -d >"$objects/.config"
{config}
END_OF_CONFIG
{front}bwrap --unshare-all --die-with-parent --ro-bind /usr /usr --ro-bind-try /etc/alternatives /etc/alternatives \\
    --symlink usr/bin /bin --symlink usr/sbin /sbin --symlink usr/lib /lib --symlink usr/lib64 /lib64 \\
    --proc /proc --dev /dev --tmpfs /tmp --ro-bind "$source" {source} --bind "$objects" {objects} {show}\\
    --clearenv {environment} \\
    make -C {source} O={objects} -j "$(nproc)" {flags} all
echo "{sha256}  $objects/vmlinux" | sha256sum -c -
"""


# Compiles everything, without any store of compiled files.
_FRONT = """front=$(mktemp -d); trap 'rm -r "$front"' EXIT
base64 -d <<'END_OF_FRONT' | tar -xz -C "$front"
{sources}
END_OF_FRONT
g++ {flags} -o "$front/{cc}" "$front"/*.cc -lz
printf 'compiler /usr/bin/{cc}\\nidentity none\\n' >"$front/front.conf"
"""


def reproducer(request: BuildRequest, config: str, key: str, vmlinux: Path, *, front: bool = False) -> bytes:
    """Return the text of the script; it contains the whole config, the difference from the base, and the expected hash.

    front: whether the compiler front compiled; the script then contains its sources too.
    """
    start, apply = _start(request)
    flags = (*kbuild.make_flags(request.toolchain), f"LOCALVERSION={local_version(key)}")
    with vmlinux.open("rb") as file:
        sha256 = hashlib.file_digest(file, "sha256").hexdigest()
    text = _SCRIPT.format(
        release_end=local_version(key),
        start=start,
        touched="patched in place" if apply else "not changed",
        tree=request.tree.name,
        cc=request.toolchain.cc_version,
        ld=request.toolchain.ld_version,
        source=SOURCE,
        objects=OBJECTS,
        apply=apply,
        needs=", zlib1g-dev" if front else "",
        front=_front(request.toolchain.cc) if front else "",
        show='--ro-bind "$front" /build/front ' if front else "",
        config=_packed(config.encode()),
        environment=" ".join(
            f"--setenv {name} {shlex.quote(value)}"
            for name, value in {**kbuild.ENVIRONMENT, **({"PATH": PATH} if front else {})}.items()
        ),
        flags=" ".join(shlex.quote(flag) for flag in flags),
        sha256=sha256,
    )
    return text.encode()


def _front(cc: str) -> str:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        for path in source_files():
            about = tarfile.TarInfo(path.name)
            about.size = path.stat().st_size
            archive.addfile(about, io.BytesIO(path.read_bytes()))
    return _FRONT.format(sources=_packed(packed.getvalue()), flags=" ".join(FLAGS), cc=cc)


def _start(request: BuildRequest) -> tuple[str, str]:
    """Return the commit to check out, and the commands that turn it into the sources that were built."""
    base, revision = request.base, request.revision
    if base.tree_id == revision.tree_id:
        return f"commit {base.commit}", ""
    trees = ("--end-of-options", base.tree_id, revision.tree_id)
    diff = run_git(request.tree.repository, "diff", "--binary", "--no-renames", "--no-ext-diff", *trees)
    if len(diff) > _MAX_DIFF:
        return f"commit {revision.commit}", ""
    apply = (
        "base64 -d <<'END_OF_DIFF' | gzip -d | (cd \"$source\" && git apply --whitespace=nowarn -)\n"
        f"{_packed(diff)}\nEND_OF_DIFF"
    )
    return f"commit {base.commit}", apply


def _packed(data: bytes) -> str:
    return "\n".join(textwrap.wrap(base64.b64encode(gzip.compress(data, mtime=0)).decode(), 100))
