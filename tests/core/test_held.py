"""A verdict of the steps is kept for ten quiet ones, and worked out once a step."""

from tests.core.step_story import Told, gpu_of, tell, tell_all
from tests.core.story import Story

from oomwatch.core.held import OVER_SECONDS, QUIET_STEPS, held_on, last_active
from oomwatch.core.verdict import INACTIVE, UNKNOWN, Verdict

ACTIVE = Verdict("active", 1.0)


class Asked:
    """Judges by a list of verdicts, one a step, and the last for ever."""

    def __init__(self, *verdicts: Verdict) -> None:
        self.verdicts = list(verdicts)
        self.count = 0

    def __call__(self) -> Verdict:
        self.count += 1
        return self.verdicts.pop(0) if len(self.verdicts) > 1 else self.verdicts[0]


def states(story: Story, asked: Asked, steps: int, first: int = 1) -> list[str]:
    found: list[str] = []
    for number in range(first, first + steps):
        tell(story, number, Told())
        with story.engine.fleet.keeping:
            found.append(held_on(gpu_of(story), "k", story.now, asked).state)
    return found


def test_it_is_given_up_at_the_tenth_quiet_step() -> None:
    story, asked = Story((), run="r"), Asked(INACTIVE, ACTIVE, INACTIVE)
    assert states(story, asked, 14) == ["inactive", *["active"] * QUIET_STEPS, *["inactive"] * 3]
    assert last_active(gpu_of(story).memo, "k") is None


def test_it_is_worked_out_once_a_step() -> None:
    story, asked = tell_all(Story((), run="r"), 1, lambda _: Told()), Asked(ACTIVE)
    with story.engine.fleet.keeping:
        for second in range(5):
            assert held_on(gpu_of(story), "k", story.now + second, asked) == ACTIVE
    assert asked.count == 1
    assert last_active(gpu_of(story).memo, "k") == ACTIVE


def test_what_is_not_known_yet_is_unknown_and_what_is_known_no_more_is_over() -> None:
    assert held_on(gpu_of(Story((), run="r")), "k", 0.0, Asked(ACTIVE)) == UNKNOWN
    assert states(Story((), run="r"), Asked(UNKNOWN), 3) == ["unknown"] * 3
    story, asked = Story((), run="r"), Asked(ACTIVE, ACTIVE, UNKNOWN)
    assert states(story, asked, 3) == ["active"] * 3
    assert states(story, asked, 2) == ["inactive"] * 2  # the run has started again


def test_a_run_that_tells_of_no_step_for_long_has_nothing_the_matter() -> None:
    story = tell_all(Story((), run="r"), 2, lambda _: Told())
    assert held_on(gpu_of(story), "k", story.now + OVER_SECONDS, Asked(ACTIVE)) == ACTIVE
    assert held_on(gpu_of(story), "k", story.now + OVER_SECONDS + 1, Asked(ACTIVE)) == INACTIVE
