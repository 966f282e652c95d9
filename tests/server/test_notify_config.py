"""The notify section of alerts.yaml: what it takes, what it refuses, and how it keeps secrets."""

import base64
import copy
import os
import pickle
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest
from tests.server.notify_samples import SECTIONS

from oomwatch.notify.channel import Surroundings
from oomwatch.notify.channels import ChannelConfig, open_channels
from oomwatch.notify.channels.slack_webhook import SlackChannel
from oomwatch.notify.channels.webhook import WebhookChannel
from oomwatch.notify.config import NotifyConfig, decode_hook
from oomwatch.notify.http import client
from oomwatch.notify.secret import Secret
from oomwatch.notify.words import Frame
from oomwatch.options import SettingError

SLACK = "https://hooks.slack.example/services/T0/B0/verysecret"
WEBHOOK = {"kind": "webhook", "name": "a", "url": "http://a"}
KEY = base64.b64encode(b"k" * 32).decode()


def parse(section: Any) -> NotifyConfig:
    return msgspec.convert(section, NotifyConfig, dec_hook=decode_hook)


def open_one(channel: dict[str, object], environ: dict[str, str] | None = None) -> Any:
    config = parse({"channels": [channel]})
    client = httpx.AsyncClient()
    return open_channels(config.channels, Surroundings(Frame(), client, environ or {}))[0]


def test_the_section_is_read_as_written() -> None:
    config = parse(
        {
            "language": "zh",
            "group_wait": "500ms",
            "group_interval": "1m30s",
            "channels": [
                {"kind": "slack", "name": "team", "url_env": "SLACK_WEBHOOK_URL", "severity": "critical"},
                {"kind": "webhook", "name": "ops", "url": "http://127.0.0.1:9000/hook", "send_resolved": False},
            ],
        }
    )
    assert (config.language, config.group_wait, config.group_interval) == ("zh", 0.5, 90.0)
    slack, webhook = config.channels
    assert isinstance(slack, SlackChannel)
    assert (slack.url_env, slack.severity, slack.send_resolved) == ("SLACK_WEBHOOK_URL", "critical", True)
    assert isinstance(webhook, WebhookChannel)
    assert webhook.url == Secret("http://127.0.0.1:9000/hook")
    assert (webhook.severity, webhook.send_resolved) == ("warning", False)
    assert [channel.kind for channel in config.channels] == ["slack", "webhook"]


def test_an_empty_section_has_defaults() -> None:
    assert parse({}) == NotifyConfig()
    assert (NotifyConfig().group_wait, NotifyConfig().group_interval) == (0.05, 30.0)


@pytest.mark.parametrize(
    ("section", "message"),
    [
        ({"chanels": []}, "chanels"),
        ({"language": "fr"}, "language"),
        ({"group_wait": "soon"}, "no duration"),
        ({"channels": [{"kind": "pager", "name": "a", "url": "http://a"}]}, "pager"),
        ({"channels": [{"kind": "slack", "name": "a"}]}, "exactly one of url, url_env"),
        ({"channels": [{"kind": "slack", "name": "a", "url": "http://a", "url_env": "B"}]}, "exactly one of url"),
        ({"channels": [{"kind": "slack", "name": "a", "url": "http://a", "urgency": 3}]}, "urgency"),
        ({"channels": [{"kind": "slack", "name": "a b", "url": "http://a"}]}, "name"),
        ({"channels": [{"kind": "slack", "name": "a", "url": 5}]}, r"channels\[0\]\.url"),
        ({"channels": [{"kind": "slack", "name": "a", "url": "http://a", "severity": "bad"}]}, "severity"),
        ({"channels": [{**WEBHOOK, "secret": "x", "secret_env": "B"}]}, "at most one"),
        ({"channels": [{"kind": "slack", "name": "a", "url": "http://a"}] * 2}, "two channels are called a"),
    ],
)  # fmt: skip
def test_mistakes_are_named(section: Any, message: str) -> None:
    with pytest.raises(msgspec.ValidationError, match=message):
        parse(section)


def test_secrets_are_not_shown_by_anything_that_prints() -> None:
    config = parse({"channels": [{"kind": "slack", "name": "team", "url": SLACK}]})
    [channel] = config.channels
    assert isinstance(channel, SlackChannel)
    for text in (repr(config), str(config), f"{channel.url}", "%r" % (channel.url,)):  # noqa: UP031
        assert "verysecret" not in text
        assert "(secret)" in text
    with pytest.raises(TypeError):
        msgspec.json.encode(config)
    with pytest.raises(TypeError):
        pickle.dumps(channel.url)
    assert copy.copy(config) == config


def test_a_secret_may_come_from_a_variable_or_a_file(tmp_path: Path) -> None:
    file = tmp_path / "url"
    file.write_text(SLACK + "\n")
    for given in ({"url": SLACK}, {"url_env": "HOOK"}, {"url_file": str(file)}):
        assert open_one({"kind": "slack", "name": "team", **given}, {"HOOK": SLACK})._url == Secret(SLACK)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"url_env": "HOOK"}, "notify channel team: the environment variable HOOK is not set"),
        ({"url_file": "/no/such/file"}, "notify channel team: cannot read /no/such/file"),
        ({"url": "hooks.slack.example/verysecret"}, "notify channel team: its address is no http"),
        ({"url": "http://host:port/verysecret"}, "notify channel team: its address is no http"),
        ({"url": "ftp://host/verysecret"}, "notify channel team: its address is no http"),
        ({"url": "http://xn--aaaaaaaa.example/verysecret"}, "notify channel team: its address is no http"),
        ({"url": "http:///verysecret"}, "notify channel team: its address is no http"),
    ],
)
def test_an_address_that_cannot_be_used_is_named_but_not_shown(given: dict[str, object], message: str) -> None:
    with pytest.raises(SettingError, match=message) as caught:
        open_one({"kind": "slack", "name": "team", **given})
    assert "verysecret" not in str(caught.value)


def test_a_file_that_is_not_there_is_named_once() -> None:
    with pytest.raises(SettingError) as caught:
        open_one({"kind": "slack", "name": "team", "url_file": "/no/such/file"})
    assert (
        str(caught.value)
        == "notify channel team: cannot read /no/such/file: No such file or directory; is its name right?"
    )


def test_an_empty_secret_file_is_named(tmp_path: Path) -> None:
    file = tmp_path / "empty"
    file.touch()
    with pytest.raises(SettingError, match=f"the file {file} is empty"):
        open_one({"kind": "slack", "name": "team", "url_file": str(file)})


def test_a_secret_that_never_ends_or_never_comes_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "huge").write_bytes(b"a" * 100_000)
    for path, said in [
        (tmp_path / "pipe", "is no ordinary file"),
        (Path("/dev/zero"), "is no ordinary file"),
        (tmp_path / "huge", "it is longer than 65536 bytes"),
        (Path("nul\0"), "cannot read"),
    ]:
        with pytest.raises(SettingError, match=said):
            open_one({"kind": "slack", "name": "team", "url_file": str(path)})


@pytest.mark.parametrize("secret", ["not base64!", "c2hvcnQ=", f"{KEY} bad!"])
def test_a_signing_secret_that_is_no_key_is_refused_with_the_way_to_make_one(secret: str) -> None:
    with pytest.raises(SettingError, match="openssl rand -base64 32") as caught:
        open_one({"kind": "webhook", "name": "ops", "url": "http://a", "secret": secret})
    assert secret not in str(caught.value)


def test_a_signing_secret_may_hold_the_new_and_the_old_key() -> None:
    channel = open_one(
        {"kind": "webhook", "name": "ops", "url": "http://a", "secret_env": "KEYS"}, {"KEYS": f"whsec_{KEY}\n{KEY}"}
    )
    assert channel._keys == (Secret(f"whsec_{KEY}"), Secret(KEY))


def test_every_kind_of_channel_can_be_opened() -> None:
    for kind in ChannelConfig.__args__:
        section = SECTIONS[str(kind.__struct_config__.tag)]
        assert open_one(section).config.name == section["name"]


def test_the_client_follows_no_redirects() -> None:
    assert client().follow_redirects is False
