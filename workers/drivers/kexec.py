# SPDX-License-Identifier: GPL-2.0-or-later
"""From one kernel into the next without the firmware: the offer to a waiting machine, and its result."""

import time
from collections.abc import Callable

from lab.targets.netboot.boots import netboot_progress, take_pieces
from lab.targets.netboot.next_boot import is_left_waiting, waiting_boot
from workers.drivers.netboot_streams import POLL_S, TOKEN
from workers.errors import TargetLost

ASK_S = 10.0
"""From a boot's last record to the machine's request for the next boot: it posts its last pieces in between."""
TAKE_S = 30.0
"""From the offer to its fetch: machines ask every few seconds, or after a lab that restarts has come back."""
LONGEST_REFUSAL = 500


def await_waiting(target: str) -> int | None:
    """Return the boot whose machine waits for the next one; wait for a machine that is about to ask; None if there is none."""
    end = time.monotonic() + ASK_S
    while (boot := waiting_boot(target)) is None and is_left_waiting(target) and time.monotonic() < end:
        time.sleep(POLL_S)
    return boot


def await_heard(boot_id: int, start_s: float, on_wait: Callable[[], None]) -> None:
    """Wait until the machine took the offer, started it, and said something. Raises TargetLost, with its own words.

    start_s: deadline, from when it took the offer. on_wait: called meanwhile.
    """
    end, taken = time.monotonic() + TAKE_S, False
    while True:
        on_wait()
        progress = netboot_progress(boot_id)
        if refused := b"".join(take_pieces(boot_id, "kexec", 0)):
            # The program's message may repeat the command line, and with it the token.
            said = TOKEN.sub(rb"\1...", refused)[:LONGEST_REFUSAL]
            raise TargetLost(" ".join(said.decode(errors="replace").split()))
        if progress.fetches > 1:
            raise TargetLost("the machine started again before the next kernel said a word")
        if progress.received:
            return
        now = time.monotonic()
        if progress.fetches and not taken:
            taken, end = True, now + start_s
        if now >= end and taken:
            raise TargetLost(f"the next kernel said nothing within {start_s:g} s")
        if now >= end:
            raise TargetLost(f"the waiting machine did not fetch the offered boot within {TAKE_S:g} s")
        time.sleep(POLL_S)
