"""What keeps an agent running on a node of a Ray cluster, without the cluster: an agent, a server, and a token."""

# ruff: noqa: PLC0415 - Ray takes seconds to load, and has no release for a Python that is new

import os
import signal
from pathlib import Path

import pytest
from tests.missing import need_ray
from tests.server.running_server import ENVIRON, RunningServer, serving, settings_in, until

TOKEN = "for-this-agent"


def states(server: RunningServer) -> list[str]:
    return [node["state"] for node in server.get("/api/v1/nodes").json()]


def since_the_kill(lines: list[str]) -> str:
    return "\n".join(lines).partition("ended with status -9")[2]


def test_a_keeper_starts_its_agent_again_and_lets_it_say_goodbye(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    need_ray()
    from oomwatch.commands.ray.within import Hidden, Keeper, Plan

    monkeypatch.setenv("PYTHONPATH", ENVIRON["PYTHONPATH"])
    with serving(settings_in(tmp_path, token=TOKEN)) as server:
        keeper = Keeper(Plan(("--server", server.url, "--simulate", "demo"), Hidden(TOKEN), "host"))
        try:
            until("the agent", lambda: states(server) == ["live"])
            first = keeper.status()
            shown = Path(f"/proc/{first['pid']}")
            assert TOKEN.encode() not in shown.joinpath("cmdline").read_bytes() + shown.joinpath("environ").read_bytes()
            os.kill(first["pid"], signal.SIGKILL)
            until("the other agent", lambda: "connected to" in since_the_kill(keeper.status()["lines"]))
            assert keeper.status()["starts"] > first["starts"]
        finally:
            keeper.stop()  # a busy machine may take longer than it waits
        until("its goodbye", lambda: states(server) == ["stopped"])
        until("its end", lambda: keeper.status()["lines"][-1] == "the agent ended with status 0")
        assert keeper.status()["pid"] is None
