# SPDX-License-Identifier: GPL-2.0-or-later
"""Fetch a series by its message-id from a public-inbox archive with b4, which copes with irregular threads of patches.

b4 runs as a program: with a home of its own, without any user's configuration, within limits of time and size.
"""

import os
import re
import subprocess
import sys
from pathlib import Path
from urllib.parse import unquote

from kernels.diffs.safety import MAX_INPUT_BYTES
from kernels.errors import HostUnfit, PatchRejected, SourceUnreachable
from kernels.files.scratch import remove_leftovers, scratch
from kernels.trees.git import PASSED_ON

ARCHIVE = "https://lore.kernel.org/all"
DEADLINE_S = 60.0
_MEMORY_BYTES = 2 * 1024**3
# Does not match anything that b4 would take for an address, an option or one of its prefixes.
_ID = re.compile(r"[A-Za-z0-9][\w.+=%$!#&~^-]{0,180}@[A-Za-z0-9][\w.-]{0,180}")
_ADDRESS = re.compile(r"https?://[^/\s]+/(?:[^/\s]+/)?([^/\s@]+@[^/\s]+)(?:/\S*)?")
_UNREACHABLE = re.compile(r"All hosts failed|Could not retrieve|Max retries|Connection", re.IGNORECASE)
_NOTHING = re.compile(r"No messages found|\b404\b|not found|does not appear|No known messages", re.IGNORECASE)


def message_id(text: str) -> str:
    """Return the bare message-id from text that people paste: an id, in angle brackets or not, or its address in an archive.

    Raises PatchRejected.
    """
    identifier = text.strip()
    if address := _ADDRESS.fullmatch(unquote(identifier)):
        identifier = address[1]
    identifier = re.sub(r"^(?:message-)?id:\s*", "", identifier, flags=re.IGNORECASE).strip("<> ")
    if not _ID.fullmatch(identifier):
        raise PatchRejected(
            "this is not a message-id; give the mail's Message-ID, or its address on lore.kernel.org"
        )
    return identifier


def read_thread(text: str, root: Path, *, archive: str = ARCHIVE, deadline_s: float = DEADLINE_S) -> bytes:
    """Return the newest version of the series that a message belongs to, with its cover letter, as an mbox.

    root: a folder to work in. Raises PatchRejected, SourceUnreachable, HostUnfit.
    """
    asked = message_id(text)
    remove_leftovers(root)
    with scratch(root) as place:
        out = place / "out"
        done = _run(place, _command(asked, out, archive), deadline_s)
        letters = sorted(out.glob("series.mbx"))
        if done.returncode or not letters:
            _explain(asked, archive, done.stdout.decode(errors="replace"))
        size = sum(file.stat().st_size for file in out.iterdir())
        if size > MAX_INPUT_BYTES:
            raise PatchRejected(f"the series of {asked} is larger than {MAX_INPUT_BYTES >> 20} MiB")
        covers = [
            b"From git@z Thu Jan  1 00:00:00 1970\n" + cover.read_bytes() + b"\n"
            for cover in out.glob("series.cover")
        ]
        return b"".join([*covers, letters[0].read_bytes()])


def _command(asked: str, out: Path, archive: str) -> list[str]:
    # pip installs it beside the interpreter.
    b4 = Path(sys.executable).with_name("b4")
    if not b4.exists():
        raise HostUnfit("b4 is not installed: run ./bootstrap again")
    settings = {"b4.midmask": f"{archive}/%s", "b4.attestation-policy": "off"}
    options = [part for key, value in settings.items() for part in ("-c", f"{key}={value}")]
    limits = ["prlimit", f"--fsize={MAX_INPUT_BYTES}", f"--as={_MEMORY_BYTES}", "--"]
    # No follow-up trailers: they change nothing that is built, and cost a search for each patch.
    flags = ["--no-cache", "--no-add-trailers", "--outdir", str(out), "--mbox-name", "series"]
    return [*limits, str(b4), *options, "--no-interactive", "--no-stdin", "am", *flags, "--", asked]


def _run(place: Path, command: list[str], deadline_s: float) -> subprocess.CompletedProcess[bytes]:
    environment = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
    environment |= {"HOME": str(place), "GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull}
    try:
        return subprocess.run(
            command,
            cwd=place,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=deadline_s,
            check=False,
        )
    except FileNotFoundError as exc:
        raise HostUnfit("prlimit is not installed: apt-get install util-linux") from exc
    except subprocess.TimeoutExpired as exc:
        raise SourceUnreachable(
            f"the archive did not answer within {deadline_s:g} s; upload the mbox that b4 am gives you"
        ) from exc


def _explain(asked: str, archive: str, said: str) -> None:
    answer = said.replace(asked, "")
    if _UNREACHABLE.search(answer) and not re.search(r"\b404\b", answer):
        raise SourceUnreachable(
            f"this site cannot reach {archive.split('/')[2]}; run b4 am {asked} yourself and upload its output",
            said,
        )
    if _NOTHING.search(answer):
        raise PatchRejected(f"the archive has no message {asked}", detail=said)
    raise PatchRejected(f"b4 finds no series of patches at {asked}", detail=said)
