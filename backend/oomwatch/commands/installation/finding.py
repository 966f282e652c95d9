"""What a check found."""

from typing import Literal

from msgspec import Struct

State = Literal["ok", "warning", "wrong"]


class Finding(Struct, frozen=True, omit_defaults=True):
    """`warning`: it works, with less than there could be. `wrong`: it does not. `remedy`: what a person can do."""

    family: str
    what: str
    state: State
    said: str
    remedy: str | None = None


class Family:
    """Makes the findings of one family."""

    def __init__(self, name: str) -> None:
        self.name = name

    def ok(self, what: str, said: str) -> Finding:
        return Finding(self.name, what, "ok", said)

    def warning(self, what: str, said: str, remedy: str) -> Finding:
        return Finding(self.name, what, "warning", said, remedy)

    def wrong(self, what: str, said: str, remedy: str) -> Finding:
        return Finding(self.name, what, "wrong", said, remedy)
