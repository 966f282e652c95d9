"""python tests/plan/verlrun FOLDER < cases.json > outcomes.json, of one release; see test_against_verl.py.

A process of its own, as verl's modules and those that stand in for what it imports are to stay out of the tests'.
"""

import contextlib
import json
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT)]

from tests.plan.verlrun.standin import stand_in  # noqa: E402 - the paths come first

stand_in(Path(sys.argv[1]))

from tests.plan.verlrun.releases import Release, Settings, needs_reference  # noqa: E402
from tests.plan.verlrun.step import Step  # noqa: E402
from tests.plan.verlrun.workers import GpusLeftOverError, Numbers, Workers  # noqa: E402

Outcome = dict[str, Any]


def outcome_of(release: Release, strategy: str, settings: Settings) -> Outcome:
    """Where verl stops, with what words, and the numbers that it had worked out by then."""
    config = release.config(strategy, settings)
    numbers: Numbers = {}
    name = ""
    try:
        for name, stage in stages_of(release, config, numbers):  # noqa: B007 - where it stopped
            numbers.update(stage() or {})
    except Exception as error:
        return {"stops": True, "stage": name, "says": words_of(error), "numbers": numbers}
    return {"stops": False, "numbers": numbers}


def stages_of(release: Release, config: Any, numbers: Numbers) -> list[tuple[str, Callable[[], Numbers | None]]]:
    workers = Workers(release, config)
    has_reference, has_critic = needs_reference(config), release.needs_critic(config)

    def step() -> Numbers:
        return Step(workers, numbers, has_critic=has_critic, has_reference=has_reference).first()

    stages: list[tuple[str, Callable[[], Numbers | None]]] = [("validate", lambda: release.validate(config))]
    if release.has_engines:
        stages += [("critic", workers.engine_critic)] if has_critic else []
        return [*stages, ("actor", workers.engine_actor), ("rollout", workers.rollout), ("step", step)]
    stages += [("actor", workers.actor)]
    stages += [("critic", workers.critic)] if has_critic else []
    stages += [("reference", workers.reference)] if has_reference else []
    if release.minor < 7 and config.reward_model.enable:
        stages += [("reward", workers.reward)]
    return [*stages, ("rollout", workers.rollout), ("step", step)]


def words_of(error: BaseException) -> str | None:
    """verl's own words; None where it stops without any, or Python does. Anything else is an error of these tests."""
    while error.__cause__ is not None:  # Hydra's around it
        error = error.__cause__
    if isinstance(error, AssertionError | ValueError | NotImplementedError):
        return str(error) or None
    no_number = isinstance(error, TypeError) and "unsupported operand" in str(error) and "NoneType" in str(error)
    if no_number or isinstance(error, ZeroDivisionError | GpusLeftOverError):
        return None
    raise error


def main() -> None:
    warnings.simplefilter("ignore")
    release = Release(Path(sys.argv[1]))
    cases = json.load(sys.stdin)
    with contextlib.redirect_stdout(sys.stderr):  # verl tells of its checks on its standard output
        outcomes = [outcome_of(release, case["strategy"], case["settings"]) for case in cases]
    json.dump(outcomes, sys.stdout)


main()
