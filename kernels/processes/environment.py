# SPDX-License-Identifier: GPL-2.0-or-later
"""The environment of programs that we start: never our own, which may hold passwords and keys.

A program that works on strangers' material can be made to print its environment, and other processes of its user can read it in
/proc/PID/environ. So each program gets only the variables that it needs, by name. A test (test_house.py) fails if a program is
started without an explicit environment.
"""

import os

# Debian keeps some tools in sbin, which is not on an ordinary user's path.
_SYSTEM = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def minimal() -> dict[str, str]:
    """Return the environment of programs that need none of our variables: only PATH, and a locale for plain messages."""
    return {"PATH": f"{os.environ.get('PATH', '')}:{_SYSTEM}".lstrip(":"), "LC_ALL": "C"}


def passing(*names: str) -> dict[str, str]:
    """Return the minimal environment and the named variables of ours that are set; never name a secret."""
    return minimal() | {name: os.environ[name] for name in names if name in os.environ}
