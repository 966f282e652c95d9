"""docker-compose.yml and docker/ hold together, and with the programs they start. No Docker engine is needed for it."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from tests.prometheus.servers import need

ROOT = Path(__file__).resolve().parent.parent
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text(encoding="utf-8"))
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
PROMETHEUS: dict[str, Any] = yaml.safe_load((ROOT / "docker/prometheus.yml").read_text(encoding="utf-8"))
DOCKERFILES = sorted((ROOT / "docker").glob("Dockerfile.*"))
PROGRAMS = {"server": "oomwatch", "agent": "oomwatch_agent"}

EACH_DOCKERFILE = pytest.mark.parametrize("dockerfile", DOCKERFILES, ids=lambda path: path.suffix)
EACH_PROGRAM = pytest.mark.parametrize("service", PROGRAMS)


def _help(service: str, command: list[str]) -> str:
    """What a service's program says to --help. The words before the first flag name a subcommand."""
    words = [word for word in command[:1] if not word.startswith("-")]
    program = [sys.executable, "-m", PROGRAMS[service], *words, "--help"]
    # Wide, so that no name is broken over two lines.
    environment = {**os.environ, "COLUMNS": "10000"}
    return subprocess.run(program, env=environment, capture_output=True, text=True, check=True).stdout


def _mounted_files() -> Iterator[Path]:
    for service in SERVICES.values():
        for volume in service.get("volumes", ()):
            source = volume.split(":")[0]
            if source.startswith("."):
                yield ROOT / source


def test_the_compose_file_follows_the_compose_specification(need_file: Callable[[Path, str], Path]) -> None:
    schema = need_file(ROOT / "node_modules/dclint/schemas/compose.schema.json", "make test, which runs npm ci")
    validator = jsonschema.Draft7Validator(json.loads(schema.read_text(encoding="utf-8")))
    assert [error.message for error in validator.iter_errors(COMPOSE)] == []


def test_every_volume_is_a_file_of_the_project_or_a_declared_volume() -> None:
    named = {volume.split(":")[0] for service in SERVICES.values() for volume in service.get("volumes", ())}
    assert {name for name in named if not name.startswith(".")} == set(COMPOSE["volumes"])
    assert [path for path in _mounted_files() if not path.exists()] == []


def test_every_image_has_a_fixed_release() -> None:
    images = [service["image"] for service in SERVICES.values() if "image" in service]
    assert all(re.fullmatch(r"[\w/-]+:v?\d+\.\d+\.\d+", image) for image in images)


def test_every_port_is_open_to_this_machine_alone_unless_asked_for() -> None:
    ports = [port for service in SERVICES.values() for port in service.get("ports", ())]
    assert ports
    assert all(port.startswith("${OOMWATCH_BIND:-127.0.0.1}:") for port in ports)


@EACH_DOCKERFILE
def test_every_file_that_an_image_copies_reaches_the_build(dockerfile: Path) -> None:
    ignored = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    let_through = [line.removeprefix("!") for line in ignored if line.startswith("!")]
    for line in dockerfile.read_text(encoding="utf-8").splitlines():
        if line.startswith("COPY ") and "--from" not in line:
            for source in line.split()[1:-1]:
                assert (ROOT / source).exists(), f"{dockerfile.name} copies {source}, which does not exist"
                above = {source, *(str(folder) for folder in Path(source).parents)}
                assert above & set(let_through), f".dockerignore hides {source}"


@EACH_PROGRAM
def test_every_service_is_built_from_a_dockerfile_that_starts_its_program(service: str) -> None:
    dockerfile = (ROOT / SERVICES[service]["build"]["dockerfile"]).read_text(encoding="utf-8")
    program = PROGRAMS[service].replace("_", "-")
    assert f'ENTRYPOINT ["{program}"]' in dockerfile
    assert f'{program} = "{PROGRAMS[service]}.__main__:main"' in (ROOT / "pyproject.toml").read_text(encoding="utf-8")


@EACH_PROGRAM
def test_every_flag_and_variable_is_known_to_the_program(service: str) -> None:
    command: list[str] = SERVICES[service]["command"]
    known = _help(service, command)
    flags = {word for word in command if word.startswith("--")}
    variables = {name for name in SERVICES[service].get("environment", ()) if name.startswith("OOMWATCH_")}
    assert {name for name in flags | variables if not re.search(rf"{name}\b", known)} == set()


def test_everyone_who_talks_to_the_server_uses_the_port_it_listens_on() -> None:
    server, agent = SERVICES["server"], SERVICES["agent"]
    port = server["environment"]["OOMWATCH_LISTEN"].rpartition(":")[2]
    assert server["ports"][0].endswith(f":{port}:{port}")
    assert f"http://127.0.0.1:{port}/healthz" in server["healthcheck"]["test"][-1]
    assert f"ws://server:{port}" in agent["command"]
    assert PROMETHEUS["scrape_configs"][0]["static_configs"][0]["targets"] == [f"server:{port}"]


def test_the_database_lies_on_the_volume() -> None:
    server = SERVICES["server"]
    folder = next(volume.split(":")[1] for volume in server["volumes"] if volume.startswith("database:"))
    assert f"{folder}/" in server["environment"]["OOMWATCH_DB"]
    assert folder in (ROOT / server["build"]["dockerfile"]).read_text(encoding="utf-8")


def test_prometheus_tells_the_alertmanager_of_the_optional_profile() -> None:
    (target,) = PROMETHEUS["alerting"]["alertmanagers"][0]["static_configs"][0]["targets"]
    host, _, port = target.partition(":")
    assert SERVICES[host]["ports"][0].endswith(f":{port}")
    assert SERVICES[host]["profiles"] == [host]


def test_prometheus_and_alertmanager_take_their_configurations() -> None:
    for command in (
        ["promtool", "check", "config", "--syntax-only", "prometheus.yml"],
        ["amtool", "check-config", "alertmanager.yml"],
    ):
        told = subprocess.run(
            [need(command[0]), *command[1:]], cwd=ROOT / "docker", capture_output=True, text=True, check=False
        )
        assert told.returncode == 0, told.stdout + told.stderr


def test_prometheus_reads_the_rules_that_lie_in_the_folder_for_them() -> None:
    mounts = dict(volume.split(":")[:2] for volume in SERVICES["prometheus"]["volumes"])
    assert PROMETHEUS["rule_files"] == [mounts["./docker/rules"] + "/*.yml"]
