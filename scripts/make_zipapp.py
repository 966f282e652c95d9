"""Makes oomwatch-agent.pyz: the agent as one file that Python 3.10 to 3.14 on Linux runs without an installation.

Usage: make_zipapp.py AGENT_WHEEL TARGET [--python 3.11]... [--machine x86_64]...

What the agent needs is downloaded as requirements-agent.txt locks it, hashes and all. Of pure packages one release
serves all Pythons; what is compiled comes for each Python and machine, and is kept apart by what its files end with.
The same input gives the same bytes. scripts/zipapp_main.py is what runs when the file is started.
"""

import argparse
import hashlib
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from email.parser import Parser
from pathlib import Path
from typing import NamedTuple

from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parent.parent
LOCK = ROOT / "requirements-agent.txt"
PYTHONS = ("3.10", "3.11", "3.12", "3.13", "3.14")
MACHINES = ("x86_64", "aarch64")
GLIBCS = ("2_17", "2_28")  # of which files are taken: CentOS 7 and RHEL 8, and all that is newer
COMPILED = ("msgspec",)  # what does not work without its compiled part
SHEBANG = b"#!/usr/bin/env python3\n"
MOMENT = (2020, 1, 1, 0, 0, 0)  # of every file: when it was made must not change the bytes

Files = dict[str, bytes]


class Pin(NamedTuple):
    """A release in the lock, and the lines that pip wants for it."""

    requirement: Requirement
    lines: str

    def is_for(self, python: str) -> bool:
        marker = self.requirement.marker
        return marker is None or marker.evaluate({"python_full_version": f"{python}.0", "python_version": python})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("wheel", type=Path)
    parser.add_argument("target", type=Path)
    parser.add_argument("--python", action="append")
    parser.add_argument("--machine", action="append")
    options = parser.parse_args()
    files = _contents(options.wheel, options.python or PYTHONS, options.machine or MACHINES)
    write(options.target, files)
    size = options.target.stat().st_size / 1e6
    print(f"{options.target}: {size:.1f} MB, build {files['BUILD'].decode()}")  # noqa: T201 - it talks to a person


def pins(text: str) -> Iterator[Pin]:
    """Those of a lock file."""
    for block in text.replace("\\\n", " ").splitlines():
        if block and block[0].isalnum():
            requirement, *hashes = block.split(" --hash=")
            pin = Requirement(requirement.strip())
            lines = [f"{pin.name}{pin.specifier}", *(f"--hash={one.strip()}" for one in hashes)]
            yield Pin(pin, " ".join(lines))


def asked_for(wheel: Path) -> frozenset[str]:
    """What a wheel needs, without its extras. Those of the agent need nothing in turn."""
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [one for one in archive.namelist() if one.endswith(".dist-info/METADATA")]
        wishes = Parser().parsestr(archive.read(name).decode()).get_all("Requires-Dist", [])
    return frozenset(Requirement(text).name for text in wishes if "extra ==" not in text)


def _contents(wheel: Path, pythons: Sequence[str], machines: Sequence[str]) -> Files:
    """Every file of the archive but what starts it, by its name."""
    wanted = asked_for(wheel)
    locked = [pin for pin in pins(LOCK.read_text(encoding="utf-8")) if pin.requirement.name in wanted]
    files = {f"site/{name}": data for name, data in _of_wheels([wheel]).items()}
    # The release for the oldest Python: the newer ones run it too.
    pure = [pin for pin in locked if pin.requirement.name not in COMPILED and pin.is_for(pythons[0])]
    downloaded = _download(pure, pythons[0], machines[0])
    files |= {f"site/{name}": data for name, data in downloaded.items() if not name.endswith(".so")}
    compiled = [pin for pin in locked if pin.requirement.name in COMPILED]
    for python in pythons:
        for machine in machines:
            fitting = [pin for pin in compiled if pin.is_for(python)]
            ending = f"cpython-{python.replace('.', '')}-{machine}-linux-gnu"
            files |= {f"native/{ending}/{name}": data for name, data in _download(fitting, python, machine).items()}
    files["__main__.py"] = (ROOT / "scripts/zipapp_main.py").read_bytes()
    return {"BUILD": _digest(files).encode(), **files}


def _download(wanted: Sequence[Pin], python: str, machine: str) -> Files:
    """The files of releases for a Python and a machine. Raises CalledProcessError: pip has said why."""
    with tempfile.TemporaryDirectory() as folder:
        asked = Path(folder) / "asked.txt"
        asked.write_text("\n".join(pin.lines for pin in wanted), encoding="utf-8")
        tag = f"cp{python.replace('.', '')}"
        fits = ["--python-version", python, "--implementation", "cp", "--abi", tag, "--abi", "abi3", "--abi", "none"]
        systems = [text for glibc in GLIBCS for text in ("--platform", f"manylinux_{glibc}_{machine}")]
        program = [sys.executable, "-m", "pip", "download", "-qq", "--disable-pip-version-check", "--no-deps"]
        program += ["--only-binary", ":all:", "--require-hashes", "-r", str(asked), "--dest", folder, *fits, *systems]
        subprocess.run(program, check=True)  # noqa: S603 - fixed names
        return _of_wheels(sorted(Path(folder).glob("*.whl")))


def _of_wheels(wheels: Sequence[Path]) -> Files:
    """What these wheels install, with their metadata and licences, without what lists it and without tests."""
    files: Files = {}
    for path in wheels:
        with zipfile.ZipFile(path) as wheel:
            names = [name for name in wheel.namelist() if not name.endswith(("/", "/RECORD", ".pyi", ".c", ".h"))]
            files |= {name: wheel.read(name) for name in names if "/tests/" not in name}
    return files


def _digest(files: Mapping[str, bytes]) -> str:
    digest = hashlib.sha256()
    for name in sorted(files):
        digest.update(f"{name}\0{len(files[name])}\0".encode() + files[name])
    return digest.hexdigest()[:16]


def write(target: Path, files: Mapping[str, bytes]) -> None:
    """The file that a Python can start. The same files give the same bytes."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with target.open("wb") as file:
        file.write(SHEBANG)
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
            for name in sorted(files):
                entry = zipfile.ZipInfo(name, MOMENT)
                entry.external_attr = 0o644 << 16
                archive.writestr(entry, files[name], zipfile.ZIP_DEFLATED, 9)
    target.chmod(0o755)


if __name__ == "__main__":
    main()
