"""What is marked as a test of real programs."""

import pytest
from tests.acceptance.programs import ServerProgram
from tests.conftest import STARTERS, starts_programs

from oomwatch.wire import Hello


def test_a_file_that_starts_programs_is_marked_unless_it_marks_some_of_its_tests() -> None:
    @pytest.mark.acceptance
    def test_one() -> None: ...

    assert ServerProgram.__module__ in STARTERS
    assert starts_programs({"ServerProgram": ServerProgram})
    assert not starts_programs({"ServerProgram": ServerProgram, "test_one": test_one})
    assert not starts_programs({"Hello": Hello})
