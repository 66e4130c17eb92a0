# SPDX-License-Identifier: GPL-2.0-or-later
"""Decide by a positive rule whether an address is public or of a closed network.

An address is public if it lies in the unicast space that registries assign and in no block reserved for another purpose. An address that
stands for another one (a tunnel, a translation, a mapped address) is not public, whatever it stands for.
"""

from ipaddress import IPv4Address, IPv6Address, ip_network

# From 1.0.0.0 to the beginning of multicast; IANA's registry of special-purpose addresses, RFC 6890 and later.
_UNICAST_4 = (IPv4Address("1.0.0.0"), IPv4Address("223.255.255.255"))
_SPECIAL_4 = tuple(
    ip_network(text)
    for text in (
        "10.0.0.0/8",
        "100.64.0.0/10",  # shared by the customers of one provider
        "127.0.0.0/8",
        "169.254.0.0/16",
        "172.16.0.0/12",
        "192.0.0.0/24",
        "192.0.2.0/24",
        "192.31.196.0/24",
        "192.52.193.0/24",
        "192.88.99.0/24",  # relays to 6to4
        "192.168.0.0/16",
        "192.175.48.0/24",
        "198.18.0.0/15",
        "198.51.100.0/24",
        "203.0.113.0/24",
    )
)
# All IPv6 space that registries assign so far; mapped (::ffff:0:0/96), compatible (::/96), translated (64:ff9b::/96,
# 64:ff9b:1::/48), discarded (100::/64), site-local (fec0::/10), private (fc00::/7) and link-local addresses are outside of it.
_UNICAST_6 = ip_network("2000::/3")
_SPECIAL_6 = tuple(
    ip_network(text)
    for text in (
        "2001::/23",  # protocols: Teredo, ORCHID, benchmarks, translation
        "2001:db8::/32",
        "2002::/16",  # 6to4
        "2620:4f:8000::/48",
        "3ffe::/16",  # once an experiment
        "3fff::/20",
    )
)


def is_public(address: IPv4Address | IPv6Address) -> bool:
    """Return whether anybody can reach an address, and it leads to no other address."""
    if isinstance(address, IPv4Address):
        first, last = _UNICAST_4
        return first <= address <= last and not any(address in network for network in _SPECIAL_4)
    if address.scope_id is not None or address not in _UNICAST_6:
        return False
    return not any(address in network for network in _SPECIAL_6)
