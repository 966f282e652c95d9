"""Alertmanager, as Prometheus speaks to it: POST /api/v2/alerts, again each minute for as long as an alert fires."""

import base64
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import httpx
import msgspec

from oomwatch import options
from oomwatch.catalogue import say
from oomwatch.notify import http
from oomwatch.notify.amalert import Posted, annotations, as_told, labels, rfc3339
from oomwatch.notify.channel import FedSection, Item, Surroundings, given
from oomwatch.notify.outcome import Outcome
from oomwatch.notify.secret import Secret, find_secret
from oomwatch.notify.words import Frame

PATH = "/api/v2/alerts"


class AlertmanagerChannel(FedSection, frozen=True, kw_only=True, tag="alertmanager"):
    """One Alertmanager, or all of a cluster: addresses separated by white space. Each is told everything.

    `watchdog`: whether an alert named Watchdog always fires there while we are well.
    """

    username: str | None = None
    password: Secret | None = None
    password_env: str | None = None
    password_file: str | None = None
    token: Secret | None = None
    token_env: str | None = None
    token_file: str | None = None
    watchdog: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        passwords = given(self.password, self.password_env, self.password_file)
        tokens = given(self.token, self.token_env, self.token_file)
        if max(passwords, tokens) > 1:
            raise ValueError("give a password or a token by one of itself, ..._env (a variable) and ..._file")
        if (self.username is None) != (passwords == 0):
            raise ValueError("username and password belong together")
        if passwords and tokens:
            raise ValueError("give username and password, or a token, and not both")

    def open(self, around: Surroundings) -> "Alertmanager":
        """Raises SettingError where an address or a secret cannot be found or used."""
        found = find_secret(self.url, self.url_env, self.url_file, environ=around.environ, place=self.place)
        addresses = [Secret(text) for text in found.reveal().split()]
        for address in addresses:
            http.check_url(address, self.place)
        login = self._login(around.environ)
        return Alertmanager(self, [_with_path(one) for one in addresses], login, around.frame, around.client)

    def _login(self, environ: Mapping[str, str]) -> "Login":
        """Who we say we are."""
        if given(self.token, self.token_env, self.token_file):
            token = find_secret(self.token, self.token_env, self.token_file, environ=environ, place=self.place)
            if not token.reveal().isascii() or not token.reveal().isprintable():
                raise options.SettingError(f"{self.place}: its token has characters that no token has")
            return Login({"Authorization": f"Bearer {token.reveal()}"}, (token,))
        if self.username is None:
            return Login()
        password = find_secret(self.password, self.password_env, self.password_file, environ=environ, place=self.place)
        pair = base64.b64encode(f"{self.username}:{password.reveal()}".encode()).decode()
        return Login({"Authorization": f"Basic {pair}"}, (password, Secret(pair)))


class Login(NamedTuple):
    """The headers of each request, and what in them nobody is to see should a receiver echo it."""

    headers: Mapping[str, str] = {}
    secrets: tuple[Secret, ...] = ()

    def __repr__(self) -> str:
        return "Login(secret)"


class Alertmanager:
    def __init__(
        self,
        config: AlertmanagerChannel,
        addresses: Sequence[Secret],
        login: Login,
        frame: Frame,
        client: httpx.AsyncClient,
    ) -> None:
        self.config = config
        self.addresses = tuple(addresses)
        self.has_watchdog = config.watchdog
        self._login = login
        self._frame = frame
        self._client = client

    async def post(self, address: Secret, items: Sequence[Item], now: float) -> Outcome:
        content = msgspec.json.encode([posted(item, now, self._frame) for item in items])
        return await http.post(self._client, address, content, self._login.headers, hide=self._login.secrets)


def posted(item: Item, now: float, frame: Frame) -> Posted:
    """One alert of the body. What is simulated says so in its labels too, so that it can be routed apart."""
    if item.alert is None:
        return Posted(
            labels={"alertname": "Watchdog", "severity": "none"},
            annotations={
                "summary": say("notify.watchdog", frame.language),
                "description": say("notify.watchdog_why", frame.language),
            },
            starts_at=rfc3339(now),
            ends_at=rfc3339(item.ends_at),
            generator_url=frame.external_url or "",
        )
    told = as_told(item.alert)
    demo = {"simulated": "true"} if told.simulated else {}
    return Posted(
        labels={**labels(told), **demo},
        annotations=dict(_filled(annotations(told, frame))),
        starts_at=rfc3339(told.started_at),
        ends_at=rfc3339(item.ends_at),
        generator_url=frame.link(told.id) or "",
    )


def _filled(values: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Alertmanager's names for annotations are those of labels, and what is empty says nothing."""
    for name, value in values.items():
        if value and name.isascii() and name.isidentifier():
            yield name, value


def _with_path(address: Secret) -> Secret:
    """Where alerts are posted, of an address as it stands in Prometheus' configuration."""
    text = address.reveal().rstrip("/")
    return Secret(text if text.endswith(PATH) else text + PATH)
