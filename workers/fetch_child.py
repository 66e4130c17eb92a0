# SPDX-License-Identifier: GPL-2.0-or-later
"""One fetch in a process of its own, so that whatever it does can be ended: `python -m workers.fetch_child NUMBER`.

The token comes by standard input, since every user may read the arguments of others' processes.
"""

import logging
import os
import sys

# As in sysexits(3).
TRY_AGAIN = os.EX_TEMPFAIL


def main() -> int:
    """Carry out the fetch; returns the exit code: 0 whenever the row says how it ended, TRY_AGAIN where the database went away."""
    number, token = int(sys.argv[1]), sys.stdin.readline().strip()
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "lab.settings")

    import django

    django.setup()
    from django.db import InterfaceError, OperationalError

    from lab.errors import FetchLost
    from lab.operations.logs import set_up
    from lab.submission.fetches.work import carry_out

    set_up()
    try:
        carry_out(number, token)
    except FetchLost:
        # It was cancelled: there is nothing to write, and nobody to tell.
        return 0
    except (OperationalError, InterfaceError) as exc:
        logging.getLogger(__name__).warning("fetch %s lost the database: %s", number, exc)
        return TRY_AGAIN
    return 0


if __name__ == "__main__":
    sys.exit(main())
