"""What is installed is told in a bill of materials, and what is known against it is looked up honestly."""

from typing import Any

import pytest
from scripts import audit, sbom


def _report(*dependencies: dict[str, Any]) -> dict[str, Any]:
    """As pip-audit writes it."""
    return {"dependencies": list(dependencies), "fixes": []}


GOOD = {"name": "a", "version": "1.0", "vulns": []}
FLAWED = {"name": "b", "version": "1.0", "vulns": [{"id": "PYSEC-2024-1", "fix_versions": ["1.1"]}]}
UNKNOWN = {"name": "c", "skip_reason": "Dependency not found on the index and could not be audited: c (1.0)"}


@pytest.mark.parametrize(
    ("dependencies", "status"),
    [([GOOD], 0), ([GOOD, FLAWED], 1), ([GOOD, UNKNOWN], 3), ([UNKNOWN], 3), ([FLAWED, UNKNOWN], 1)],
)
def test_what_was_not_looked_up_is_no_pass(dependencies: list[dict[str, Any]], status: int) -> None:
    assert audit.status_of([audit.findings_of(_report(*dependencies))]) == status


def test_a_service_that_cannot_be_reached_is_no_pass() -> None:
    assert audit.status_of([None, audit.findings_of(_report(GOOD))]) == 3


def test_a_flaw_is_told_with_the_release_that_mends_it() -> None:
    found = audit.findings_of(_report(FLAWED))
    assert found.known == ["b 1.0: PYSEC-2024-1, mended in 1.1"]


def test_the_bill_of_materials_is_valid_and_has_every_pin_with_its_hashes() -> None:
    told = sbom.bill(sbom.LOCK, "1.2.3")
    assert sbom.mistake_in(told) is None
    lines = sbom.LOCK.read_text(encoding="utf-8").splitlines()
    pinned = {line.split("==")[0].split("[")[0] for line in lines if "==" in line and not line.startswith((" ", "#"))}
    assert {one["name"] for one in told["components"]} == pinned
    assert all(one["externalReferences"][0]["hashes"] for one in told["components"])
    assert told["metadata"]["component"]["version"] == "1.2.3"


def test_a_bill_that_is_none_is_found_out() -> None:
    assert "bomFormat" in str(sbom.mistake_in({"specVersion": "1.6"}))
