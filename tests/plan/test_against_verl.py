"""Our arithmetic and our verdicts beside those of verl's own code, release by release, on a grid of configurations.

scripts/verl-releases brings the packages (`make test` calls it). What runs of them is in verlrun, a process of its own.
"""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.missing import do_without
from tests.plan.grid import Case, cases

from oomwatch.plan.batches import Batches, batches_of
from oomwatch.plan.problems import problems_of
from oomwatch.plan.settings import ACTOR

ROOT = Path(__file__).resolve().parents[2]
BROUGHT = ROOT / ".verl"
PINS = (ROOT / "tests/plan/verl-releases.txt").read_text(encoding="utf-8").splitlines()
RELEASES = [line.split("==")[1].split()[0] for line in PINS if line.startswith("verl==")]
CASES_EACH = 55
Outcome = dict[str, Any]


def _ask(release: str, grid: list[Case]) -> list[Outcome]:
    """What verl makes of each configuration."""
    folder = BROUGHT / release
    if not (folder / "verl").is_dir():
        do_without(f"verl {release}", "make verl-releases, which needs a network")
    asked = json.dumps([case._asdict() for case in grid])
    program = [sys.executable, str(ROOT / "tests/plan/verlrun"), str(folder)]
    done = subprocess.run(program, check=False, input=asked, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-4000:]
    outcomes: list[Outcome] = json.loads(done.stdout)
    return outcomes


@pytest.fixture(scope="module", params=RELEASES)
def compared(request: pytest.FixtureRequest) -> tuple[str, list[tuple[Case, Outcome]]]:
    release = str(request.param)
    grid = cases(release, CASES_EACH)
    return release, list(zip(grid, _ask(release, grid), strict=True))


def test_we_refuse_what_verl_refuses_and_nothing_else(compared: tuple[str, list[tuple[Case, Outcome]]]) -> None:
    release, pairs = compared
    wrong = []
    for case, outcome in pairs:
        errors = [problem for problem in problems_of(case.settings, release) if problem.severity == "error"]
        said = {problem.verl_says for problem in errors}
        if bool(errors) != outcome["stops"] or (outcome["stops"] and outcome["says"] not in said):
            wrong.append((case, outcome, said))
    assert not wrong, _told(wrong)


def test_our_numbers_are_verls(compared: tuple[str, list[tuple[Case, Outcome]]]) -> None:
    release, pairs = compared
    wrong = []
    for case, outcome in pairs:
        batches = batches_of(case.settings, release)
        ours = _numbers(batches)
        dynamic = {
            phase.phase for phase in batches.phases if phase.is_dynamic
        }  # verl keeps the number, and does not use it
        theirs = {name: it for name, it in outcome["numbers"].items() if it is not None and name not in dynamic}
        differing = {name: (ours.get(name), value) for name, value in theirs.items() if ours.get(name) != value}
        if differing and not outcome["stops"]:
            wrong.append((case, outcome, differing))
    assert not wrong, _told(wrong)


def test_the_grid_has_both_kinds_of_either_strategy(compared: tuple[str, list[tuple[Case, Outcome]]]) -> None:
    """Else it would compare little."""
    _, pairs = compared
    kinds = {(case.strategy == "megatron", outcome["stops"]) for case, outcome in pairs}
    assert kinds == {(False, False), (False, True), (True, False), (True, True)}
    assert any(case.settings.get(f"{ACTOR}.use_dynamic_bsz") and not outcome["stops"] for case, outcome in pairs)


def _numbers(batches: Batches) -> dict[str, int | None]:
    """By verl's names, or by that of the phase whose micro batch it is."""
    found = {name: getattr(batches, name) for name in batches.__struct_fields__}
    for phase in batches.phases:
        found[phase.phase] = phase.micro_batch_size_per_gpu
    log_prob = batches.phase("old_log_prob")
    found["log_prob_passes"] = log_prob.micro_batches if log_prob else None
    return found


def _told(wrong: list[tuple[Case, Outcome, Any]]) -> str:
    first = "\n".join(f"{case.settings}\n  verl: {outcome}\n  ours: {ours}" for case, outcome, ours in wrong[:3])
    return f"{len(wrong)} disagreements, such as\n{first}"
