"""A stand-in for what the server does when the page asks it to: it keeps what it was asked, and tells every browser."""

import json
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Protocol

import msgspec
from fastapi import FastAPI, Request, Response

from oomwatch import wire
from oomwatch.core.mute.matcher import labels_of, matches, matches_everything, parse_matcher
from oomwatch.core.mute.stages import Windows
from oomwatch.core.watched import Watched
from oomwatch.ruleedit.rows import rows_of
from oomwatch.rulefile import parse_rules
from oomwatch.web.rows import alert_row
from oomwatch.web.ruledesk import READ_ONLY, RuleFileShown
from oomwatch.web.rulenow import rule_as_of
from oomwatch.web.windowrows import rows_of as windows_of

replace = msgspec.structs.replace
SHIPPED = Path(__file__).resolve().parents[2] / "alerts.yaml"
FIRED_24H = 14


class Play(Protocol):
    """The stage that it acts on."""

    snapshot: wire.Snapshot
    ended: tuple[wire.Alert, ...]  # that the database has and the snapshot has not

    def send(self, *messages: wire.LiveMessage) -> None: ...


class Desk:
    """Alerts, silences and channels that can be acted on. `refuse` makes it say no to what is asked next."""

    def __init__(self, play: Play) -> None:
        self._play = play
        self._refusals: list[tuple[int, str]] = []
        self.asked: list[tuple[str, Any]] = []  # "POST /api/v1/silences" and its body
        self.deliveries: tuple[wire.Delivery, ...] = ()
        self.gone: set[str] = set()  # ids of alerts that fire no more, of which the page does not know yet
        self.windows = Windows()
        self.seen: dict[str, tuple[Watched, ...]] = {}  # what each rule sees now, by its key
        text = SHIPPED.read_text(encoding="utf-8")
        self.rules = parse_rules(text)
        self.rule_file = RuleFileShown(
            path="alerts.yaml", digest="0a1b2c", text=text, secrets=0, editable=False, why_not=READ_ONLY, problem=None
        )

    def refuse(self, status: int, sentence: str) -> None:
        self._refusals.append((status, sentence))

    def install(self, app: FastAPI) -> None:
        app.add_api_route("/api/v1/alerts/{key}", self._story)
        app.add_api_route("/api/v1/alerts/{key}/acknowledge", self._acknowledge, methods=["POST", "DELETE"])
        app.add_api_route("/api/v1/alerts/acknowledge", self._acknowledge_several, methods=["POST"])
        app.add_api_route("/api/v1/alerts/unacknowledge", self._take_back, methods=["POST"])
        app.add_api_route("/api/v1/muting", lambda: _answer(windows_of(self.windows, self._open(), time.time())))
        app.add_api_route("/api/v1/rules/{alert}/now", self._rule_now)
        app.add_api_route("/api/v1/silences/preview", self._preview, methods=["POST"])
        app.add_api_route("/api/v1/silences", self._silence, methods=["POST"])
        app.add_api_route("/api/v1/silences/{key}", self._end_silence, methods=["DELETE"])
        app.add_api_route("/api/v1/rules/all", lambda: _answer(rows_of(self.rules.rules)))
        app.add_api_route("/api/v1/rules/file", lambda: _answer(self.rule_file))
        app.add_api_route("/api/v1/scorecard", self._scorecard)
        app.add_api_route("/api/v1/channels/{name}/retry", self._retry, methods=["POST"])

    async def _heard(self, request: Request) -> tuple[Any, Response | None]:
        """The body, and what is said instead of doing it."""
        raw = await request.body()
        body = json.loads(raw) if raw else None
        self.asked.append((f"{request.method} {request.url.path}", body))
        refusal = self._refusals.pop(0) if self._refusals else None
        return body, None if refusal is None else _answer({"error": refusal[1]}, refusal[0])

    def _scorecard(self) -> Response:
        none = {"happened": 0, "avoided": 0, "false": 1, "open": 0, "failures": 3, "in_time": 2}
        rules = [{"alert": one.alert, "severity": one.severity, **none} for one in self.rules.rules.rules[:6]]
        return _answer({"rules": rules})

    def _story(self, key: str, lang: wire.Language = "en") -> Response:
        found = next((one for one in (*self._play.snapshot.alerts, *self._play.ended) if one.id == key), None)
        if found is None:
            return _answer({"error": f'there is no alert "{key}"'}, 404)
        return _answer({"alert": alert_row(found, lang), "transitions": [], "deliveries": self.deliveries})

    async def _acknowledge(self, request: Request, key: str) -> Response:
        body, no = await self._heard(request)
        if no is not None:
            return no
        word = wire.Acknowledgement(by=body["by"], at=time.time(), note=body.get("note")) if body else None
        alert = next(one for one in self._play.snapshot.alerts if one.id == key)
        self._put([replace(alert, acknowledged=word)])
        return Response(status_code=204)

    async def _acknowledge_several(self, request: Request) -> Response:
        body, no = await self._heard(request)
        if no is not None:
            return no
        word = wire.Acknowledgement(by=body["by"], at=time.time(), note=body.get("note"))
        found = [one for one in self._meant(body) if one.state == "firing"]
        self._put([replace(one, acknowledged=word) for one in found])
        return _answer({"alerts": [one.id for one in found]})

    async def _take_back(self, request: Request) -> Response:
        body, no = await self._heard(request)
        if no is not None:
            return no
        found = [one for one in self._meant(body) if one.acknowledged is not None]
        self._put([replace(one, acknowledged=None) for one in found])
        return _answer({"alerts": [one.id for one in found]})

    def _meant(self, body: dict[str, Any]) -> list[wire.Alert]:
        if "match" in body:
            return self._met_by([parse_matcher(text) for text in body["match"]])
        return [one for one in self._open() if one.id in set(body["ids"]) - self.gone]

    def _open(self) -> list[wire.Alert]:
        return [one for one in self._play.snapshot.alerts if one.state != "resolved"]

    def _rule_now(self, alert: str, severity: wire.Severity) -> Response:
        seen = self.seen.get(f"{alert}/{severity}", ())
        rule = next(one for one in self.rules.rules.rules if one.key == f"{alert}/{severity}")
        return _answer(rule_as_of(rule, seen, time.time(), 8))

    async def _preview(self, request: Request) -> Response:
        body, no = await self._heard(request)
        if no is not None:
            return no
        try:
            matchers = [parse_matcher(text) for text in body["match"]]
        except ValueError as error:
            return _answer({"error": str(error)}, 400)
        found = self._met_by(matchers)
        language = request.query_params.get("lang", "en")
        rows = [{"id": one.id, "severity": one.severity, "summary": one.texts[language].summary} for one in found]
        critical = sum(1 for one in found if one.severity == "critical")
        warnings = [f"critical alerts that fire now: {critical}"] if critical else []
        warnings += ["it leaves nothing out"] if matches_everything(matchers) else []
        last_24h = {"fired": FIRED_24H, "hidden": len(found), "hidden_critical": critical}
        return _answer({"alerts": rows, "last_24h": last_24h, "last_7d": last_24h, "warnings": warnings})

    async def _silence(self, request: Request) -> Response:
        body, no = await self._heard(request)
        if no is not None:
            return no
        at = time.time()
        made = wire.Silence(
            id=f"s-{len(self.asked)}",
            matchers=tuple(parse_matcher(text) for text in body["match"]),
            starts_at=at,
            ends_at=body["ends_at"],
            created_by=body["created_by"],
            created_at=at,
            note=body.get("note"),
        )
        mute = wire.Mute(kind="silence", by=made.id, until=made.ends_at, note=made.note)
        self._put([replace(one, muted=(*one.muted, mute)) for one in self._met_by(made.matchers)])
        self._put_silences((*self._play.snapshot.silences, made))
        return _answer(made, 201)

    async def _end_silence(self, request: Request, key: str) -> Response:
        _, no = await self._heard(request)
        if no is not None:
            return no
        held = [one for one in self._play.snapshot.alerts if any(mute.by == key for mute in one.muted)]
        self._put([replace(one, muted=tuple(mute for mute in one.muted if mute.by != key)) for one in held])
        self._put_silences(tuple(one for one in self._play.snapshot.silences if one.id != key))
        return Response(status_code=204)

    async def _retry(self, request: Request, name: str) -> Response:
        _, no = await self._heard(request)
        if no is not None:
            return no
        channels = tuple(
            replace(one, health="ok", waiting=0) if one.name == name else one for one in self._play.snapshot.channels
        )
        self._play.snapshot = replace(self._play.snapshot, channels=channels)
        self._play.send(wire.ChannelsChanged(channels=channels))
        return Response(status_code=204)

    def _met_by(self, matchers: Iterable[wire.Matcher]) -> list[wire.Alert]:
        wanted = tuple(matchers)
        return [one for one in self._open() if matches(wanted, labels_of(one))]

    def _put(self, changed: Iterable[wire.Alert]) -> None:
        fresh = {one.id: one for one in changed}
        alerts = tuple(fresh.get(one.id, one) for one in self._play.snapshot.alerts)
        self._play.snapshot = replace(self._play.snapshot, alerts=alerts)
        self._play.send(*(wire.AlertChanged(alert=one) for one in fresh.values()))

    def _put_silences(self, silences: tuple[wire.Silence, ...]) -> None:
        self._play.snapshot = replace(self._play.snapshot, silences=silences)
        self._play.send(wire.SilencesChanged(silences=silences))


def _answer(content: object, status: int = 200) -> Response:
    return Response(msgspec.json.encode(content), status, media_type="application/json")
