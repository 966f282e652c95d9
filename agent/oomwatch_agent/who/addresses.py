"""The addresses by which other machines know this one, and the containers on it."""

import ipaddress
import socket
from collections.abc import Iterable, Iterator
from pathlib import Path

import psutil

from oomwatch import wire


def own_addresses() -> tuple[str, ...]:
    """The IP addresses of this machine, or of the container that the agent is in, in order."""
    families = (socket.AF_INET, socket.AF_INET6)
    # Kubernetes gives the address of every service to a card of that name.
    cards = (card for name, card in psutil.net_if_addrs().items() if not name.startswith("kube-ipvs"))
    told = (one.address for card in cards for one in card if one.family in families)
    return usable(address.partition("%")[0] for address in told)


def addresses_of(process: Path) -> tuple[str, ...]:
    """Those of the network that a process is in, of its folder in /proc: a container's, where it is in one.

    /proc/PID/net/fib_trie writes each address of the machine's own as "|-- 10.0.0.5" and below it "/32 host LOCAL".
    """
    return usable((*_version_4(_lines(process / "net/fib_trie")), *_version_6(_lines(process / "net/if_inet6"))))


def usable(told: Iterable[str]) -> tuple[str, ...]:
    """Without those that every machine has, in order, as many as the protocol allows."""
    parsed = {ipaddress.ip_address(address) for address in told}
    known = sorted(str(address) for address in parsed if not (address.is_loopback or address.is_link_local))
    return tuple(known[: wire.ADDRESSES_MAX])


def _version_4(lines: list[str]) -> Iterator[str]:
    address = ""
    for line in lines:
        words = line.split()
        if words[:1] == ["|--"] and len(words) > 1:
            address = words[1]
        elif words == ["/32", "host", "LOCAL"]:
            yield address


def _version_6(lines: list[str]) -> Iterator[str]:
    """The first word is the address, as 32 hexadecimal digits."""
    for line in lines:
        yield str(ipaddress.IPv6Address(int(line.split()[0], 16)))


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="ascii", errors="replace").splitlines()
    except OSError:  # gone, or a kernel without that version
        return []
