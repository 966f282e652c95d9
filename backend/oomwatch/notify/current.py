"""Messages say how things are when they are written, not how they were when it began. Pure.

A forecast of ten minutes that is passed on after fifteen would otherwise be false when it is read.
"""

from collections.abc import Callable

import msgspec

from oomwatch import wire
from oomwatch.notify.notice import Notice

# What moves while an alert fires.
_MOVING = ("value", "limit", "unit", "texts", "causes", "remedies")


def as_of_now(notice: Notice, find: Callable[[str], wire.Alert | None]) -> Notice:
    """The same message, with the figures and words that the board has now of alerts that still fire.

    `find` gives the alert of an id as it is on the board.
    """
    if notice.kind == "update" or notice.state == "resolved":
        return notice  # of these each change is told as it was
    news = tuple([_moved(one, find(one.id)) for one in notice.news])
    everything = tuple([_moved(one, find(one.id)) for one in notice.everything])
    return msgspec.structs.replace(notice, news=news, everything=everything)


def _moved(one: wire.Transition, alert: wire.Alert | None) -> wire.Transition:
    if alert is None or alert.state != "firing" or one.state != "firing":
        return one
    moved = {name: getattr(alert, name) for name in _MOVING}
    return msgspec.structs.replace(one, facts=one.facts | alert.facts, **moved)
