"""Alertmanager's webhook, version "4": whatever receives Alertmanager's messages receives ours.

Labels, annotations and times are those of amalert.py.
"""

import base64
import hashlib
import hmac
import time
from collections.abc import Callable, Iterable, Mapping

import httpx
import msgspec

from oomwatch import options, wire
from oomwatch.notify import http
from oomwatch.notify.amalert import annotations, labels, rfc3339
from oomwatch.notify.channel import AddressedSection, Surroundings, given
from oomwatch.notify.message import compose
from oomwatch.notify.notice import Notice
from oomwatch.notify.outcome import Outcome
from oomwatch.notify.secret import Secret, find_secret
from oomwatch.notify.words import Frame

CHANNEL_ALERT = "oomwatch_channel_failed"
NOT_ENDED = "0001-01-01T00:00:00Z"  # Alertmanager's endsAt of an alert that still fires
KEY_BYTES = 24  # the least that Standard Webhooks allows


class WebhookChannel(AddressedSection, frozen=True, kw_only=True, tag="webhook"):
    """Any receiver of Alertmanager's webhooks. With a secret, requests are signed as Standard Webhooks says."""

    secret: Secret | None = None
    secret_env: str | None = None
    secret_file: str | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if given(self.secret, self.secret_env, self.secret_file) > 1:
            raise ValueError("give at most one of secret, secret_env (an environment variable) and secret_file")

    def open(self, around: Surroundings) -> "JsonWebhook":
        """Raises SettingError where its address or secret cannot be found or used."""
        url = self.address(around.environ)
        return JsonWebhook(self, url, self._keys(around.environ), around.frame, around.client)

    def _keys(self, environ: Mapping[str, str]) -> tuple[Secret, ...]:
        """The keys to sign with; several (a new and an old one) are separated by white space."""
        if not given(self.secret, self.secret_env, self.secret_file):
            return ()
        found = find_secret(self.secret, self.secret_env, self.secret_file, environ=environ, place=self.place)
        keys = tuple(Secret(text) for text in found.reveal().split())
        if not keys or not all(_usable(key) for key in keys):
            raise options.SettingError(
                f"{self.place}: its secret is no base64 of at least {KEY_BYTES} bytes; "
                "make one with: openssl rand -base64 32"
            )
        return keys


class JsonWebhook:
    pause_seconds = 0.0
    edits = False

    def __init__(
        self,
        config: WebhookChannel,
        url: Secret,
        keys: Iterable[Secret],
        frame: Frame,
        client: httpx.AsyncClient,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.config = config
        self._url = url
        self._keys = tuple(keys)
        self._frame = frame
        self._client = client
        self._clock = clock

    async def send(self, notice: Notice) -> Outcome:
        content = msgspec.json.encode(body(notice, self.config.name, self._frame))
        headers: Mapping[str, str] = {"webhook-id": notice.id}
        if self._keys:
            headers = signature_headers(self._keys, notice.id, self._clock(), content)
        return await http.post(self._client, self._url, content, headers)


def body(notice: Notice, receiver: str, frame: Frame) -> dict[str, object]:
    alerts = [_alert(one, frame) for one in notice.news] or [_channel_alert(notice, frame)]
    grouped = _group_labels(notice)
    return {
        "version": "4",
        "groupKey": "{}:{" + ", ".join(f"{name}={_quoted(value)}" for name, value in grouped.items()) + "}",
        "truncatedAlerts": 0,
        "status": notice.state,
        "receiver": receiver,
        "groupLabels": grouped,
        "commonLabels": _common([one.labels for one in alerts]),
        "commonAnnotations": _common([one.annotations for one in alerts]),
        "externalURL": frame.external_url or "",
        "alerts": alerts,
    }


class _Alert(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    status: str
    labels: dict[str, str]
    annotations: dict[str, str]
    starts_at: str
    ends_at: str
    generator_url: str = msgspec.field(name="generatorURL", default="")
    fingerprint: str


def _alert(transition: wire.Transition, frame: Frame) -> _Alert:
    return _Alert(
        status="resolved" if transition.state == "resolved" else "firing",
        labels=labels(transition),
        annotations=annotations(transition, frame),
        starts_at=rfc3339(transition.started_at),
        ends_at=rfc3339(transition.at) if transition.state == "resolved" else NOT_ENDED,
        generator_url=frame.link(transition.id) or "",
        fingerprint=transition.id,
    )


def _channel_alert(notice: Notice, frame: Frame) -> _Alert:
    """That another channel has failed, or works again, as an alert of its own."""
    said, state = compose(notice, frame), notice.channel
    name = "" if state is None else state.name
    failed_at = None if state is None else state.last_error_at
    return _Alert(
        status=notice.state,
        labels={"alertname": CHANNEL_ALERT, "channel": name, "severity": notice.severity},
        annotations={
            "summary": said.title,
            "description": "\n".join(part for part in (said.summary, said.description) if part),
            "advice": "\n".join(step.what for step in said.advice),
        },
        starts_at=rfc3339(failed_at or notice.made_at),
        ends_at=rfc3339(notice.made_at) if notice.state == "resolved" else NOT_ENDED,
        fingerprint=f"channel-{name}",
    )


def _group_labels(notice: Notice) -> dict[str, str]:
    """By Alertmanager's names."""
    return {"alertname" if name == "alert" else name: value for name, value in notice.labels.items()}


def _common(maps: list[dict[str, str]]) -> dict[str, str]:
    """What all of them say alike."""
    return {name: value for name, value in maps[0].items() if all(one.get(name) == value for one in maps)}


def _quoted(text: str) -> str:
    return msgspec.json.encode(text).decode()


# ---------------------------------------------------------------- Standard Webhooks


def signature_headers(keys: Iterable[Secret], id_: str, now: float, content: bytes) -> Mapping[str, str]:
    """One signature a key, so that receivers go on while a key is changed."""
    stamp = str(int(now))
    signed = b".".join((id_.encode(), stamp.encode(), content))
    signatures = " ".join(f"v1,{_sign(key, signed)}" for key in keys)
    return {"webhook-id": id_, "webhook-timestamp": stamp, "webhook-signature": signatures}


def _sign(key: Secret, content: bytes) -> str:
    return base64.b64encode(hmac.new(_key_bytes(key), content, hashlib.sha256).digest()).decode()


def _key_bytes(key: Secret) -> bytes:
    return base64.b64decode(key.reveal().removeprefix("whsec_"), validate=True)


def _usable(key: Secret) -> bool:
    try:
        return len(_key_bytes(key)) >= KEY_BYTES
    except ValueError:
        return False
