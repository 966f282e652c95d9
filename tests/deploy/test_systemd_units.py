"""The units of deploy/systemd: what systemd thinks of them, and that what they start starts."""

import argparse
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.acceptance.programs import DEADLINE_SECONDS, Program, ending
from tests.deploy.units import FOLDER, HOME, unit
from tests.ports import free_port
from tests.server.running_server import ENVIRON

from oomwatch.options import resolve
from oomwatch.settings import Settings, check, database_address
from oomwatch_agent.settings import load

HOW_TO_GET = "apt-get install systemd"
# What `systemd-analyze security` makes of them: 0 may do nothing, 100 anything. The agent has to see the whole machine.
EXPOSURE_AT_MOST = {"server": 15, "agent": 36}


@pytest.mark.parametrize("name", EXPOSURE_AT_MOST)
def test_systemd_finds_no_mistake_in_a_unit(name: str, tmp_path: Path, need: Callable[[str, str], str]) -> None:
    tool = need("systemd-analyze", HOW_TO_GET)
    text = unit(name).path.read_text(encoding="utf-8").replace(f"{HOME}oomwatch-agent", "/bin/true")
    copy = tmp_path / f"oomwatch-{name}.service"
    copy.write_text(text.replace(f"{HOME}oomwatch", "/bin/true"), encoding="utf-8")
    found = subprocess.run([tool, "verify", "--man=no", str(copy)], capture_output=True, text=True, check=False)
    assert [line for line in found.stderr.splitlines() if copy.name in line] == []
    assert found.returncode == 0, found.stderr


@pytest.mark.parametrize(("name", "exposure"), EXPOSURE_AT_MOST.items())
def test_a_service_is_allowed_no_more_than_it_needs(name: str, exposure: int, need: Callable[[str, str], str]) -> None:
    tool = need("systemd-analyze", HOW_TO_GET)
    command = [tool, "security", "--offline=true", f"--threshold={exposure}", "--no-pager", str(unit(name).path)]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stdout[-500:]


def test_the_agent_may_look_and_neither_writes_nor_becomes_more() -> None:
    agent = unit("agent")
    assert agent.one("CapabilityBoundingSet").split() == ["CAP_SYS_PTRACE", "CAP_DAC_READ_SEARCH"]
    assert (agent.one("ProtectSystem"), agent.one("NoNewPrivileges")) == ("strict", "yes")
    assert (agent.one("ProtectProc"), agent.one("PrivateTmp")) == ("default", "no")


@pytest.mark.parametrize("name", EXPOSURE_AT_MOST)
def test_no_secret_stands_in_a_unit_or_in_its_settings(name: str) -> None:
    settings = (FOLDER / f"{name}.yaml").read_text(encoding="utf-8")
    text = unit(name).path.read_text(encoding="utf-8") + settings
    assert not [line for line in text.splitlines() if "token:" in line.replace("LoadCredential=token:", "")]
    assert "--token" not in text


def test_the_settings_that_come_with_the_units_are_settings(tmp_path: Path) -> None:
    given = resolve(Settings, argparse.Namespace(config=str(FOLDER / "server.yaml")), unit("server").environ())
    check(given.settings)
    assert database_address(given.settings, unit("server").environ()) == "/var/lib/oomwatch/oomwatch.db"
    token = tmp_path / "token"
    token.write_text("of-the-agent\n", encoding="utf-8")
    environ = {**unit("agent").environ(), "OOMWATCH_TOKEN_FILE": str(token)}
    agent = load(["--config", str(FOLDER / "agent.yaml")], environ).settings
    assert (agent.token, agent.acts_dir) == ("of-the-agent", "/var/lib/oomwatch-agent/acts")


@pytest.mark.acceptance
def test_what_the_servers_unit_starts_tells_systemd_that_it_is_ready(tmp_path: Path) -> None:
    server = unit("server")
    program, *arguments = server.command()
    assert program == f"{HOME}oomwatch"
    assert arguments == ["serve", "--config", "/etc/oomwatch/server.yaml"]
    settings = tmp_path / "server.yaml"
    settings.write_text(f"listen: 127.0.0.1:{free_port()}\n", encoding="utf-8")
    environ = {**server.environ(), "XDG_DATA_HOME": str(tmp_path), "NOTIFY_SOCKET": str(tmp_path / "notify")}
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as line:
        line.bind(environ["NOTIFY_SOCKET"])
        line.settimeout(DEADLINE_SECONDS)
        started = Program("serve", ["-m", "oomwatch", "serve", "--config", str(settings)], tmp_path, environ)
        with ending(started):
            said = line.recv(100).decode()
            while said.startswith("EXTEND_TIMEOUT"):
                said = line.recv(100).decode()
            assert said == "READY=1", started.output
            assert (tmp_path / "oomwatch/oomwatch.db").exists()
            assert started.stop() == 0


def test_a_setting_that_cannot_be_used_ends_with_the_status_that_systemd_does_not_start_again_after() -> None:
    for name, module in (("server", ["oomwatch", "serve"]), ("agent", ["oomwatch_agent"])):
        wrong = [sys.executable, "-m", *module, "--config", "/nowhere/at/all.yaml"]
        ended = subprocess.run(wrong, capture_output=True, check=False, env=ENVIRON)
        assert str(ended.returncode) == unit(name).one("RestartPreventExitStatus")
