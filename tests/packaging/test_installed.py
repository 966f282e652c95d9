"""A server and an agent that were installed from the wheels find each other."""

import contextlib
import urllib.request
from pathlib import Path

import pytest
from tests.acceptance.programs import free_port, until
from tests.packaging.running import running

pytestmark = pytest.mark.acceptance


def _page(address: str) -> str:
    """What stands at an address; nothing while nobody answers there."""
    with contextlib.suppress(OSError), urllib.request.urlopen(address, timeout=10) as answer:  # noqa: S310 - loopback
        return str(answer.read().decode())
    return ""


def test_an_installed_agent_reports_to_an_installed_server_that_has_the_page(
    whole: Path, agent_alone: Path, tmp_path: Path
) -> None:
    port = free_port()
    base = f"http://127.0.0.1:{port}"
    serve: list[str | Path] = [
        whole / "oomwatch",
        "serve",
        "--listen",
        f"127.0.0.1:{port}",
        "--db",
        str(tmp_path / "oomwatch.db"),
    ]
    report: list[str | Path] = [
        agent_alone / "oomwatch-agent",
        "--simulate",
        "demo",
        "--node",
        "n1",
        "--server",
        f"127.0.0.1:{port}",
    ]
    with running(*serve, folder=tmp_path), running(*report, folder=tmp_path):
        until("the node to be known", lambda: '"n1"' in _page(f"{base}/api/v1/nodes"))
        assert "<title>oomwatch" in _page(base)
        assert "oomwatch" in _page(f"{base}/metrics")
