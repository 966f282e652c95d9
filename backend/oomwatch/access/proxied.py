"""PURE: people whom a proxy before the server has signed in, by a header that is believed from its addresses alone."""

import ipaddress
import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from oomwatch.access.addresses import Network, is_in
from oomwatch.access.person import name_objection
from oomwatch.access.roles import RoleMap
from oomwatch.access.token import Token
from oomwatch.options import SettingError

OUTSIDE = "proxy "  # so begin the ids of tokens that no database has
_HEADER = re.compile(r"[A-Za-z0-9-]{1,100}")
_OTHERS = frozenset({"authorization", "cookie", "host", "origin", "x-forwarded-for", "x-forwarded-proto"})


class UnknownPersonError(Exception):
    """The proxy's word is of no use; the text says why."""


class ProxyHeader(NamedTuple):
    """Which header names the person, which one their groups, and whose word counts."""

    name: str
    role_name: str
    networks: tuple[Network, ...]
    roles: RoleMap

    def believes(self, peer: str) -> bool:
        """Whether this address, the other end of the connection itself, is a proxy's."""
        return is_in(peer, self.networks)

    def token(self, peer: str, values_of: Callable[[str], Sequence[str]]) -> Token | None:
        """The person's; None where nobody is named, or by somebody who is not believed. Raises UnknownPersonError."""
        given = values_of(self.name)
        if not given or not self.believes(peer):
            return None
        if len(given) > 1:  # one of them may be the browser's own
            raise UnknownPersonError(
                f"the proxy sent {self.name} {len(given)} times; it must replace what a browser sent"
            )
        name = given[0].strip()
        if name_objection(name) is not None:
            raise UnknownPersonError(f"the proxy's {self.name} names nobody")
        role = self.roles.role_of(part.strip() for value in values_of(self.role_name) for part in value.split(","))
        if role is None:
            raise UnknownPersonError(
                f"{name} is signed in, but in no group that may look; see --readers and --operators"
            )
        return Token(id=f"{OUTSIDE}{name}", name=name, role=role, digest="")


def networks_of(texts: Sequence[str], setting: str) -> tuple[Network, ...]:
    """Raises SettingError."""
    return tuple(_network(text, setting) for text in texts)


def _network(text: str, setting: str) -> Network:
    try:
        network = ipaddress.ip_network(text.strip())
    except ValueError as error:
        raise SettingError(f'{setting}: "{text}" is no address and no network such as 10.0.0.0/24: {error}') from error
    if network.prefixlen == 0:
        raise SettingError(f'{setting}: "{text}" is everybody; name the addresses of the proxy alone')
    return network


def check_header(name: str, setting: str) -> None:
    """Raises SettingError for what is no name of a header, or means something else."""
    if not _HEADER.fullmatch(name) or name.lower() in _OTHERS:
        raise SettingError(f'{setting}: "{name}" is no header that names a person; for example X-Remote-User')
