"""A run whose people's name is learned late is still the same run, and so is its trend."""

from tests.core.run_story import Shape, tell_steps
from tests.core.story import Story, shipped

from oomwatch import wire

STAND_IN, NAME = "01000000", "qwen7b"


def leaking(number: int) -> Shape:
    return Shape(base=20.0 + 0.9 * number)


def test_a_forecast_goes_on_under_the_new_name() -> None:
    story = Story(shipped("memory_forecast", "warning"), run=STAND_IN)
    tell(story, 20, STAND_IN)
    assert story.states == ["firing"]
    known = len(story.engine.fleet.nodes["n"].gpus["0"].steps)
    story.event(wire.RunNamed(provisional=STAND_IN), run=NAME)
    tell(story, 3, NAME, first=21)
    assert len(story.engine.fleet.nodes["n"].gpus["0"].steps) == known + 3
    story.wait(3600)
    assert story.states[0] == "firing"
    assert "resolved" not in story.states


def tell(story: Story, count: int, run: str, *, first: int = 1) -> None:
    """The story's events are of the run `r`; here they are of another."""
    event = story.event
    story.event = lambda body, **more: event(body, **(more | {"run": run}))  # type: ignore[method-assign]
    tell_steps(story, count, leaking, first=first)
    del story.event
