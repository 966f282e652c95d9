"""What each rule costs, by a stopwatch that whoever runs the engine lends: the core itself has no clock.

Nothing is judged otherwise for it. Without a stopwatch nothing is counted.
"""

from collections.abc import Callable
from typing import TypeAlias

from oomwatch import wire
from oomwatch.core.lifecycle import Episode
from oomwatch.core.rule import Rule
from oomwatch.core.subject import News, Subject

JudgeOne: TypeAlias = Callable[[Rule, Subject, Episode | None, tuple[News, ...], float], wire.Transition | None]


class Spent:
    """`seconds`: since the start, by Rule.key."""

    def __init__(self, stopwatch: Callable[[], float] | None = None) -> None:
        self.seconds: dict[str, float] = {}
        self._stopwatch = stopwatch

    def lap(self) -> Callable[[str], None]:
        """To be called with a Rule.key after each of several looks, one right after the other."""
        stopwatch, seconds = self._stopwatch, self.seconds
        if stopwatch is None:
            return _pass
        before = stopwatch()

        def passed(key: str) -> None:
            nonlocal before
            now = stopwatch()
            seconds[key] = seconds.get(key, 0.0) + now - before
            before = now

        return passed

    def around(self, judge: JudgeOne) -> JudgeOne:
        """The same judgement, and its time is counted."""
        stopwatch, seconds = self._stopwatch, self.seconds
        if stopwatch is None:
            return judge

        def timed(
            rule: Rule, subject: Subject, episode: Episode | None, news: tuple[News, ...], now: float
        ) -> wire.Transition | None:
            began = stopwatch()
            transition = judge(rule, subject, episode, news, now)
            seconds[rule.key] = seconds.get(rule.key, 0.0) + stopwatch() - began
            return transition

        return timed


def _pass(_key: str) -> None:
    """Without a stopwatch."""
