"""docker-compose.several.yml and docker/haproxy.cfg hold together, and with the programs they start."""

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import jsonschema
import yaml
from tests.haproxy import haproxy

ROOT = Path(__file__).resolve().parent.parent
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.several.yml").read_text(encoding="utf-8"))
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
SERVERS = {name: service for name, service in SERVICES.items() if name.startswith("server-")}
HAPROXY = ROOT / "docker/haproxy.cfg"


def test_the_file_follows_the_compose_specification(need_file: Callable[[Path, str], Path]) -> None:
    schema = need_file(ROOT / "node_modules/dclint/schemas/compose.schema.json", "make test, which runs npm ci")
    validator = jsonschema.Draft7Validator(json.loads(schema.read_text(encoding="utf-8")))
    assert [error.message for error in validator.iter_errors(COMPOSE)] == []


def test_every_volume_is_a_file_of_the_project_or_a_declared_volume() -> None:
    sources = {volume.split(":")[0] for service in SERVICES.values() for volume in service.get("volumes", ())}
    assert {source for source in sources if not source.startswith(".")} == set(COMPOSE["volumes"])
    assert [source for source in sources if source.startswith(".") and not (ROOT / source).exists()] == []


def test_every_image_that_is_not_built_here_has_a_fixed_release() -> None:
    images = [service["image"] for service in SERVICES.values() if "build" not in service]
    assert len(images) == 3
    assert all(re.fullmatch(r"[\w/-]+:\d+(\.\d+)+", image) for image in images)


def test_one_port_is_open_and_to_this_machine_alone_unless_asked_for() -> None:
    ports = {name: service["ports"] for name, service in SERVICES.items() if "ports" in service}
    assert ports == {"haproxy": ["${OOMWATCH_BIND:-127.0.0.1}:8642:8642"]}


def test_the_servers_are_alike_but_for_their_names() -> None:
    names = [service["environment"]["OOMWATCH_CLUSTER_REPLICA"] for service in SERVERS.values()]
    assert names == ["a", "b", "c"]
    plain = [{**one, "environment": {**one["environment"], "OOMWATCH_CLUSTER_REPLICA": ""}} for one in SERVERS.values()]
    assert all(one == plain[0] for one in plain)


def test_every_variable_is_known_to_the_server() -> None:
    program = [sys.executable, "-m", "oomwatch", "serve", "--help"]
    known = subprocess.run(program, capture_output=True, text=True, check=True).stdout
    variables = SERVERS["server-a"]["environment"]
    assert [name for name in variables if not re.search(rf"{name}\b", known)] == []


def test_the_servers_find_the_database_and_nats() -> None:
    environment = SERVERS["server-a"]["environment"]
    database, nats = urlsplit(environment["OOMWATCH_DB"]), urlsplit(environment["OOMWATCH_CLUSTER_NATS"])
    postgres = SERVICES["postgres"]["environment"]
    assert (database.username, database.path) == (postgres["POSTGRES_USER"], f"/{postgres['POSTGRES_DB']}")
    assert f":{postgres['POSTGRES_PASSWORD']}@postgres:5432/" in environment["OOMWATCH_DB"]
    assert (nats.hostname, nats.port) == ("nats", 4222)
    assert SERVICES["nats"]["image"].startswith("nats:")


def test_the_image_has_what_one_of_several_servers_and_an_identity_provider_need() -> None:
    dockerfile = (ROOT / SERVERS["server-a"]["build"]["dockerfile"]).read_text(encoding="utf-8")
    assert "-r requirements.txt" in dockerfile
    locked = (ROOT / "requirements.txt").read_text(encoding="utf-8")
    assert all(
        re.search(rf"^{package}==", locked, re.MULTILINE) for package in ("nats-py", "psycopg-binary", "joserfc")
    )


def test_the_load_balancer_knows_every_server_by_its_port() -> None:
    text = HAPROXY.read_text(encoding="utf-8")
    assert re.findall(r"^  server \w+ (\S+)$", text, re.MULTILINE) == [f"{name}:8642" for name in SERVERS]
    assert "  bind :8642\n" in text
    assert SERVERS["server-a"]["environment"]["OOMWATCH_LISTEN"].endswith(":8642")
    assert "ws://haproxy:8642" in SERVICES["agent"]["command"]


def test_haproxy_takes_its_configuration() -> None:
    told = subprocess.run([haproxy(), "-c", "-f", str(HAPROXY)], capture_output=True, text=True, check=False)
    assert told.returncode == 0, told.stdout + told.stderr
