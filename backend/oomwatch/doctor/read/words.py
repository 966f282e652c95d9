"""What is to be said of a text that was read, or could not be."""

from typing import NamedTuple

from oomwatch import wire
from oomwatch.catalogue import say
from oomwatch.doctor.read.reading import Complaint, ReadingError


class Words(NamedTuple):
    what: str
    remedy: str


def words_of(told: Complaint | ReadingError, language: wire.Language) -> Words:
    """What is wrong, and what to do."""
    key = f"doctor.read.{told.what}"
    return Words(say(key, language, **told.values), say(f"{key}.remedy", language, **told.values))
