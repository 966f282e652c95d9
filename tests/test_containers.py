"""Images and compose files keep to rules of our own: pinned, nobody in particular, nothing to write to, bounded."""

import re
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

ROOT = Path(__file__).resolve().parent.parent
DOCKERFILES = sorted((ROOT / "docker").glob("Dockerfile.*"))
COMPOSE = sorted(ROOT.glob("docker-compose*.yml"))
OURS = {"Dockerfile.server": "oomwatch", "Dockerfile.agent": "oomwatch_agent"}

EACH_DOCKERFILE = pytest.mark.parametrize("path", DOCKERFILES, ids=lambda path: path.suffix[1:])
EACH_COMPOSE = pytest.mark.parametrize("path", COMPOSE, ids=lambda path: path.name)


class Step(NamedTuple):
    """An instruction of a Dockerfile, its lines joined."""

    word: str
    text: str


def _stages(path: Path) -> list[list[Step]]:
    lines = [line for line in path.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    steps = [Step(*line.split(maxsplit=1)) for line in "\n".join(lines).replace("\\\n", " ").splitlines() if line]
    starts = [place for place, step in enumerate(steps) if step.word == "FROM"]
    return [steps[start:end] for start, end in zip(starts, [*starts[1:], len(steps)], strict=True)]


def _texts(stage: list[Step], word: str) -> list[str]:
    return [step.text for step in stage if step.word == word]


def _services(path: Path) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = yaml.safe_load(path.read_text(encoding="utf-8"))["services"]
    return found


def test_there_is_an_image_of_each_program() -> None:
    assert {path.name for path in DOCKERFILES} == OURS.keys()


@EACH_DOCKERFILE
def test_every_stage_begins_with_the_same_pinned_release(path: Path) -> None:
    bases = {stage[0].text.split()[0] for stage in _stages(path)}
    assert len(bases) == 1
    assert re.fullmatch(r"python:3\.\d+\.\d+-slim-\w+|python@sha256:[0-9a-f]{64}", bases.pop())


@EACH_DOCKERFILE
def test_no_other_image_is_needed_to_build_it(path: Path) -> None:
    # "# syntax=docker/dockerfile:1" has BuildKit fetch that image, of no fixed release, and run it: where only a mirror
    # of the base image can be reached the build ends there.
    assert not re.search(r"^#\s*syntax\s*=", path.read_text(encoding="utf-8"), re.MULTILINE | re.IGNORECASE)


@EACH_DOCKERFILE
def test_everything_from_the_network_is_held_against_its_hash(path: Path) -> None:
    *building, last = _stages(path)
    installs = [text for stage in building for text in _texts(stage, "RUN") if "pip install" in text]
    assert len(installs) == 2
    locked, own = installs
    assert "--require-hashes -r requirements" in locked
    assert "--no-deps --no-build-isolation" in own
    assert [step for stage in _stages(path) for step in stage if step.word == "ADD"] == []
    assert not re.search(r"curl|wget|apt-get|pip install", " ".join(_texts(last, "RUN")))


@EACH_DOCKERFILE
def test_the_image_has_what_was_built_and_none_of_the_tools(path: Path) -> None:
    *building, last = _stages(path)
    taken_away = _texts(building[-1], "RUN")[-1].partition("pip uninstall --yes ")[2].split()
    assert {"hatchling", "editables", "pip"} <= set(taken_away)
    assert [text.split()[0] for text in _texts(last, "COPY")] == ["--from=build"]


@EACH_DOCKERFILE
def test_it_runs_as_a_user_whose_number_says_that_it_is_not_root(path: Path) -> None:
    last = _stages(path)[-1]
    (user,) = _texts(last, "USER")  # a number: Kubernetes cannot tell of a name whether it is root
    assert f"--uid {user}" in " ".join(_texts(last, "RUN"))
    words = [step.word for step in last]
    assert words.index("USER") > max(place for place, word in enumerate(words) if word == "RUN")


@EACH_DOCKERFILE
def test_it_says_what_it_is_how_it_is_and_what_it_starts(path: Path) -> None:
    last = _stages(path)[-1]
    labels = " ".join(_texts(last, "LABEL"))
    assert all(f"org.opencontainers.image.{name}=" in labels for name in ("title", "description", "licenses"))
    assert len(_texts(last, "HEALTHCHECK")) == 1
    (entry,) = _texts(last, "ENTRYPOINT")
    assert yaml.safe_load(entry) == [OURS[path.name].replace("_", "-")]  # signals reach the program, not a shell


@EACH_DOCKERFILE
def test_the_standard_library_is_compiled_once_and_not_at_each_start(path: Path) -> None:
    assert "python -m compileall" in " ".join(_texts(_stages(path)[-1], "RUN"))


@EACH_DOCKERFILE
def test_compiled_modules_are_not_written_where_nothing_can_be(path: Path) -> None:
    assert "PYTHONDONTWRITEBYTECODE=1" in " ".join(_texts(_stages(path)[-1], "ENV"))


@pytest.mark.parametrize("page", ["docs/howto/install.md", "docs/howto/install.zh.md", "docker/Dockerfile.agent"])
def test_an_agent_is_shown_the_nodes_shared_memory_and_not_the_64_mib_of_its_container(page: str) -> None:
    assert " -v /dev/shm:/dev/shm:ro " in (ROOT / page).read_text(encoding="utf-8")


@EACH_COMPOSE
def test_no_container_has_more_than_it_needs(path: Path) -> None:
    for name, service in _services(path).items():
        assert service["read_only"] is True, name
        assert service["cap_drop"] == ["ALL"], name
        assert service["security_opt"] == ["no-new-privileges:true"], name
        assert not service.keys() & {"privileged", "network_mode", "pid", "ipc", "devices", "userns_mode"}, name
        assert "cap_add" not in service or name == "postgres"


@EACH_COMPOSE
def test_every_container_has_bounds_and_comes_back(path: Path) -> None:
    for name, service in _services(path).items():
        assert service.keys() >= {"mem_limit", "pids_limit", "restart"}, name


@EACH_COMPOSE
def test_files_of_the_project_are_mounted_for_reading(path: Path) -> None:
    volumes = [volume for service in _services(path).values() for volume in service.get("volumes", ())]
    assert volumes
    assert [one for one in volumes if one.startswith("./") and not one.endswith(":ro")] == []


@EACH_COMPOSE
def test_the_server_writes_its_database_onto_a_volume(path: Path) -> None:
    for name, service in _services(path).items():
        database = service.get("environment", {}).get("OOMWATCH_DB", "postgresql:")
        folders = {volume.split(":")[1] for volume in service.get("volumes", ())}
        assert database.startswith("postgresql:") or str(Path(database).parent) in folders, name
