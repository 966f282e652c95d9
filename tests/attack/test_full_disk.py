"""A disk that takes no more in the middle of a report."""

from pathlib import Path

import pytest

from oomwatch.incident.folder import Folder
from oomwatch.incident.report import Incident, incident_id

AT = 1_700_000_000.0


def report() -> Incident:
    return Incident(
        id=incident_id(AT, "run r"), at=AT, written_at=AT, version="0", node="n", run="r", simulated=False,
        summary={"en": "x"}, nodes=("n",), cards=(), cards_left_out=0, alerts=(), messages=(), causes=(), remedies=(),
        advice={}, phases=(), steps=(), config={}, curves=(),
    )  # fmt: skip


@pytest.mark.parametrize("kind", ["json", "head"])
def test_half_a_report_leaves_nothing_behind(tmp_path: Path, kind: str) -> None:
    """The page was written, and the rest cannot be: a folder lies where the file should go."""
    incident = report()
    obstacle = tmp_path / f"{incident.id}.{kind}"
    obstacle.mkdir()
    folder = Folder(tmp_path, 50)
    with pytest.raises(OSError, match="irectory"):
        folder.write(incident, "<html>")
    obstacle.rmdir()
    assert list(tmp_path.iterdir()) == []
    folder.write(incident, "<html>")
    assert folder.ids() == [incident.id]
