# SPDX-License-Identifier: GPL-2.0-or-later
"""What a WSGI server such as gunicorn loads: `gunicorn web.wsgi`."""

import os

from django.core.wsgi import get_wsgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "lab.settings")

application = get_wsgi_application()
