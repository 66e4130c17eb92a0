# SPDX-License-Identifier: GPL-2.0-or-later
"""The lab's settings, with the plain lists of bench/load_urls.py beside its own pages and no throttle."""

from lab.settings import *  # noqa: F403
from lab.settings import REST_FRAMEWORK

ROOT_URLCONF = "bench.load_urls"
REST_FRAMEWORK["DEFAULT_THROTTLE_CLASSES"] = []
