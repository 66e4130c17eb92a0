# SPDX-License-Identifier: GPL-2.0-or-later
"""The Celery application; importing it makes Django ready, so it comes before `lab.models`."""

import os

import django
from celery import Celery

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "lab.settings")
django.setup()

app = Celery("kperflab")
app.conf.update(
    # One process, no broker: a task is called where it is sent, its errors reach the caller.
    task_always_eager=True,
    task_eager_propagates=True,
    broker_url="memory://localhost/",
    result_backend=None,
    task_ignore_result=True,
)
