"""What is wrong with a configuration: what verl would stop with, and what it would not but should be known."""

from oomwatch.plan.checks import CHECKS
from oomwatch.plan.problem import Problem
from oomwatch.plan.reader import reader_of
from oomwatch.plan.settings import Config

__all__ = ["Problem", "problems_of"]


def problems_of(config: Config, version: str | None = None) -> tuple[Problem, ...]:
    """All problems, in the order in which verl comes upon them. Of verl's newest where no version is told."""
    here = reader_of(config, version)
    return tuple(problem for check in CHECKS for problem in check(here))
