"""Somebody at a browser, as far as the server can tell: keeps cookies, sends the form's own fields, says its origin."""

import re
from http.cookiejar import CookieJar
from typing import Any

import httpx
from tests.server.running_server import DEADLINE_SECONDS, RunningServer


class Visitor:
    """`headers` are sent with every request, as a proxy would add them."""

    def __init__(self, server: RunningServer, headers: dict[str, str] | None = None) -> None:
        self.url = server.url
        self.cookies = CookieJar()
        self._headers = headers or {}

    def ask(self, method: str, path: str, headers: dict[str, str], **options: Any) -> httpx.Response:
        return httpx.request(
            method, self.url + path, headers={**self._headers, **headers}, cookies=self.cookies,
            timeout=DEADLINE_SECONDS, trust_env=False, **options,
        )  # fmt: skip

    def get(self, path: str, **headers: str) -> httpx.Response:
        return self.ask("GET", path, headers)

    def post(self, path: str, data: dict[str, str] | None = None, **headers: str) -> httpx.Response:
        return self.ask("POST", path, {"Origin": self.url, **headers}, data=data)

    def act(self, **headers: str) -> httpx.Response:
        """Something that changes things."""
        body = {"match": ['node="gpu-07"'], "duration": "1h", "created_by": "lin"}
        return self.ask("POST", "/api/v1/silences", {"Origin": self.url, **headers}, json=body)

    def sign_in(self, **fields: str) -> httpx.Response:
        """Fill in the form and send it."""
        return self.post("/sign-in", {**fields, "form": self.form()})

    def form(self) -> str:
        """What the form bears that a page of elsewhere cannot know."""
        found = re.search(r'name="form" value="([^"]+)"', self.get("/sign-in").text)
        assert found is not None
        return found[1]

    @property
    def cookie(self) -> str:
        """The text of the token's or session's cookie, under either name."""
        return self.cookie_of("oomwatch_token")

    def cookie_of(self, name: str) -> str:
        (value,) = [one.value for one in self.cookies if one.name.endswith(name)]
        return str(value)

    def looks(self) -> bool:
        """Whether it is shown how things stand."""
        return self.get("/api/v1/state").status_code == 200
