"""What the settings of the senders may be, and what is said where an extra is not installed."""

import sys

import msgspec
import pytest

from oomwatch.options import SettingError
from oomwatch.senders.chosen import chosen, instance_of
from oomwatch.settings import Settings, check


def nothing() -> None:
    """No defect is counted here."""


def settings(**changes: object) -> Settings:
    return msgspec.structs.replace(Settings(), **changes)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"remote_write_url": "prometheus:9090"}, "remote_write_url: is no http"),
        ({"remote_write_url": "http://["}, "remote_write_url: is no http"),
        ({"remote_write_url": "http://xn--aaaaaaaa/"}, "remote_write_url: is no http"),
        ({"otlp_endpoint": "http://collector:99999/"}, 'otlp_endpoint: "http://collector:99999/" is no http'),
        ({"external_url": "http://xn--aaaaaaaa/"}, 'external_url: "http://xn--aaaaaaaa/" is no http'),
        ({"otlp_endpoint": "collector:4317"}, 'otlp_endpoint: "collector:4317" is no http'),
        ({"remote_write_interval": 0.1}, "remote_write_interval: must be from 1s"),
        ({"otlp_interval": 3600.0}, "otlp_interval: must be from 1s to 300s"),
    ],
)
def test_what_cannot_be_is_refused_with_its_name(wrong: dict[str, object], said: str) -> None:
    with pytest.raises(SettingError, match=said):
        check(settings(**wrong))


def test_an_address_that_only_a_client_finds_to_be_none_is_refused_with_its_name() -> None:
    with pytest.raises(SettingError, match="remote_write_url: its address is no http"):
        chosen(settings(remote_write_url="http://\N{SNOWMAN WITHOUT SNOW}.example/"), lambda: list, nothing, 0.0)


def test_nothing_is_sent_anywhere_unless_a_setting_says_so() -> None:
    assert chosen(Settings(), lambda: list, nothing, 0.0) == []


def test_the_series_of_several_servers_go_on_where_another_sends_them() -> None:
    site = {"cluster_nats": "nats://one:4222", "cluster_site": "north"}
    assert [instance_of(settings(listen=listen, **site)) for listen in ("a:8642", "b:8643")] == ["north", "north"]
    assert instance_of(settings(listen="127.0.0.1:8643")).endswith(":8643")


@pytest.mark.parametrize(
    ("module", "setting", "extra"),
    [
        ("cramjam", {"remote_write_url": "http://store/write"}, r"oomwatch\[remote-write\]"),
        ("opentelemetry.exporter.otlp.proto.http.metric_exporter", {"otlp_endpoint": "http://c"}, r"oomwatch\[otlp\]"),
    ],
)
def test_an_extra_that_is_not_installed_is_named(
    module: str, setting: dict[str, object], extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(SettingError, match=extra):
        chosen(settings(**setting), lambda: list, nothing, 0.0)
