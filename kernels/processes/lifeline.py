# SPDX-License-Identifier: GPL-2.0-or-later
"""End a command and all that it started when our process ends.

A signal at the parent's death reaches only the child: git's own helper, which waits for a silent host, would stay. So the
command starts with a guard in its process group that waits for the end of a pipe. The other end is ours: it closes when this
process ends, even by SIGKILL, and the guard kills the group.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

# $0 is the pipe's descriptor, opened by its path since dash takes no number of two digits. The guard keeps nothing but the pipe
# open, so that no reader of the command's output waits for the guard.
_GUARDED = '( exec <"/proc/self/fd/$0" >/dev/null 2>&1; read -r never; kill -9 0 ) & exec "$@"'


@dataclass(frozen=True, slots=True)
class Lifeline:
    """The guard's end of a pipe, to be handed to one command by `pass_fds`."""

    descriptor: int

    def guarded(self, command: Sequence[str]) -> list[str]:
        """Return a command with its guard. Start it as the leader of its own session or process group."""
        return ["sh", "-c", _GUARDED, str(self.descriptor), *command]


@contextmanager
def lifeline() -> Iterator[Lifeline]:
    """Limit a command's life to that of the block; the rest of its process group is then killed."""
    guards, ours = os.pipe()
    try:
        yield Lifeline(guards)
    finally:
        for descriptor in (guards, ours):
            os.close(descriptor)
