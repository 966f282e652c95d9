"""A server and agents that were installed find each other."""

from http import HTTPStatus
from pathlib import Path

import pytest
from tests.acceptance.programs import until
from tests.asking import answer_of
from tests.packaging.running import running
from tests.packaging.wheels import ENVIRON
from tests.packaging.zipped import BARE, SOMEBODY
from tests.ports import free_port

pytestmark = pytest.mark.acceptance


def _page(address: str) -> str:
    """What stands at an address; nothing while nobody answers there."""
    try:
        status, page = answer_of(address)
    except OSError:
        return ""
    return page.decode() if status == HTTPStatus.OK else ""


def test_an_installed_agent_and_the_one_file_report_to_an_installed_server_that_has_the_page(
    whole: Path, agent_alone: Path, pyz: Path, home: Path, tmp_path: Path
) -> None:
    where = f"127.0.0.1:{free_port()}"
    serve: list[str | Path] = [whole / "oomwatch", "serve", "--listen", where, "--db", str(tmp_path / "oomwatch.db")]
    report = ["--simulate", "demo", "--server", where, "--node"]
    zipped: list[str | Path] = [BARE, "-I", pyz, *report, "zipped"]
    of_its_user = {**ENVIRON, "HOME": str(home)}
    with (
        running(*serve, folder=tmp_path),
        running(agent_alone / "oomwatch-agent", *report, "installed", folder=tmp_path),
        running(*zipped, folder=tmp_path, environ=of_its_user, user=SOMEBODY),
    ):
        both = {"installed", "zipped"}
        nodes = f"http://{where}/api/v1/nodes"
        until("both nodes to be known", lambda: all(f'"{name}"' in _page(nodes) for name in both))
        assert "<title>oomwatch" in _page(f"http://{where}")
        assert "oomwatch" in _page(f"http://{where}/metrics")
