"""PURE: addresses of the other end, in one form. A socket of both families tells IPv4's as ::ffff:192.0.2.1."""

import ipaddress
from collections.abc import Sequence
from typing import TypeAlias

Address: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address
Network: TypeAlias = ipaddress.IPv4Network | ipaddress.IPv6Network

THIS_MACHINE: tuple[Network, ...] = (ipaddress.ip_network("127.0.0.0/8"), ipaddress.ip_network("::1"))
CHARS_MAX = 45  # of the longest IPv6 address
IPV6_HOME_BITS = 64  # whoever has one address of such a network has all of them


def address_in(text: str) -> Address | None:
    """The address that a text names; None where it names none."""
    try:
        found = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return None
    mapped = found.ipv4_mapped if isinstance(found, ipaddress.IPv6Address) else None
    return mapped or found


def normal(text: str) -> str:
    """The address as it is written where there is but one way to; what is none as it is, no longer than one."""
    found = address_in(text)
    return text[:CHARS_MAX] if found is None else str(found)


def home(text: str) -> str:
    """What counts as one: an IPv4 address, or an IPv6 network; what is no address for itself."""
    found = address_in(text)
    if isinstance(found, ipaddress.IPv6Address) and not found.is_loopback:
        return str(ipaddress.ip_network((found, IPV6_HOME_BITS), strict=False))
    return normal(text)


def is_in(text: str, networks: Sequence[Network]) -> bool:
    """Whether the address is of one of these."""
    found = address_in(text)
    return found is not None and any(found in network for network in networks)
