"""PURE: who somebody is, and what is said of them, by a provider's claims."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from oomwatch.access.person import name_objection
from oomwatch.oidc.errors import OidcError

Claims = Mapping[str, Any]


class Person(NamedTuple):
    """`said`: values of the claims that roles are given by."""

    name: str
    said: tuple[str, ...]


def person_of(claims: Claims, name_claim: str, role_claims: Sequence[str]) -> Person:
    """By the claims that the settings name; without the one of the name, by what the provider calls the person inside.

    Raises OidcError where there is no name.
    """
    for claim in (name_claim, "sub"):
        name = _at(claims, claim)
        if isinstance(name, str) and name_objection(name) is None and _is_vouched_for(claims, claim):
            return Person(name, tuple(_each_said(claims, role_claims)))
    raise OidcError(f"the provider gives no name that can be used, neither in {name_claim} nor in sub")


def lacks(claims: Claims, name_claim: str, role_claims: Sequence[str]) -> bool:
    """Whether something that the settings name is not among the claims."""
    return any(_at(claims, claim) is None for claim in (name_claim, *role_claims))


def _each_said(claims: Claims, role_claims: Sequence[str]) -> Iterator[str]:
    for claim in role_claims:
        found = _at(claims, claim)
        if _is_vouched_for(claims, claim):
            yield from (one for one in (found if isinstance(found, list) else [found]) if isinstance(one, str))


def _is_vouched_for(claims: Claims, claim: str) -> bool:
    """An address that anybody could have typed into their profile says nothing."""
    return claim != "email" or claims.get("email_verified") in (True, "true")


def _at(claims: Claims, path: str) -> object:
    """A claim by its name, or, within others, by a path with dots: realm_access.roles."""
    if path in claims:
        return claims[path]
    found: object = claims
    for part in path.split("."):
        found = found.get(part) if isinstance(found, Mapping) else None
    return found
