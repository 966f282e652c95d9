"""What has no room in a message is left out, and said: a server refuses such a message whole. PURE."""

from typing import TypeVar

T = TypeVar("T")


class Limits:
    """Remembers what was left out."""

    def __init__(self) -> None:
        self._left_out: dict[str, tuple[int, int]] = {}

    def cut(self, what: str, found: tuple[T, ...], most: int) -> tuple[T, ...]:
        """As many as there may be, the first ones."""
        if len(found) > most:
            self._left_out[what] = (len(found) - most, len(found))
        else:
            self._left_out.pop(what, None)
        return found[:most]

    def sentence(self) -> str | None:
        """What was left out, for people; None where nothing was."""
        told = [f"{left_out:,} of {count:,} {what}" for what, (left_out, count) in self._left_out.items()]
        return f"a message has no room for {' and '.join(told)}: the last ones are not watched" if told else None
