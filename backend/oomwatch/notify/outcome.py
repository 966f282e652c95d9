"""What a channel says of one attempt to send. Whether and when to try again is not its business."""

from typing import TypeAlias

import msgspec


class Delivered(msgspec.Struct, frozen=True):
    """The receiver took it. `receipt`: what the channel needs to find this message again, where it can change it."""

    receipt: str | None = None


class TryAgain(msgspec.Struct, frozen=True):
    """It may work later; not before `after_seconds` where the receiver named a time."""

    reason: str
    after_seconds: float | None = None


class Failed(msgspec.Struct, frozen=True):
    """It will not work however often it is tried. The reason is a sentence that says what to change."""

    reason: str


Outcome: TypeAlias = Delivered | TryAgain | Failed
