# SPDX-License-Identifier: GPL-2.0-or-later
"""`manage.py deploy`: make this code the lab's."""

from typing import Any

from django.core.management import call_command
from django.core.management.base import BaseCommand

from lab.leases.version import code_version, deploy


class Command(BaseCommand):
    """Migrate the database and declare this code the lab's: workers with other code then take no more work."""

    help = __doc__

    def handle(self, *args: Any, **options: Any) -> None:
        """Deploy; harmless to repeat."""
        call_command("migrate", verbosity=options["verbosity"], interactive=False)
        new = deploy(code_version())
        self.stdout.write(f"the lab runs version {code_version()}{'' if new else ', as before'}")
