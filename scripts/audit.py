"""Is anything known against a release that we pin? Every lock file, by pip-audit.

    python scripts/audit.py requirements*.txt

Exit status: 0 all was looked up and nothing is known; 1 something is known; 3 not all could be looked up (no network,
or a mirror that has no advisories), which is no pass: it is said what was not.
"""

import json
import subprocess
import sys
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

KNOWN, NOT_LOOKED_UP = 1, 3
SHOWN = 5
SECONDS = 60  # for each lock file: a network that drops what is sent holds nobody up for longer


class Findings(NamedTuple):
    """Of one lock file, in words."""

    looked_up: int
    known: list[str]
    skipped: list[str]


def findings_of(report: dict[str, Any]) -> Findings:
    """What pip-audit's report in JSON comes to. It calls it a pass where nothing at all was found in the service."""
    known, skipped, looked_up = [], [], 0
    for one in report["dependencies"]:
        if "skip_reason" in one:
            skipped.append(str(one["name"]))
            continue
        looked_up += 1
        known += [f"{one['name']} {one['version']}: {flaw['id']}{_mended(flaw)}" for flaw in one["vulns"]]
    return Findings(looked_up, known, skipped)


def _mended(flaw: dict[str, Any]) -> str:
    versions = ", ".join(flaw["fix_versions"])
    return f", mended in {versions}" if versions else ", not mended yet"


def status_of(all_findings: Iterable[Findings | None]) -> int:
    """The exit status; None is a file for which the service could not be reached."""
    found = list(all_findings)
    if any(one is not None and one.known for one in found):
        return KNOWN
    return NOT_LOOKED_UP if any(one is None or one.skipped for one in found) else 0


def _audited(lock: str) -> Findings | None:
    command = [
        *(sys.executable, "-m", "pip_audit", "--requirement", lock, "--require-hashes", "--disable-pip"),
        *("--format", "json", "--progress-spinner", "off"),
    ]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=SECONDS)  # noqa: S603
        return findings_of(json.loads(done.stdout))
    except subprocess.TimeoutExpired:
        return None
    except ValueError:
        sys.stderr.write(done.stderr[-1000:])
        return None


def _told(lock: str, found: Findings | None) -> str:
    if found is None:
        return f"{lock}: the service that knows could not be reached: nothing was looked up"
    lines = [f"{lock}: {found.looked_up} releases looked up, {len(found.known)} flaws known", *found.known]
    if found.skipped:
        names = ", ".join(found.skipped[:SHOWN]) + (", ..." if len(found.skipped) > SHOWN else "")
        lines.append(f"  NOT looked up, for the service does not have them: {len(found.skipped)} ({names})")
    return "\n".join(lines)


def main(locks: Sequence[str]) -> int:
    found = {lock: _audited(lock) for lock in locks}
    print("\n".join(_told(lock, one) for lock, one in found.items()))  # noqa: T201 - a command talks to a person
    return status_of(found.values())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
