"""PURE: how often somebody may try to sign in.

Each try counts as failed until it has succeeded, so that many at once are no way around. By name the wait stays short:
whoever knows a name could else keep its owner out. By address it gets long.
"""

from typing import NamedTuple

from oomwatch.access.addresses import home

FORGOTTEN_SECONDS = 900.0  # after so long without a failure
KEPT_MAX = 10_000  # of each kind; the one that failed longest ago goes first


class Limit(NamedTuple):
    """So many failures are free; each further one doubles the wait, from a second to the longest."""

    free: int
    longest_seconds: float


BY_NAME = Limit(5, 60.0)
BY_ADDRESS = Limit(20, 900.0)


class _Failures(NamedTuple):
    so_many: int
    last_at: float


class _Ledger:
    """The failures of each name, or each address."""

    def __init__(self, limit: Limit) -> None:
        self._limit = limit
        self._failures: dict[str, _Failures] = {}

    def wait_seconds(self, key: str, now: float) -> float:
        found = self._of(key, now)
        if found is None or found.so_many < self._limit.free:
            return 0.0
        doublings = min(found.so_many - self._limit.free, 20)
        return max(0.0, found.last_at + min(2.0**doublings, self._limit.longest_seconds) - now)

    def failed(self, key: str, now: float) -> None:
        found = self._of(key, now)
        self._failures.pop(key, None)
        self._failures[key] = _Failures(1 if found is None else found.so_many + 1, now)
        if len(self._failures) > KEPT_MAX:
            self._failures.pop(next(iter(self._failures)))

    def forgive(self, key: str, *, one: bool = False) -> None:
        """All failures of a key, or the last `one`."""
        found = self._failures.pop(key, None)
        if one and found is not None and found.so_many > 1:
            self._failures[key] = _Failures(found.so_many - 1, found.last_at)

    def _of(self, key: str, now: float) -> _Failures | None:
        found = self._failures.get(key)
        # A clock that was set back must keep nobody waiting for longer than the longest wait.
        if found is None or not 0 <= now - found.last_at < FORGOTTEN_SECONDS:
            return None
        return found


class Attempts:
    """Tries by name (None: a token was given, which has none) and by address."""

    def __init__(self) -> None:
        self._by_name = _Ledger(BY_NAME)
        self._by_address = _Ledger(BY_ADDRESS)

    def wait_seconds(self, name: str | None, address: str, now: float) -> float:
        """How long to wait before the next try; 0 where it may be made."""
        by_name = 0.0 if name is None else self._by_name.wait_seconds(name, now)
        return max(by_name, self._by_address.wait_seconds(home(address), now))

    def begin(self, name: str | None, address: str, now: float) -> None:
        """A try is made: it has failed until it succeeds."""
        if name is not None:
            self._by_name.failed(name, now)
        self._by_address.failed(home(address), now)

    def take_back(self, name: str | None, address: str) -> None:
        """Whether it would have succeeded nobody knows: something of ours failed, and not who tried."""
        if name is not None:
            self._by_name.forgive(name, one=True)
        self._by_address.forgive(home(address), one=True)

    def succeeded(self, name: str | None, address: str) -> None:
        """It was no failure. Those of others from the same address stay what they are."""
        if name is not None:
            self._by_name.forgive(name)
        self._by_address.forgive(home(address), one=True)
