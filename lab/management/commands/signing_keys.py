# SPDX-License-Identifier: GPL-2.0-or-later
"""`manage.py signing_keys`: whose signatures of artifacts count."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from lab.errors import FieldRefused
from lab.models import SigningKey
from lab.storage.signing_keys import revoke_key


class Command(BaseCommand):
    """List the machines' keys, or revoke one: kernels that it signed are built again, its machine makes a new key."""

    help = __doc__

    def add_arguments(self, parser: CommandParser) -> None:
        """Take the key to revoke."""
        parser.add_argument("--revoke", metavar="DIGITS", help="the first digits of a public key")

    def handle(self, *args: Any, **options: Any) -> None:
        """Do it; revoking twice changes nothing. Raises CommandError."""
        if options["revoke"]:
            try:
                revoke_key(options["revoke"])
            except FieldRefused as exc:
                raise CommandError(str(exc)) from exc
        for key in SigningKey.objects.all():
            ended = f", revoked {key.revoked_at:%Y-%m-%d %H:%M}" if key.revoked_at else ""
            self.stdout.write(f"{key.public}  {key.machine}, since {key.made_at:%Y-%m-%d %H:%M}{ended}")
