"""PURE: from what an identity provider or a proxy says of a person to what they may do here."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from oomwatch.access.person import PersonRole

ANYBODY = "*"


class RoleMap(NamedTuple):
    """Groups, or whatever else is said of people, whose members may act, or look."""

    operators: frozenset[str]
    readers: frozenset[str]

    def role_of(self, said: Iterable[str]) -> PersonRole | None:
        """The most that one of them gives; None: the person is known, and may do nothing."""
        values = {ANYBODY, *said}
        if values & self.operators:
            return "operator"
        return "reader" if values & self.readers else None


def role_map(operators: Sequence[str], readers: Sequence[str]) -> RoleMap:
    """By the settings."""
    return RoleMap(frozenset(operators), frozenset(readers))
