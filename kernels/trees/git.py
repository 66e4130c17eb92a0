# SPDX-License-Identifier: GPL-2.0-or-later
"""Run git on one bare repository: no hooks, no user configuration, no prompts, always a deadline."""

import os
import re
import subprocess
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import IO

from kernels.errors import DiskFull, GitFailed, HostUnfit, OutputTooLong
from kernels.processes.exchange import talk
from kernels.processes.lifeline import Lifeline, lifeline

# What git and the programs it starts (ssh, git-remote-https) need of our environment. Everything else stays
# out: a stray GIT_DIR or GIT_INDEX_FILE, a user's aliases, a credential helper that waits for a password.
PASSED_ON = (
    *("PATH", "HOME", "SSH_AUTH_SOCK", "TMPDIR", "http_proxy", "https_proxy", "no_proxy", "HTTPS_PROXY"),
    *("NO_PROXY", "SSL_CERT_FILE", "SSL_CERT_DIR", "GIT_SSL_CAINFO"),
)
FIXED = {
    "LC_ALL": "C",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_SSH_COMMAND": "ssh -oBatchMode=yes",
    "GIT_ALLOW_PROTOCOL": "",  # the fetching function names one
}
# Harmless flaws of real history: a mode written with a leading zero, which git reads as the mode without it, and
# author lines that early or foreign tools wrote. An author, a mail address and a date are only ever shown as text.
HARMLESS = (
    *("zeroPaddedFilemode", "badTimezone", "badDate", "badDateOverflow", "zeroPaddedDate"),
    *("missingSpaceBeforeDate", "missingSpaceBeforeEmail", "missingNameBeforeEmail", "missingEmail"),
    *("badEmail", "badName", "missingTaggerEntry"),
)
SETTINGS = {
    "core.hooksPath": os.devnull,
    "core.attributesFile": os.devnull,
    "core.fsmonitor": "false",
    "core.compression": "1",  # 17 s for a kernel tree; the default level takes three times as long
    # Loose objects too: git never writes again what has a name, though a power cut may have left it without a byte.
    "core.fsync": "committed",
    "gc.auto": "0",  # the commits we make for variants must outlive their refs
    "advice.detachedHead": "false",
    # Names that mean git's own folder on some file system are refused on all.
    "core.protectHFS": "true",
    "core.protectNTFS": "true",
    # Larger blobs are streamed and never compared; a kernel's largest file has about 25 MiB.
    "core.bigFileThreshold": "64m",
    # Everything that is received is checked object by object; ways of fetching that skip the check are off.
    "transfer.fsckObjects": "true",
    "fetch.fsckObjects": "true",
    "receive.fsckObjects": "true",
    "transfer.unpackLimit": "1",
    "fetch.unpackLimit": "1",
    "fetch.uriProtocols": "",
    "transfer.bundleURI": "false",
    "submodule.recurse": "false",
    "fetch.recurseSubmodules": "false",
    "uploadpack.allowFilter": "false",
    "credential.helper": "",
    "http.followRedirects": "false",
    **{f"{area}.fsck.{flaw}": "ignore" for area in ("fetch", "receive") for flaw in HARMLESS},
}
# One identity and one date for every commit we make, so that equal content has an equal id everywhere.
IDENTITY = "kperflab <kperflab@localhost>"
COMMITTER = {
    f"GIT_{role}_{field}": value
    for role in ("AUTHOR", "COMMITTER")
    for field, value in (("NAME", "kperflab"), ("EMAIL", "kperflab@localhost"), ("DATE", "@0 +0000"))
}
DEADLINE_S = 120.0
# Enough for the diff of a long series, or a list of a large kernel's files; no other output is longer.
MOST_OUTPUT = 512 << 20
DISK_FULL = re.compile(r"No space left on device|Out of diskspace|Disk quota exceeded")
TOO_MUCH_MEMORY = re.compile(r"[Oo]ut of memory|malloc failed|mmap failed|Cannot allocate memory")
_PASSWORD = re.compile(r"//[^/@\s]+@")


def git_command(*arguments: str) -> list[str]:
    """Return the argument list of git with our settings before the caller's arguments."""
    settings = [part for key, value in SETTINGS.items() for part in ("-c", f"{key}={value}")]
    return ["git", *settings, *arguments]


def git_environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the cleaned environment in which git runs, with `extra` over it."""
    passed = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
    return {**passed, **FIXED, **(extra or {})}


def hide_password(text: str) -> str:
    """Return a text without the user names and tokens of its URLs, to be shown or stored."""
    return _PASSWORD.sub("//", text)


def try_git(
    repository: Path | str,
    *arguments: str,
    data: bytes | IO[bytes] = b"",
    environment: Mapping[str, str] | None = None,
    deadline_s: float = DEADLINE_S,
    limits: Mapping[str, int] | None = None,
    most_output: int = MOST_OUTPUT,
    watch: Callable[[bytes], None] | None = None,
) -> subprocess.CompletedProcess[bytes]:
    """Run a git command on `repository` and return its status and output, whatever the status; stderr is cut to its last 64 KiB.

    data: bytes, or an open file of which the rest is sent. limits: by prlimit's names, as `fsize` for the size of the largest file it may
    write, and `data` for the bytes it may allocate. most_output: the bytes it may print; watch: gets the end of stderr while git runs.
    Raises GitFailed at the deadline, OutputTooLong, HostUnfit, DiskFull.
    """
    options = [f"--{name}={value}" for name, value in (limits or {}).items()]
    # If the signal is ignored, a write over the limit fails and git reports it, instead of dying silently.
    limited = ["env", "--ignore-signal=XFSZ", "prlimit", "--core=0", *options, "--"] if options else []
    command = [*limited, *git_command(f"--git-dir={repository}", *arguments)]
    # Only a command that waits for another host can run forever; all others end with their pipes.
    waits = bool((environment or {}).get("GIT_ALLOW_PROTOCOL"))
    with lifeline() if waits else nullcontext() as held:
        process = _start(held.guarded(command) if held else command, environment, held)
        try:
            out, err = talk(process, data, seconds=deadline_s, most_output=most_output, watch=watch)
        except OutputTooLong as exc:
            raise OutputTooLong(f"git {_verb(arguments)}: {exc}") from exc
        except subprocess.TimeoutExpired as exc:
            raise GitFailed(f"git {_verb(arguments)} did not end within {deadline_s:g} s") from exc
    if process.returncode and DISK_FULL.search(err.decode(errors="replace")):
        raise DiskFull("the disk that holds the source trees is full: free some space, then try again")
    return subprocess.CompletedProcess(command, process.returncode, out, err)


def _start(
    command: list[str], environment: Mapping[str, str] | None, held: Lifeline | None
) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=git_environment(environment),
            start_new_session=True,  # so that the deadline also ends what git started
            pass_fds=(held.descriptor,) if held else (),
        )
    except FileNotFoundError as exc:
        raise HostUnfit("git is not installed: apt-get install git") from exc


def run_git(
    repository: Path,
    *arguments: str,
    data: bytes = b"",
    environment: Mapping[str, str] | None = None,
    deadline_s: float = DEADLINE_S,
    limits: Mapping[str, int] | None = None,
    most_output: int = MOST_OUTPUT,
) -> bytes:
    """Run a git command on `repository` and return its stdout. Raises GitFailed if its status is not 0."""
    done = try_git(
        repository,
        *arguments,
        data=data,
        environment=environment,
        deadline_s=deadline_s,
        limits=limits,
        most_output=most_output,
    )
    if done.returncode:
        detail = hide_password(done.stderr.decode(errors="replace").strip())
        last = detail.splitlines()[-1] if detail else "it wrote nothing"
        raise GitFailed(f"git {_verb(arguments)} ended with status {done.returncode}: {last}", detail)
    return done.stdout


def _verb(arguments: tuple[str, ...]) -> str:
    """git's subcommand: the first word that is neither an option nor the value of a -c."""
    words = zip(arguments, ("", *arguments), strict=False)
    return next((word for word, before in words if not word.startswith("-") and before != "-c"), "")
