"""Inputs and rules to results."""

from collections.abc import Callable, Iterator, Sequence

from oomwatch.backtest.drive import Driven, drive
from oomwatch.backtest.result import InputResult, Result
from oomwatch.backtest.score import judged, summed_up
from oomwatch.backtest.source import Source
from oomwatch.core.rule import RuleSet

Begun = Callable[[int, int, str, float], None]  # place and number of inputs, name, seconds into it


class Tried:
    """A rule file tried on all inputs. `driven` keeps each one's readings, where they were asked for."""

    def __init__(self, sources: Sequence[Source], rules: RuleSet, *, with_readings: bool, told: Begun) -> None:
        self.driven: list[Driven] = []
        inputs = tuple(self._judged(sources, rules, with_readings, told))
        self.result = Result(inputs=inputs, summary=summed_up(inputs))

    def _judged(
        self, sources: Sequence[Source], rules: RuleSet, with_readings: bool, told: Begun
    ) -> Iterator[InputResult]:
        for place, source in enumerate(sources, start=1):

            def progress(seconds: float, place: int = place, name: str = source.name) -> None:
                told(place, len(sources), name, seconds)

            progress(0.0)
            driven = drive(source.lines(), rules, live=source.live, with_readings=with_readings, progress=progress)
            if with_readings:
                self.driven.append(driven)
            yield judged(source.name, driven, rules, source.notes)
