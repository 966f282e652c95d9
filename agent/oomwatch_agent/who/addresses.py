"""The addresses by which other machines know this one, and the containers on it."""

import array
import contextlib
import fcntl
import ipaddress
import socket
import struct
from collections.abc import Iterable, Iterator
from pathlib import Path

from oomwatch import wire

# Of netdevice(7): the request for all addresses of version 4. An entry of the answer is a card's name and a socket's
# address, in which family and port come first. It has 40 bytes, or 32 where pointers have four.
_SIOCGIFCONF = 0x8912
_NAME_BYTES = 16
_ENTRY_BYTES = 24 + 2 * struct.calcsize("P")
_ADDRESS = slice(_NAME_BYTES + 4, _NAME_BYTES + 8)


def own_addresses() -> tuple[str, ...]:
    """The IP addresses of this machine, or of the container that the agent is in, in order."""
    # Kubernetes gives the address of every service to a card of that name.
    return usable(address for card, address in addresses_here() if not card.startswith("kube-ipvs"))


def addresses_here() -> Iterator[tuple[str, str]]:
    """Name of the card, and address, of all addresses of the network that this process is in."""
    with contextlib.suppress(OSError):  # no Linux
        yield from _version_4_here()
    for line in _lines(Path("/proc/self/net/if_inet6")):
        words = line.split()
        yield words[-1], str(ipaddress.IPv6Address(int(words[0], 16)))


def _version_4_here() -> Iterator[tuple[str, str]]:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        room = array.array("B", bytes(_configured(any_socket, 0, 0)))
        written = _configured(any_socket, len(room), room.buffer_info()[0])
    told = room.tobytes()[:written]
    for begin in range(0, len(told), _ENTRY_BYTES):
        entry = told[begin : begin + _ENTRY_BYTES]
        yield entry[:_NAME_BYTES].split(b"\0")[0].decode("ascii", "replace"), socket.inet_ntoa(entry[_ADDRESS])


def _configured(any_socket: socket.socket, length: int, place: int) -> int:
    """How many bytes of entries were written there; without a place, how many there are."""
    written: int = struct.unpack("iP", fcntl.ioctl(any_socket, _SIOCGIFCONF, struct.pack("iP", length, place)))[0]
    return written


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
