"""Reading a training's configuration, in any of the ways in which people have it at hand.

`read` takes texts and gives a Reading: every setting with its value, its origin and what it shadows. Pure: the caller
opens files, and nothing that is read is ever run or evaluated.
"""

from oomwatch.doctor.read.read import read
from oomwatch.doctor.read.reading import (
    COMMAND_LINE,
    Complaint,
    Input,
    Origin,
    Reading,
    ReadingError,
    Setting,
    Shadowed,
    Source,
    Unknown,
)

__all__ = [
    "COMMAND_LINE",
    "Complaint",
    "Input",
    "Origin",
    "Reading",
    "ReadingError",
    "Setting",
    "Shadowed",
    "Source",
    "Unknown",
    "read",
]
