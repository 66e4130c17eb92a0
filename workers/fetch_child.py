# SPDX-License-Identifier: GPL-2.0-or-later
"""One fetch in a process of its own, so that whatever it does can be ended: `python -m workers.fetch_child NUMBER`.

The token comes by standard input, since every user may read the arguments of others' processes.
"""

import os
import sys


def main() -> int:
    """Carry out the fetch; returns the exit code: 0 whenever the row says how it ended."""
    number, token = int(sys.argv[1]), sys.stdin.readline().strip()
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "lab.settings")

    import django

    django.setup()
    from lab.errors import FetchLost
    from lab.operations.logs import set_up
    from lab.submission.fetches.work import carry_out

    set_up()
    try:
        carry_out(number, token)
    except FetchLost:
        # It was cancelled: there is nothing to write, and nobody to tell.
        return 0
    return 0


if __name__ == "__main__":
    sys.exit(main())
