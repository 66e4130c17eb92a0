# SPDX-License-Identifier: GPL-2.0-or-later
"""The address at which a machine that boots over the network reaches the lab."""

import ipaddress
from urllib.parse import urlsplit

from django.conf import settings

from lab.errors import SettingWrong


def netboot_url() -> str:
    """The lab's address as machines are given it. Raises SettingWrong.

    http:// and an IPv4 address: neither a machine's firmware nor its kernel has certificates, or looks up names.
    """
    url = settings.NETBOOT_URL
    parts = urlsplit(url)
    try:
        address = ipaddress.IPv4Address(parts.hostname or "")
    except ValueError:
        address = None
    if parts.scheme != "http" or address is None or address.is_loopback or parts.query:
        raise SettingWrong(
            f'machines cannot boot from "{url}": set KPERFLAB_NETBOOT_URL to http:// and the IPv4 address of the lab '
            "in their network, such as http://10.20.0.1:8000"
        )
    return url.rstrip("/")
