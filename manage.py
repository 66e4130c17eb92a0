#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Django's command line, with the lab's settings."""

import os
import sys


def main() -> None:
    """Run one management command."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "lab.settings")
    from django.core.management import execute_from_command_line

    from lab.errors import SettingWrong

    try:
        execute_from_command_line(sys.argv)
    except SettingWrong as exc:
        sys.exit(f"manage.py: {exc}")


if __name__ == "__main__":
    main()
