"""NVIDIA's driver as it fails: the agent goes on with all else, says what is wrong, and finds it again by itself."""

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.agent.fake_server import FakeServer, welcoming
from tests.faults.agents import running, samples, statuses, told_of, until, used_bytes, with_host, with_server
from tests.nvml import standin
from tests.nvml.standin import GIB, ScriptedGpus

from oomwatch import wire

INTERVAL_SECONDS = 0.2
GOES_ON = 5  # so many samples more: nobody waits for what hangs


@pytest.fixture
def gpus(nvml_library: Path, tmp_path: Path) -> ScriptedGpus:
    return ScriptedGpus(tmp_path / "gpus", nvml_library, count=4)


def _all(status: str) -> dict[str, str]:
    return dict.fromkeys("0123", status)


def _lost(server: FakeServer) -> list[wire.GpuLost]:
    events = [message for message in server.heard if isinstance(message, wire.Event)]
    return [event.body for event in events if isinstance(event.body, wire.GpuLost)]


def test_while_the_whole_driver_hangs_the_host_is_told_in_time_and_afterwards_the_cards_again(
    gpus: ScriptedGpus, tmp_path: Path
) -> None:
    server = FakeServer(welcoming())

    async def story() -> None:
        async with running(server.url, tmp_path, environ=gpus.environment) as agent:
            await until(lambda: statuses(server) == _all("ok"), "the cards")
            gpus.hang_library(True)
            for index in range(4):
                gpus.set(index, hang=True)
            await until(lambda: statuses(server) == _all("no_data"), "the cards to have no data")
            before = len(samples(server))
            await until(lambda: len(with_host(server, before)) >= GOES_ON, "the samples to go on")
            gpus.release()
            await until(lambda: statuses(server) == _all("ok"), "the cards to come back")
            assert _lost(server) == []
            await agent.stopped()

    with_server(server, story)


def test_a_card_that_falls_off_the_bus_is_told_once_beside_the_others_and_comes_back(
    gpus: ScriptedGpus, tmp_path: Path
) -> None:
    server = FakeServer(welcoming())

    async def story() -> None:
        async with running(server.url, tmp_path, environ=gpus.environment) as agent:
            await until(lambda: statuses(server) == _all("ok"), "the cards")
            gpus.raise_xid(2, 79)
            gpus.set(2, lost=True)
            gpus.set(3, used_bytes=70 * GIB)
            await until(lambda: statuses(server) == _all("ok") | {"2": "lost"}, "the loss")
            await until(lambda: used_bytes(server, "3") == 70 * GIB, "what another card says")
            assert [lost.gpu for lost in _lost(server)] == ["2"]
            gpus.set(2, lost=False)
            await until(lambda: statuses(server) == _all("ok"), "the card to come back")
            await agent.stopped()

    with_server(server, story)


def test_after_an_upgrade_of_the_driver_the_agent_goes_on_with_the_new_library(
    tmp_path: Path, need: Callable[[str, str], str]
) -> None:
    """The module is unloaded, another library is put in the old one's place, and the module that fits it is loaded.

    A program that keeps the old library would be refused for ever (LIB_RM_VERSION_MISMATCH)."""
    compiler = need("gcc", standin.NO_GCC)
    library = standin.build(tmp_path, compiler, release="570")
    gpus = ScriptedGpus(tmp_path / "gpus", library, count=4)
    gpus.load_module("570")
    server = FakeServer(welcoming())

    async def story() -> None:
        async with running(server.url, tmp_path, environ=gpus.environment) as agent:
            await until(lambda: statuses(server) == _all("ok"), "the cards")
            gpus.load_module("580")
            await until(lambda: (told := told_of(server, "nvml")) and told.state == "missing", "the mismatch")
            told = told_of(server, "nvml")
            assert told is not None
            assert "different versions" in (told.detail or "")
            await until(lambda: statuses(server) == _all("no_data"), "the cards to have no data")
            standin.build(tmp_path, compiler, release="580")
            await until(lambda: statuses(server) == _all("ok"), "the cards by the new library")
            await agent.stopped()

    with_server(server, story)
