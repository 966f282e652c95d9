"""The log of a run that took steps: what should have stopped it did not, and is no refusal."""

from pathlib import Path

import pytest
from tests.doctor.cases import ACTOR, given

from oomwatch.doctor.read import Source, read
from oomwatch.doctor.report import Report, make_report

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures"
LOGS = sorted(FIXTURES.glob("verl-0.9.1-*/driver.log"))
MISSING, MICRO = "critic.ppo_micro_batch_size_per_gpu", f"{ACTOR}.ppo_micro_batch_size_per_gpu"


def looked_at(log: str, *overrides: str) -> Report:
    return make_report(read([Source("driver.log", log)], overrides), given())


def errors(report: Report) -> list[str]:
    return [one.key for one in report.problems if one.severity == "error"]


@pytest.mark.parametrize("log", LOGS, ids=[log.parent.name for log in LOGS])
def test_a_run_that_took_steps_was_not_refused(log: Path) -> None:
    report = looked_at(log.read_text(encoding="utf-8"))
    assert (errors(report), report.verdict) == ([], "tight")
    (warning,) = [one for one in report.problems if one.key == MISSING]
    assert warning.severity == "warning"
    assert "this run took steps" in warning.message


def test_the_same_configuration_without_steps_is_refused() -> None:
    log = LOGS[0].read_text(encoding="utf-8")
    assert errors(looked_at(log.partition("step:1 - ")[0])) == [MISSING]


def test_what_is_put_over_it_was_never_tried() -> None:
    report = looked_at(LOGS[0].read_text(encoding="utf-8"), f"{MICRO}=7")
    assert errors(report) == [MICRO]
    assert report.verdict == "refused"
