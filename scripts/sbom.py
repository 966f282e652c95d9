"""The software bill of materials (CycloneDX 1.6, JSON) of what oomwatch installs: every pin of requirements.txt.

    python scripts/sbom.py dist/oomwatch.cdx.json

The same pins give the same file, byte for byte. It is validated against CycloneDX's own schema before it is written.
"""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

ROOT = Path(__file__).resolve().parent.parent
LOCK = ROOT / "requirements.txt"


def bill(lock: Path, version: str) -> dict[str, Any]:
    """What CycloneDX's tool makes of a lock file, with what it cannot know: the version, and that all of it is ours."""
    command = [
        *(sys.executable, "-W", "ignore", "-m", "cyclonedx_py", "requirements", str(lock)),
        *("--pyproject", str(ROOT / "pyproject.toml"), "--output-reproducible", "--output-format", "JSON"),
    ]
    made = subprocess.run(command, capture_output=True, check=True)  # noqa: S603 - the tool beside this Python
    told: dict[str, Any] = json.loads(made.stdout)
    root = told["metadata"]["component"]
    root["version"] = version
    (of_root,) = [one for one in told["dependencies"] if one["ref"] == root["bom-ref"]]
    of_root["dependsOn"] = sorted(one["bom-ref"] for one in told["components"])
    return told


def mistake_in(told: dict[str, Any]) -> str | None:
    """What CycloneDX's schema says against it."""
    found = JsonStrictValidator(SchemaVersion.V1_6).validate_str(json.dumps(told))
    return None if found is None else str(found)


def main(path: Path) -> int:
    from oomwatch import __version__  # noqa: PLC0415 - the tests give a version of theirs

    told = bill(LOCK, __version__)
    mistake = mistake_in(told)
    if mistake is not None:
        print(f"the bill is not valid: {mistake}", file=sys.stderr)  # noqa: T201 - a command talks to a person
        return 1
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")
    print(f"{path}: {len(told['components'])} components")  # noqa: T201
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
