# SPDX-License-Identifier: GPL-2.0-or-later
"""The end of a process that serves pages."""

from __future__ import annotations

import socket

from web.serving import PagesWorker


def test_who_comes_while_a_process_ends_is_left_to_the_next_one() -> None:
    ending = PagesWorker.__new__(PagesWorker)
    ending.alive = False
    with (
        socket.create_server(("127.0.0.1", 0)) as listener,
        socket.create_connection(listener.getsockname()) as who,
    ):
        ending.accept(None, listener)
        listener.settimeout(5)
        taken, address = listener.accept()
        taken.close()
        assert address == who.getsockname()
