"""Every part, moment and trouble that an estimate may name has words, and no others are there."""

from typing import Any, get_args

import pytest

from oomwatch import catalogue
from oomwatch.plan.memory.names import Assumed, MomentName, PartName, Trouble


@pytest.mark.parametrize(
    ("family", "names"),
    [("plan.part.", PartName), ("plan.moment.", MomentName), ("plan.trouble.", Trouble), ("plan.assumed.", Assumed)],
)
def test_what_an_estimate_may_name_has_words(family: str, names: Any) -> None:
    worded = {key.removeprefix(family) for key in catalogue.entries() if key.startswith(family)}
    assert worded == set(get_args(names))
