from pathlib import Path

from bench import legs


def test_every_leg_from_a_full_card_to_the_webhook_is_noted(tmp_path: Path) -> None:
    (step,) = legs.measure(1, tmp_path)
    assert {leg.what: step[leg.end] - step[leg.start] for leg in legs.LEGS if step[leg.end] < step[leg.start]} == {}
    assert step["arrived"] - step["step"] < legs.LATEST_SECONDS
