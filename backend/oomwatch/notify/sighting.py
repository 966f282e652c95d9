"""What a rule file's notify section cannot be used for as it stands, found without sending anything."""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import NamedTuple

from oomwatch.notify import http
from oomwatch.notify.channel import Surroundings
from oomwatch.notify.config import NotifyConfig
from oomwatch.notify.words import Frame
from oomwatch.options import NotHereError, SettingError


class Doubt(NamedTuple):
    """`is_mistake`: wrong wherever it is used. Else it names a variable or a file that is not here."""

    text: str
    is_mistake: bool


async def doubts(config: NotifyConfig, environ: Mapping[str, str]) -> list[Doubt]:
    """One of each channel at most, in the file's order, then the heartbeat's."""
    async with http.client() as client:
        around = Surroundings(Frame(language=config.language), client, environ)
        return list(_found(config, around))


def _found(config: NotifyConfig, around: Surroundings) -> Iterator[Doubt]:
    for channel in config.channels:
        yield from _of(partial(channel.open, around))
    if config.heartbeat is not None:
        yield from _of(partial(config.heartbeat.open, around.environ))


def _of(opens: Callable[[], object]) -> Iterator[Doubt]:
    try:
        opens()
    except SettingError as error:
        yield Doubt(str(error), not isinstance(error, NotHereError))
