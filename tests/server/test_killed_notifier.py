"""kill -9 at a thousand points between an alert and its message: nothing is lost, nothing is told twice.

What is played, what is killed and what has to hold is in killed_notifier.py.
"""

import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from tests.server.killed_notifier import SILENCE, is_right
from tests.server.notify_samples import START, transition
from tests.server.running_server import ENVIRON

TRIALS = 1000
WORKERS = 2
DEADLINE_SECONDS = 600.0  # it takes about a minute on two free cores

FIRED = transition()
LOWERED = msgspec.structs.replace(FIRED, change="severity", severity="info", lowered_from="warning", at=START + 40)
RAISED = msgspec.structs.replace(FIRED, change="severity", at=START + 50)
MUTED = msgspec.structs.replace(FIRED, change="muted", muted=(SILENCE,))
OVER = msgspec.structs.replace(FIRED, state="resolved", at=START + 60)


@pytest.mark.acceptance
def test_a_thousand_kills_lose_and_double_nothing(tmp_path: Path) -> None:
    workers = []
    for worker in range(WORKERS):
        folder = tmp_path / str(worker)
        folder.mkdir()
        program = [sys.executable, "-m", "tests.server.killed_notifier", str(folder)]
        arguments = [str(TRIALS), str(worker), str(WORKERS)]
        workers.append(subprocess.Popen([*program, *arguments], stdout=subprocess.PIPE, text=True, env=ENVIRON))
    said = [worker.communicate(timeout=DEADLINE_SECONDS)[0] for worker in workers]
    print(*said)
    assert [worker.returncode for worker in workers] == [0] * WORKERS, "".join(said)
    assert all(f"{TRIALS // WORKERS} trials" in one and " 0 mistakes" in one for one in said)


def test_the_model_of_what_is_told_is_strict() -> None:
    life = [FIRED, LOWERED, RAISED, OVER]
    assert is_right(life, ["firing", "firing", "resolved"])
    assert is_right(life, ["firing", "resolved"])
    assert is_right(life, ["resolved"])
    assert not is_right(life, ["firing"])
    assert not is_right(life, [])
    assert not is_right(life, ["firing", "firing", "firing", "resolved"])
    assert not is_right(life, ["firing", "resolved", "resolved"])
    assert not is_right(life, ["resolved", "firing"])
    assert not is_right([FIRED], ["firing", "resolved"])
    assert not is_right([FIRED], [])
    assert is_right([msgspec.structs.replace(FIRED, muted=(SILENCE,))], [])
    assert not is_right([msgspec.structs.replace(FIRED, muted=(SILENCE,))], ["firing"])
    assert is_right([FIRED, MUTED], [])
