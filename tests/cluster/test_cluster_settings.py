"""What is refused of the settings of several servers, each with a sentence, and what a server is called among them."""

from pathlib import Path

import msgspec
import pytest
from tests.server.running_server import serving, settings_in

from oomwatch.options import SettingError
from oomwatch.service.rulewatch import RuleWatch
from oomwatch.settings import Settings, check
from oomwatch.web.clustered import replica_name
from oomwatch.web.ruledesk import IN_CLUSTER, RuleDesk

GOOD = msgspec.structs.replace(
    Settings(), db="postgresql://oomwatch@db/oomwatch", cluster_nats="nats://one:4222,tls://two:4222"
)


def test_what_is_whole_is_taken() -> None:
    check(GOOD)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"db": None}, "share a PostgreSQL"),
        ({"db": "/var/lib/oomwatch.db"}, "share a PostgreSQL"),
        ({"cluster_nats": "http://nats:4222"}, "no nats:// or tls:// address"),
        ({"cluster_nats": "nats://"}, "no nats:// or tls:// address"),
        ({"cluster_nats": "nats://one:4222,nats://two:x"}, "no nats:// or tls:// address"),
        ({"cluster_site": "a.b"}, "cluster_site"),
        ({"cluster_replica": "replica >"}, "cluster_replica"),
    ],
)
def test_what_cannot_work_is_refused_by_name(changes: dict[str, object], sentence: str) -> None:
    with pytest.raises(SettingError, match=sentence):
        check(msgspec.structs.replace(GOOD, **changes))


def test_the_address_of_nats_is_not_shown_where_it_is_wrong() -> None:
    with pytest.raises(SettingError) as error:
        check(msgspec.structs.replace(GOOD, cluster_nats="nats://user:hunter2@one:x"))
    assert "hunter2" not in str(error.value)


def test_a_server_is_called_by_its_host_and_port_unless_it_has_a_name() -> None:
    assert replica_name(msgspec.structs.replace(GOOD, listen="0.0.0.0:8700")).endswith("-8700")
    assert replica_name(msgspec.structs.replace(GOOD, cluster_replica="a")) == "a"


def test_the_rules_of_several_servers_are_changed_where_they_are_deployed_from(tmp_path: Path) -> None:
    settings = msgspec.structs.replace(GOOD, rules_editable=True, rules=tmp_path / "alerts.yaml")
    desk = RuleDesk(tmp_path / "alerts.yaml", settings, _NO_WATCH, lambda: None)
    assert desk.why_not() == IN_CLUSTER


_NO_WATCH: RuleWatch = None  # type: ignore[assignment]


def test_a_server_alone_has_no_figures_of_several(tmp_path: Path) -> None:
    with serving(settings_in(tmp_path)) as server:
        assert server.parts.cluster is None
        assert "oomwatch_cluster" not in server.get("/metrics").text
