"""What is marked as a test of real programs."""

import pytest
from sqlalchemy import func
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


def test_objects_that_have_an_attribute_of_any_name_are_no_tests() -> None:
    assert starts_programs({"func": func, "ServerProgram": ServerProgram})
    assert not starts_programs({"func": func})
