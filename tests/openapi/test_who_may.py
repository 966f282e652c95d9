"""Every path of the server but those of health is closed to whoever shows nothing that opens it."""

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import httpx
import pytest
import websockets.exceptions
from fastapi import APIRouter, FastAPI
from fastapi.routing import APIRoute
from starlette.routing import BaseRoute, Mount, Route, WebSocketRoute
from tests.openapi.site import bearer, site
from tests.server.running_server import AgentClient, RunningServer

from oomwatch.web.app import create_app
from oomwatch.web.guard import ASKING, OPEN_PATHS

NOBODY: Mapping[str, Mapping[str, str]] = {
    "nobody": {},
    "a wrong token": {"Authorization": "Bearer 0123"},
    "a password": {"Authorization": "Basic bG9vazo="},
    "a wrong cookie": {"Cookie": "oomwatch_token=0123"},
    "an agent": bearer("agent"),
}
PLACE = re.compile(r"\{(\w+)(?::\w+)?\}")  # of a name in a path: {name} or {name:whole}
FOR_OPERATORS = {("GET", "/api/v1/audit")}  # who did what is none of a reader's business


class Door(NamedTuple):
    method: str
    path: str

    @property
    def acts(self) -> bool:
        return self.method != "GET" and self.path not in ASKING


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    with site(tmp_path_factory.mktemp("site")) as running:
        yield running


def _doors(routes: list[BaseRoute]) -> Iterator[Door]:
    """With something that is not there in place of every name."""
    for route in routes:
        if isinstance(route, Mount):
            yield Door("GET", f"{route.path}/index.html")
        elif isinstance(route, (Route, APIRoute)):
            path = PLACE.sub(r"\1", route.path)
            yield from (Door(method, path) for method in sorted(route.methods or ()) if method != "HEAD")
        elif isinstance(router := getattr(route, "original_router", None), APIRouter):  # of newer FastAPI
            yield from _doors(router.routes)
        else:
            assert isinstance(route, WebSocketRoute), f"how is {route} asked?"


def _answers(server: RunningServer, headers: Mapping[str, str]) -> dict[Door, int]:
    """The status at every door."""
    with httpx.Client(base_url=server.url, headers=headers, trust_env=False, timeout=60) as line:
        return {door: line.request(door.method, door.path).status_code for door in _all(server)}


def _all(server: RunningServer) -> list[Door]:
    app: FastAPI = server.call(lambda: create_app(server.parts))
    doors = list(_doors(app.routes))
    assert len(doors) > 50
    return doors


@pytest.mark.parametrize("who", NOBODY)
def test_whoever_shows_nothing_good_is_let_in_nowhere_but_for_health(server: RunningServer, who: str) -> None:
    answers = _answers(server, NOBODY[who])
    assert {door.path for door, status in answers.items() if status != 401} == OPEN_PATHS


def test_a_reader_looks_at_everything_and_acts_nowhere(server: RunningServer) -> None:
    answers = _answers(server, bearer("reader"))
    shut = {door for door, status in answers.items() if status in (401, 403)}
    assert shut == {door for door in answers if door.acts or door in FOR_OPERATORS}


def test_an_operator_is_turned_away_nowhere(server: RunningServer) -> None:
    answers = _answers(server, bearer("operator"))
    assert {door: status for door, status in answers.items() if status in (401, 403) or status >= 500} == {}


@pytest.mark.parametrize("who", NOBODY)
def test_nobody_listens_to_the_page_without_a_token(server: RunningServer, who: str) -> None:
    with pytest.raises(websockets.exceptions.InvalidStatus, match="401"):
        server.websocket("/ws/live", additional_headers=NOBODY[who]).__enter__()


@pytest.mark.parametrize("role", [None, "reader", "operator"])
def test_nobody_speaks_for_a_node_without_an_agents_token(server: RunningServer, role: str | None) -> None:
    with AgentClient(server, additional_headers=bearer(role) if role else {}) as agent:
        assert "token" in agent.hear_refusal().detail


def test_a_readers_token_listens(server: RunningServer) -> None:
    with server.websocket("/ws/live", additional_headers=bearer("reader")) as page:
        assert page.recv(timeout=60)
