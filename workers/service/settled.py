# SPDX-License-Identifier: GPL-2.0-or-later
"""Set up everything that needs the database: tables, the lab's version, the pages' files, targets. A separate program, since what it
imports reads the settings once."""

import json
import sys

from django.conf import settings
from django.core.management import call_command
from django.db import connection

import workers.app  # noqa: F401  makes Django ready before lab is imported
from lab.leases.version import code_version, deploy, lab_version
from lab.models import Deployment, Experiment, Target
from lab.targets.drivers import is_guest
from workers import local
from workers.service.targets import targets_here


def look() -> dict[str, object]:
    """Return whether the tables are of other code, or missing."""
    known = Deployment._meta.db_table in connection.introspection.table_names()
    return {"new_code": not known or lab_version() != code_version()}


def settle() -> dict[str, object]:
    """Bring everything up to date; return targets and the number of experiments."""
    call_command("migrate", verbosity=0, interactive=False)
    if settings.STATIC_ROOT:
        call_command("collectstatic", verbosity=0, interactive=False, clear=True)
    deploy(code_version())
    return {
        "targets": targets_here(),
        "experiments": Experiment.objects.count(),
    }


def sweep() -> dict[str, object]:
    """Remove what workers that were killed left on this machine."""
    drivers = Target.objects.values_list("driver", flat=True)
    return {"removed": local.sweep() if any(map(is_guest, drivers)) else []}


if __name__ == "__main__":
    json.dump({"look": look, "settle": settle, "sweep": sweep}[sys.argv[1]](), sys.stdout)
