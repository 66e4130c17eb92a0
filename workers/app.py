# SPDX-License-Identifier: GPL-2.0-or-later
"""The Celery application; importing it makes Django ready, so it comes before `lab.models`.

Only a fleet's processes send and take messages: they call `over_the_broker()` first. One machine's worker calls the tasks as
functions. Messages are only wake-ups, so none of Celery's guarantees matters: messages are acknowledged before the
work and never resent, and a lost or duplicate message does no harm.
"""

import os
from urllib.parse import urlsplit

import django
from celery import Celery
from celery.signals import setup_logging

from lab.operations.logs import set_up

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "lab.settings")
django.setup()

from django.conf import settings  # noqa: E402  the settings are there now

from workers.errors import MachineUnfit  # noqa: E402

app = Celery("kperflab")
app.conf.update(
    broker_url="memory://localhost/",
    result_backend=None,
    task_ignore_result=True,
    task_serializer="json",
    accept_content=["json"],
    task_default_queue="upkeep",
    task_acks_late=False,
    # No limit: a message whose acknowledgement failed would occupy it for ever, and the worker would never take another.
    # A message taken too early is a wake-up, which does no harm.
    worker_prefetch_multiplier=0,
    # Leases decide how long work may take without a sign of life, not Celery.
    task_time_limit=None,
    task_soft_time_limit=None,
    # Wait for a broker that is down; work under way continues, since the database keeps track of it.
    broker_connection_retry=True,
    broker_connection_retry_on_startup=True,
    broker_connection_max_retries=None,
    worker_cancel_long_running_tasks_on_connection_loss=False,
    # A worker that waits for messages notices a cut network.
    # An idle worker polls Redis this often, not every second: a message ends the wait at once.
    broker_transport_options={
        "polling_interval": 5,
        "socket_keepalive": True,
        "health_check_interval": 10,
        "socket_connect_timeout": 5,
    },
    broker_connection_timeout=5,
    worker_enable_remote_control=False,
    worker_send_task_events=False,
    worker_hijack_root_logger=False,
    worker_redirect_stdouts=False,
    enable_utc=True,
)


def over_the_broker() -> Celery:
    """Make this process send and take messages; returns the application. Raises MachineUnfit."""
    if not settings.REDIS:
        raise MachineUnfit(
            "workers of a fleet are woken over Redis: set KPERFLAB_REDIS, or run `labctl work --local` on one machine"
        )
    app.conf.update(broker_url=broker_url(settings.REDIS))
    return app


def broker_url(redis: str) -> str:
    """Celery's spelling of a Redis URL: it has a name of its own for sockets."""
    parts = urlsplit(redis)
    if parts.scheme != "unix":
        return redis
    return f"redis+socket://{parts.netloc}{parts.path}?virtual_host=0"


@setup_logging.connect
def _log(**_given: object) -> None:
    """Make Celery's processes log as all others do; Celery would install its own format."""
    set_up()
