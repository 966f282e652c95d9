"""The batches of a run, as the API gives them."""

from typing import Literal

import msgspec

from oomwatch.doctor.result import Line, Problem


class BatchesOfRun(msgspec.Struct, frozen=True, kw_only=True):
    """`why` nothing is known, or the arithmetic line by line and what verl says against it, as the doctor has them."""

    run: str
    why: Literal["config"] | None = None  # the configuration was not seen
    release: str | None = None  # of verl, whose arithmetic it is
    release_told: bool = False  # false: nobody told which release runs, and the newest is taken
    working: tuple[Line, ...] = ()
    problems: tuple[Problem, ...] = ()
