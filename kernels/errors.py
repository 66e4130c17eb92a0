# SPDX-License-Identifier: GPL-2.0-or-later
"""Exceptions between a patch and an artifact, each with `blame` and `retry`.

`str(error)` is one line for people: it names the thing and the way out. `detail` holds the long
part (a hunk, the tail of a log, the stderr of a command), `log` is the file of a build's output. Two class attributes let one place decide what happens next:
`blame` is "submission", "kernel" or "lab"; `retry` says whether the same thing may be retried.
"""

from collections.abc import Iterable
from difflib import get_close_matches
from pathlib import Path
from typing import ClassVar, Literal

from kernels.printable import shown, shown_line

Blame = Literal["submission", "kernel", "lab"]

# A list of valid names longer than this tells a reader nothing.
NAMES_SHOWN = 12


class KernelsError(Exception):
    """Something this package cannot do; the base of all its errors."""

    blame: ClassVar[Blame] = "lab"
    retry: ClassVar[bool] = False

    def __init__(self, message: str, detail: str = "", *, log: Path | None = None) -> None:
        # Both may hold strangers' text: characters that a terminal would obey, or no database stores, are shown as escapes.
        super().__init__(shown_line(message))
        self.detail = shown(detail)
        self.log = log


def suggest(name: str, valid: Iterable[str]) -> str:
    """Return a text that lists the valid names, the nearest first: `Did you mean "x"? There are x, y, z.`"""
    names = list(dict.fromkeys(valid))
    if not names:
        return "There are none yet."
    near = get_close_matches(name, names, n=3, cutoff=0.5)
    shown = near + [other for other in names if other not in near]
    more = f" and {len(shown) - NAMES_SHOWN} more" if len(shown) > NAMES_SHOWN else ""
    question = f'Did you mean "{near[0]}"? ' if near else ""
    return f"{question}There are {', '.join(shown[:NAMES_SHOWN])}{more}."


# What was submitted


class PatchRejected(KernelsError):
    """A patch that is not allowed near a tree, not made for it, or cannot be read; names file, hunk and reason."""

    blame = "submission"

    def __init__(self, reason: str, *, file: str = "", hunk: str = "", detail: str = "") -> None:
        where = ", ".join(part[:200] for part in (file, hunk) if part)
        super().__init__(f"{where}: {reason}" if where else reason, detail)
        self.file, self.hunk, self.reason = file, hunk, reason


class MailUnreadable(PatchRejected):
    """A mail with a structure that no mailer produces; names the mail by its number."""


class SeriesIncomplete(PatchRejected):
    """A series with gaps or of several versions, which is taken only if the submitter confirms it."""

    def __init__(self, reason: str) -> None:
        ways = "send the whole series (b4 am <message-id> fetches it), or set partial = true to take what is here"
        super().__init__(f"{reason}; {ways}")


class PatchDamaged(PatchRejected):
    """A diff that cannot be read; a repair against the base may still be possible."""


class Unplaceable(KernelsError):
    """A hunk of a damaged diff that cannot be repaired, and why. The intake reports it as a refused hunk."""

    blame = "submission"


class PatchDoesNotApply(KernelsError):
    """A well-formed patch whose old side is not in the tree; names patch, file and hunk."""

    blame = "submission"

    def __init__(self, title: str, *, file: str, hunk: str = "", reason: str, detail: str = "") -> None:
        where = f"{file}, {hunk}" if hunk else file
        super().__init__(f'"{title}" does not apply: {where}: {reason}', detail)
        self.title, self.file, self.hunk, self.reason = title, file, hunk, reason


class UnknownTree(KernelsError):
    """No tree is registered under this name, the name is already used for another location, or nothing is at this location."""

    blame = "submission"


class TreeUnreadable(KernelsError):
    """An archive or a git location that exists but cannot be imported."""

    blame = "submission"


class TreeTooLarge(KernelsError):
    """A repository with more bytes, names or nesting than the limits of a fetch allow; the message names the limit."""

    blame = "submission"


class UnknownRevision(KernelsError):
    """The tree has no such revision (the message names the nearest ones), or has it, but not before the other end of a range."""

    blame = "submission"


class UnknownPath(KernelsError):
    """The tree has no such file at this revision."""

    blame = "submission"


class ConfigRejected(KernelsError):
    """A fragment, a config symbol or an external module that this tree cannot be built with; names it."""

    blame = "submission"


# What the kernel did


class CompileFailed(KernelsError):
    """The kernel did not compile: the message is the first error line, `log` the whole output."""

    blame = "kernel"


class BuildTimedOut(KernelsError):
    """The build did not end by its deadline; `log` is what it wrote until then."""

    blame = "kernel"


# What the lab lacks


class ReadingStopped(KernelsError):
    """A stranger's file that takes more resources than its reader may use, or that makes its reader fail unexpectedly."""

    blame = "kernel"


class ReaderUnavailable(KernelsError):
    """No separate process could be started to read an untrusted file, or that is not a regular file."""

    retry = True


class HostUnfit(KernelsError):
    """This machine lacks a program (the message names its Debian package), its signing key or a sound catalogue of patches."""


class GitFailed(KernelsError):
    """git ended with an error that none of our own explains; detail is its stderr."""


class OutputTooLong(GitFailed):
    """git printed more than is allowed; callers that read a stranger's tree turn it into an error of their own."""


class SourceUnreachable(KernelsError):
    """A remote git repository or mail archive that does not answer, or breaks off; it may be back later."""

    retry = True


class LockBusy(KernelsError):
    """A build or an import needs something that another process has kept locked for longer than either takes."""

    retry = True


class DiskFull(KernelsError):
    """There is not enough disk space to start the work, or the disk filled up during it."""

    retry = True


class ArtifactMissing(KernelsError):
    """The store has no artifact under this key."""

    retry = True


class ArtifactCorrupt(KernelsError):
    """An artifact whose files are not what its metadata says."""

    retry = True


class BundleRefused(KernelsError):
    """A git bundle that is damaged, or contains anything but the one requested commit."""


class SandboxFailed(KernelsError):
    """The sandbox itself could not be set up, before the command in it began."""

    retry = True


class BuildTooLarge(KernelsError):
    """A build filled more of the disk, in bytes or in files, than one build may."""

    blame = "submission"


class ArtifactRefused(KernelsError):
    """A build produced something that no kernel build makes: a link, a device, too many or too large files."""

    blame = "submission"


class BuildOutOfMemory(KernelsError):
    """The host's kernel killed a program of the build, or of its config, for lack of memory; `log` is a build's output until then."""


class BuildInterrupted(KernelsError):
    """The sandbox around a build or a config was killed from outside, or other processes took the CPUs; `log` is the output until then."""

    retry = True
