# SPDX-License-Identifier: GPL-2.0-or-later
"""The streams of a machine that posts them over HTTP: read from the tables as they come."""

import logging
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

from lab.targets.netboot.boots import NetbootProgress, netboot_progress, take_pieces
from workers.drivers.streams import Streams
from workers.errors import BootDiscarded, WorkersError

log = logging.getLogger(__name__)

POLL_S = 0.1
QUIET_S = 5.0
"""A machine that has said nothing for so long may be off; heartbeats come every second."""
ASK_AGAIN_S = 5.0
UNANSWERED_S = 30.0
"""Pause before the next question to a BMC that did not answer."""
READ_BYTES = 1 << 16
TOKEN = re.compile(rb"(/netboot/)[\w-]{20,}")


def check_uncontested(progress: NetbootProgress) -> None:
    """Raise BootDiscarded for a boot with requests from another address."""
    if progress.alarm:
        raise BootDiscarded(
            f"this boot is discarded: {progress.alarm}; give the target its address, and keep others off its network"
        )


class PostedStreams(Streams):
    """The two streams of one boot over the network.

    console: the file that somebody else writes the console to; None where the machine posts it too.
    is_on: asks the machine's BMC. reset: whether it asked for its script again, so has started again.
    trouble: what kept the BMC from answering when it was asked last.
    """

    def __init__(
        self, boot_id: int, is_on: Callable[[], bool], console: Path | None, records: Path, posted: Path
    ) -> None:
        """records, posted: files to be written, the machine's records and console."""
        super().__init__(posted.open("wb"), records.open("wb"))
        self.reset = False
        self.trouble = ""
        self._boot_id = boot_id
        self._is_on = is_on
        self._console: BinaryIO | None = console.open("rb") if console else None
        self._taken = {"records": 0, "console": 0}
        self._heard_at = self._asked_at = time.monotonic()
        self._ask_after_s = ASK_AGAIN_S

    def read(self, timeout_s: float) -> None:
        """See Streams."""
        end = time.monotonic() + timeout_s
        while not self._take() and not self.ended and (left := end - time.monotonic()) > 0:
            time.sleep(min(POLL_S, left))

    def close(self) -> None:
        """See Streams."""
        if self._console:
            self._console.close()
        super().close()

    def _take(self) -> bool:
        """Take what has come; False if nothing has. Notices the end."""
        # Read first: records that a machine posted before it started again count.
        progress = netboot_progress(self._boot_id)
        check_uncontested(progress)
        reset = progress.fetches > 1
        has_arrived = self._take_console()
        for piece in self._pieces("records"):
            self.take_records(piece)
            has_arrived = True
        if has_arrived:
            self._heard_at = time.monotonic()
        elif reset or self._is_off():
            self.reset, self.ended = reset, True
        return has_arrived

    def _take_console(self) -> bool:
        if self._console:
            data = self._console.read(READ_BYTES)
            if data:
                self.watch_console(data)
            return bool(data)
        pieces = self._pieces("console")
        for piece in pieces:
            # The kernel prints its command line, and with it the token; the agent sends whole lines.
            self.take_console(TOKEN.sub(rb"\1...", piece))
        return bool(pieces)

    def _pieces(self, stream: str) -> list[bytes]:
        pieces = take_pieces(self._boot_id, stream, self._taken[stream])
        self._taken[stream] += len(pieces)
        return pieces

    def _is_off(self) -> bool:
        """Return whether a machine that has fallen silent is off; False if its BMC does not answer."""
        now = time.monotonic()
        if now < self._heard_at + QUIET_S or now < self._asked_at + self._ask_after_s:
            return False
        try:
            off = not self._is_on()
        except WorkersError as error:
            log.warning("netboot %s: %s", self._boot_id, error)
            self.trouble, self._ask_after_s = str(error), UNANSWERED_S
            off = False
        else:
            self.trouble, self._ask_after_s = "", ASK_AGAIN_S
        self._asked_at = time.monotonic()
        return off
