"""docs/reference/rule-file.md: every key of alerts.yaml outside of the conditions, which rules.md has."""

# ruff: noqa: E501 - lines of the page

import inspect
import re
import types
import typing
from collections.abc import Iterator

import msgspec
from scripts.reference.tables import code, table
from scripts.reference.words import Words

from oomwatch import wire
from oomwatch.notify.channels import ChannelConfig
from oomwatch.notify.config import NotifyConfig
from oomwatch.notify.heartbeat import HeartbeatSection
from oomwatch.notify.mutesections import InhibitSection, MaintenanceSection, QuietHoursSection
from oomwatch.notify.route import Escalation, Route
from oomwatch.units import Duration, format_duration

_EN = """\
# The rule file, key by key

`alerts.yaml` has three sections: `rules:`, `overrides:` and `notify:`. `oomwatch check FILE` lists every mistake with its line and
column. What a rule may say, every condition and every signal: [rules](rules.md). How to be told: [notifications](../howto/notifications.md);
what becomes of an alert on its way: [the four stages](../explanation/alerts.md).

Durations are written `30s`, `5m`, `1h30m`; a matcher as `'severity="critical"'` ([matchers](../explanation/alerts.md#matchers)).

## overrides

Each changes rules for some nodes or runs; of those that match, the last counts.

| key | meaning |
|---|---|
| `alert` | the rule's name, required |
| `severity` | which of the rules of that name; without it all |
| `match` | `{node: ..., run: ...}`, each a name with `*` and `?`; required |
| `set` | what differs there: `enabled`, `for`, `keep_firing_for`, `keep_firing_steps`, `before_it_dies`, and the parameters of the rule's condition |
"""
_ZH = """\
# 规则文件的每个键

`alerts.yaml` 有三个部分：`rules:`、`overrides:` 和 `notify:`。`oomwatch check FILE` 列出每个错误及其行和列。
一条规则可以写什么、每种条件和每个信号：[规则](rules.md)。怎样得到通知：[通知](../howto/notifications.md)；告警一路上会经历什么：[四个阶段](../explanation/alerts.md)。

时长写作 `30s`、`5m`、`1h30m`；匹配条件写作 `'severity="critical"'`（[匹配条件](../explanation/alerts.md#matchers)）。

## overrides

每一项为某些节点或任务修改规则；匹配的有多项时，以最后一项为准。

| 键 | 含义 |
|---|---|
| `alert` | 规则的名称，必填 |
| `severity` | 该名称的规则中的哪一条；不写时为全部 |
| `match` | `{node: ..., run: ...}`，各为名称，可以含 `*` 和 `?`；必填 |
| `set` | 那里有什么不同：`enabled`、`for`、`keep_firing_for`、`keep_firing_steps`、`before_it_dies`，以及规则的条件的参数 |
"""
_ABOUT: dict[wire.Language, str] = {"en": _EN, "zh": _ZH}
# What the keys mean, by the name of the section's type. A key that is not here fails the test of the page.
_ADDRESS = {
    "url": "its address, here in the file",
    "url_env": "the variable that holds the address",
    "url_file": "the file that holds the address",
}
_SECRET = {
    "secret": "with what messages are signed, here in the file",
    "secret_env": "the variable that holds it",
    "secret_file": "the file that holds it",
}
_CHANNEL = {
    "name": "by which what was delivered is kept: letters, digits, `_`, `.`, `-`",
    "severity": "alerts below it are not sent here",
    "send_resolved": "whether it is told that something is over",
    "rate": "the most that it is sent, as `30/1m`: so many at once, and then as they become free again",
}
_TIMING = {
    "group_wait": "how long the first message of a group waits for company",
    "group_interval": "least time between two messages of a group",
    "repeat_interval": "what fires still is told again so often; `0s`: never",
}
MEANINGS: dict[str, dict[str, str]] = {
    "NotifyConfig": {
        **_TIMING,
        "language": "of the messages",
        "channels": "where to; each is of one of the kinds below",
        "route": "who is told what; without it every channel is told everything",
        "inhibit": "which alerts cover which; without it the two usual ones, `[]` for none",
        "quiet_hours": "when nobody is sent what, by the clock",
        "maintenance": "when nobody is sent what, once",
        "allow_private_addresses": "whether names may lead into a private network",
        "heartbeat": "an address to call for as long as the server does its work",
    },
    "Route": {
        **_TIMING,
        "match": "matchers that all have to hold",
        "channels": "their names; `[]`: to nobody",
        "continue": "whether the next route is looked at too",
        "group_by": "the labels in which the alerts of one message agree",
        "escalate": "who is told what nobody has acknowledged",
        "routes": "its children; the first that matches takes the alert",
    },
    "Escalation": {"after": "how long after it fired", "channels": "who is told then; `[]`: nobody"},
    "InhibitSection": {
        "source": "matchers of the alert that covers",
        "target": "matchers of those that it covers",
        "equal": "labels in which the two must agree",
    },
    "QuietHoursSection": {
        "name": "as the page and the alert show it",
        "from": 'when it begins: `"22:00"`',
        "to": 'when it ends: `"07:00"`, of the next day where it is not later; `"24:00"` is the end of the day',
        "time_zone": "whose clock: `Europe/Berlin`",
        "days": "on which it begins: `mon` to `sun`",
        "match": "which alerts",
    },
    "MaintenanceSection": {
        "name": "as the page and the alert show it",
        "from": "ISO 8601 with an offset",
        "to": "ISO 8601 with an offset",
        "match": "which alerts",
    },
    "HeartbeatSection": {
        **_ADDRESS,
        "interval": "how often it is called",
        "method": "`GET` or `POST`",
        "fail_suffix": "what is put behind the address to say that something fails; without it nobody is called then",
    },
    "SlackChannel": {**_CHANNEL, **_ADDRESS},
    "AppriseChannel": {**_CHANNEL, **_ADDRESS},
    "WebhookChannel": {**_CHANNEL, **_ADDRESS, **_SECRET},
    "SlackBotChannel": {
        **_CHANNEL,
        "channel": "its ID, as `C0123456789`",
        "token": "the bot's token, here in the file",
        "token_env": "the variable that holds it",
        "token_file": "the file that holds it",
        "chart": "whether a picture of the memory goes into the thread",
        "api_url": "a Slack of another address",
    },
    "AlertmanagerChannel": {
        **_CHANNEL,
        **_ADDRESS,
        "username": "for basic auth",
        "password": "for basic auth, here in the file",
        "password_env": "the variable that holds it",
        "password_file": "the file that holds it",
        "token": "a bearer token, here in the file",
        "token_env": "the variable that holds it",
        "token_file": "the file that holds it",
        "watchdog": "whether an alert `Watchdog` always fires there",
    },
}


def page(say: Words) -> str:
    """The whole page."""
    parts = [_ABOUT[say.language], *_section("notify", NotifyConfig, say)]
    for kind in typing.get_args(ChannelConfig):
        parts += _section(f"notify.channels, kind: {kind.__struct_config__.tag}", kind, say)
    for name, kind in _SECTIONS.items():
        parts += _section(name, kind, say)
    return "\n".join(parts)


_SECTIONS: dict[str, type[msgspec.Struct]] = {
    "notify.route": Route,
    "notify.route.escalate": Escalation,
    "notify.inhibit": InhibitSection,
    "notify.quiet_hours": QuietHoursSection,
    "notify.maintenance": MaintenanceSection,
    "notify.heartbeat": HeartbeatSection,
}


def _section(name: str, kind: type[msgspec.Struct], say: Words) -> Iterator[str]:
    yield f"## {name}\n"
    hints = typing.get_type_hints(kind)
    rows = [
        (
            code(field.encode_name),
            _type(hints[field.name], say),
            _default(field, say),
            say(MEANINGS[kind.__name__][field.encode_name]),
        )
        for field in msgspec.structs.fields(kind)
    ]
    yield table(map(say, ("key", "what", "without it", "meaning")), rows)


_WORDS = {
    "bool": "`true` or `false`",
    "str": "text",
    "Duration": "duration",
    "Secret": "text, kept secret",
    "Condition": "matcher",
    "Rate": "rate",
    "ClockTime": "time of day",
    "Moment": "time",
    "ZoneInfo": "time zone",
}


def _type(hint: object, say: Words) -> str:
    """In words: "list of matchers"."""
    of = typing.get_args(hint)
    if typing.get_origin(hint) is tuple:
        return say("list: {of}", of=_type(of[0], say))
    if typing.get_origin(hint) is typing.Literal:
        return say.listed(code(str(one)) for one in of)
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        return say.any_of(dict.fromkeys(_type(one, say) for one in of if one is not type(None)))
    if inspect.isclass(hint) and issubclass(hint, msgspec.Struct):
        return say("section")
    name = getattr(hint, "__name__", str(hint))
    return say(_WORDS.get(name, name))


def _default(field: msgspec.structs.FieldInfo, say: Words) -> str:
    if field.required:
        return say("**required**")
    value = field.default
    if value is None or value is msgspec.NODEFAULT or value == ():
        return ""
    if isinstance(value, Duration):
        return code(format_duration(value))
    if isinstance(value, tuple) and isinstance(value[0], msgspec.Struct):
        return say("see there")
    if isinstance(value, tuple):
        return code(f"[{', '.join(map(str, value))}]")
    return code(re.sub(r"^(True|False)$", lambda found: found[0].lower(), str(value)))
