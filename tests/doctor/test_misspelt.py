"""A mistyped key: what was most likely meant comes first, to add a key of that name second."""

import pytest
from tests.doctor.cases import ROLLOUT, report


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        (f"{ROLLOUT}.nn=8", f"{ROLLOUT}.n=8"),
        (f"{ROLLOUT}.gpu_memory_utilizatoin=0.6", f"{ROLLOUT}.gpu_memory_utilization=0.6"),
        ("data.train_batch_sise=64", "data.train_batch_size=64"),
    ],
)
def test_the_line_to_copy_is_the_nearest_known_key_with_the_value_as_typed(typed: str, meant: str) -> None:
    made = report(typed)
    (error,) = [one for one in made.problems if one.severity == "error"]
    assert error.suggestion == meant
    assert f"{meant.partition('=')[0]} may be meant" in error.message
    assert '"+"' in (error.remedy or "")
    assert f"{meant.partition('=')[0]} may be meant" in made.headline


def test_a_key_that_is_like_none_is_added() -> None:
    (error,) = [one for one in report("trainer.foo=1").problems if one.severity == "error"]
    assert error.suggestion == "+trainer.foo=1"
