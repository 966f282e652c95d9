"""Writes backend/oomwatch/plan/verlkeys.json: which settings every release of verl has, and their defaults.

Usage: python scripts/verl_keys.py            (needs the dev requirements, and pip's way to packages)

Each release is downloaded without its dependencies, and its own trainer configurations (verl/trainer/config) are put
together by Hydra as verl's entry point would; nothing of verl is imported. Facts alone are kept: the dotted key, the
default (references as they are written), and from which to which release, for FSDP ("f"), Megatron ("m") or both.
"""

import json
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path

from hydra import compose, initialize_config_dir
from omegaconf import OmegaConf

# The releases that pip knows and people use; of several post-releases the last.
RELEASES = {
    "0.2.0": "0.2", "0.3.0": "0.3.0.post1", "0.4.0": "0.4.0", "0.4.1": "0.4.1", "0.5.0": "0.5.0", "0.6.0": "0.6.0",
    "0.6.1": "0.6.1", "0.7.0": "0.7.0", "0.7.1": "0.7.1", "0.8.0": "0.8.0", "0.9.0": "0.9.0", "0.9.1": "0.9.1",
}  # fmt: skip
CONFIGS = {"f": "ppo_trainer", "m": "ppo_megatron_trainer"}
FOLDER = "verl/trainer/config/"
TARGET = Path(__file__).resolve().parent.parent / "backend/oomwatch/plan/verlkeys.json"

Table = dict[str, list[object]]  # "f" and "m" -> the default under each release, ABSENT where it has no such key
ABSENT = object()


def main() -> None:
    known: dict[str, Table] = {}
    files: dict[str, list[str]] = {}
    for number, pinned in enumerate(RELEASES.values()):
        with tempfile.TemporaryDirectory() as folder:
            configs = _unpacked(pinned, Path(folder))
            for path in sorted(configs.rglob("*.yaml")):
                files.setdefault(str(path.relative_to(configs).with_suffix("")), []).append(list(RELEASES)[number])
            for letter, name in CONFIGS.items():
                for key, value in _composed(configs, name):
                    row = known.setdefault(key, {mark: [ABSENT] * len(RELEASES) for mark in CONFIGS})
                    row[letter][number] = value
    lines = [f"{json.dumps(key)}: {json.dumps(list(_spans(known[key])))}" for key in sorted(known)]
    releases = json.dumps(list(RELEASES))
    content = {
        "releases": releases,
        "files": _object(f"{json.dumps(name)}: {json.dumps([of[0], of[-1]])}" for name, of in sorted(files.items())),
        "keys": _object(lines),
    }
    TARGET.write_text(_object(f'"{name}": {text}' for name, text in content.items()) + "\n", encoding="utf-8")
    print(f"{len(known)} keys of {len(RELEASES)} releases: {TARGET}")  # noqa: T201 - a command talks to a person


def _object(entries: Iterable[str]) -> str:
    """JSON with an entry a line, so that changes can be read."""
    return "{\n" + ",\n".join(entries) + "\n}"


def _unpacked(release: str, folder: Path) -> Path:
    """The release's configuration folder."""
    program = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(folder)]
    subprocess.run([*program, f"verl=={release}"], check=True)  # noqa: S603 - fixed names
    with zipfile.ZipFile(next(folder.glob("verl-*.whl"))) as wheel:
        wheel.extractall(folder, [name for name in wheel.namelist() if name.startswith(FOLDER)])
    return folder / FOLDER


def _composed(configs: Path, name: str) -> Iterator[tuple[str, object]]:
    with initialize_config_dir(str(configs), version_base=None):
        yield from _flat(OmegaConf.to_container(compose(name), resolve=False), "")


def _flat(level: object, above: str) -> Iterator[tuple[str, object]]:
    """Dotted keys and their values; an empty mapping is a value, since people may fill it."""
    if isinstance(level, dict) and level:
        for name, value in level.items():
            yield from _flat(value, f"{above}.{name}" if above else str(name))
    else:
        yield above, level


def _spans(row: Table) -> Iterator[list[object]]:
    """From which to which release a default holds, as [letters, first, last, default]."""
    if json.dumps(row["f"], default=str) == json.dumps(row["m"], default=str):
        yield from (["fm", *span] for span in _runs(row["f"]))
    else:
        for letter in CONFIGS:
            yield from ([letter, *span] for span in _runs(row[letter]))


def _runs(values: list[object]) -> Iterator[list[object]]:
    releases, first = list(RELEASES), 0
    for number in range(1, len(values) + 1):
        if number == len(values) or json.dumps(values[number], default=str) != json.dumps(values[first], default=str):
            if values[first] is not ABSENT:
                yield [releases[first], releases[number - 1], values[first]]
            first = number


if __name__ == "__main__":
    main()
