"""Which of the settings that people set do nothing, because another one makes them void."""

from collections.abc import Iterator

from msgspec import structs

from oomwatch.doctor.case import Case
from oomwatch.doctor.read import Setting
from oomwatch.plan import verlkeys
from oomwatch.plan.idle import Idle, idle_of
from oomwatch.plan.reader import reader_of


def idle_settings(case: Case) -> Iterator[Idle]:
    """Of those that somebody set: what a whole configuration repeats of verl's defaults is nobody's."""
    reading = case.reading
    defaults = verlkeys.keys_of(reading.version, reading.strategy)
    told = tuple(one for one in reading.settings if _is_set(one, defaults.get(one.key)))
    config = structs.replace(reading, settings=told).config  # so that what follows others is seen to
    return idle_of(reader_of(config, reading.version), [one.key for one in told])


def _is_set(setting: Setting, default: verlkeys.Default) -> bool:
    if setting.origin.kind == "default":
        return False
    written = setting.value if setting.written is None else setting.written
    return setting.origin.kind == "override" or written != default
