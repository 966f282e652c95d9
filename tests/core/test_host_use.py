"""How full a host is. The page holds itself against the same cases (tests/frontend/host-use.test.js)."""

from pathlib import Path

import msgspec
import pytest

from oomwatch import wire
from oomwatch.core.hostmemory import tightest


class Case(msgspec.Struct, forbid_unknown_fields=True):
    case: str
    facts: wire.HostFacts
    host: wire.HostSample
    limited_by: str | None


CASES = msgspec.json.decode(Path(__file__).with_name("host_use.json").read_bytes(), type=list[Case])


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.case)
def test_a_host_is_as_full_as_the_tighter_of_machine_and_container(case: Case) -> None:
    figures = {
        "machine": (case.host.memory_used_bytes, case.facts.memory_total_bytes),
        "container": (case.host.cgroup_used_bytes, case.facts.memory_limit_bytes),
    }
    use = tightest(case.host, case.facts)
    if case.limited_by is None:
        assert use is None
        return
    assert use is not None
    assert (use.limited_by, (use.used_bytes, use.limit_bytes)) == (case.limited_by, figures[case.limited_by])
    assert use.ratio == use.used_bytes / use.limit_bytes
