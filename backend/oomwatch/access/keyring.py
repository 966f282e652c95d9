"""Every token and session that the server takes, and who is connected by each.

Tokens of the settings are there from the start; those of the database come and go while the server runs, and so do the
sessions of browsers. Whoever is connected by one that is good no more is told, and closes; so is whoever needed none
until now.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager

from oomwatch.access.person import Lasts
from oomwatch.access.proxied import OUTSIDE
from oomwatch.access.sessions import Known, Sessions
from oomwatch.access.token import ROLES, Role, Token, digest_of, fixed
from oomwatch.settings import Settings

Dismiss = Callable[[], None]


class Keyring:
    """Used from the event loop only. `clock` gives Unix seconds.

    `knows_others`: people come who are known elsewhere, to an identity provider or a proxy.
    """

    def __init__(
        self,
        lasting: Iterable[Token],
        clock: Callable[[], float],
        lasts: Lasts = Lasts(),  # noqa: B008 - a value
        *,
        knows_others: bool = False,
    ) -> None:
        self._lasting = {token.digest: token for token in lasting}
        self._tokens = dict(self._lasting)
        self._clock = clock
        self._holders: dict[str, dict[Dismiss, None]] = {}
        self._knows_others = knows_others
        self.has_users = False
        self.sessions = Sessions(lasts, clock)

    def replace(self, kept: Sequence[Token], known: Known = Known()) -> None:  # noqa: B008 - a value
        """Take over what the database keeps now. Connections by what is good no more are dismissed."""
        self._tokens = {token.digest: token for token in kept} | self._lasting
        self.has_users = known.has_users
        now = self._clock()
        self.sessions.replace(known, self._holders)
        good = {token.id for token in self._tokens.values() if token.is_good(now)} | self.sessions.good_ids()
        good |= {_anonymous(role) for role in ROLES if not self.asks_for(role)}
        self._dismiss(one for one in self._holders if one not in good and not one.startswith(OUTSIDE))

    def end_session(self, token: Token) -> None:
        """Somebody has signed out: every page of that browser closes."""
        self.sessions.end(token.digest)
        self._dismiss([token.id])

    def _dismiss(self, ids: Iterable[str]) -> None:
        for token_id in list(ids):
            for dismiss in list(self._holders.get(token_id, ())):
                dismiss()

    def find(self, text: str) -> Token | None:
        """The token of this text, where it is good. The look-up is by digest, so its time tells nothing of a secret."""
        digest = digest_of(text)
        token = self._tokens.get(digest)
        if token is None:
            return self.sessions.find(digest)
        return token if token.is_good(self._clock()) else None

    def asks_for(self, *roles: Role) -> bool:
        """Whether there was ever a token of one of these roles: an expired one opens nothing.

        Where people have names, each has a role, and nobody else may look or act.
        """
        if (self._knows_others or self.has_users) and roles != ("agent",):
            return True
        return any(token.role in roles for token in self._tokens.values())

    @contextmanager
    def held(self, token: Token | None, role: Role, dismiss: Dismiss) -> Iterator[None]:
        """While this lasts, `dismiss` is called should the token be revoked; without one, should it become needed."""
        key = _anonymous(role) if token is None else token.id
        holders = self._holders.setdefault(key, {})
        holders[dismiss] = None
        try:
            yield
        finally:
            holders.pop(dismiss, None)
            if not holders:
                self._holders.pop(key, None)


def _anonymous(role: Role) -> str:
    """Stands for the token of those who needed none to do what the role may."""
    return f"no {role}"


def fixed_tokens(settings: Settings) -> list[Token]:
    """Those that the settings give."""
    given: tuple[tuple[str, Role, str | None], ...] = (
        ("token", "agent", settings.token),
        ("reader_token", "reader", settings.reader_token),
        ("operator_token", "operator", settings.operator_token),
    )
    return [fixed(name, role, text) for name, role, text in given if text is not None]
