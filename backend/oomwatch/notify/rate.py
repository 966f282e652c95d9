"""How many messages a channel takes in a time: "30/1m". Pure."""

from oomwatch.units import parse_duration


class Rate(str):
    """A rate as a person wrote it, and it can be read: so many messages in a time."""

    __slots__ = ()

    @property
    def messages(self) -> int:
        return int(self.partition("/")[0])

    @property
    def seconds(self) -> float:
        return float(parse_duration(self.partition("/")[2].strip()))


def parse_rate(text: str) -> Rate:
    """Of "30/1m". Raises ValueError with a sentence."""
    count, slash, _ = text.partition("/")
    if not (slash and count.strip().isascii() and count.strip().isdigit() and int(count) > 0):
        raise ValueError(f'"{text}" is no rate; write how many messages in which time: 30/1m')
    rate = Rate(text)
    if rate.seconds <= 0:
        raise ValueError(f'"{text}" is no rate: its time must be more than 0s')
    return rate


class TokenBucket:
    """Lets through what the rate allows: all of `count` at once after a rest, then one by one. None: everything."""

    def __init__(self, rate: Rate | None, now: float) -> None:
        self._most = float(rate.messages) if rate is not None else float("inf")
        self._seconds_each = rate.seconds / rate.messages if rate is not None else 0.0
        self._tokens = self._most
        self._at = now

    def take(self, now: float) -> None:
        """One message is sent."""
        self._tokens, self._at = self._tokens_at(now) - 1.0, now

    def free_at(self, now: float) -> float:
        """When the next message may go: `now` where it may go at once."""
        missing = 1.0 - self._tokens_at(now)
        return now if missing <= 0 else now + missing * self._seconds_each

    def _tokens_at(self, now: float) -> float:
        if not self._seconds_each:
            return self._most
        return min(self._most, self._tokens + max(0.0, now - self._at) / self._seconds_each)
