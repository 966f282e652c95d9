"""The OpenAPI description is true: what it admits is answered as it says, what it does not is refused, no 5xx comes.

    OOMWATCH_FUZZ=1000 python -m pytest tests/openapi    # so many questions of each kind to each path; or: make fuzz

By default a few questions, the same at every run.
"""

import os
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote

import pytest
import requests
import schemathesis
from fastapi import FastAPI
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from schemathesis import Case, GenerationMode, checks
from schemathesis.core.result import Err, Ok
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    negative_data_rejection,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)
from tests.openapi.site import NODE, ODD, RULE, RUN, TEMPLATE, bearer, site
from tests.server.running_server import RunningServer

from oomwatch.web import api

# Hypothesis seeds the module `random`, and takes what the server's thread draws from it for a strategy's doing.
pytestmark = pytest.mark.filterwarnings("ignore:Do not use the `random` module inside strategies")
CASES = int(os.environ.get("OOMWATCH_FUZZ", "4"))
asking = settings(
    max_examples=CASES,
    derandomize="OOMWATCH_FUZZ" not in os.environ,
    deadline=None,
    database=None,
    suppress_health_check=list(HealthCheck),
)


def _operations() -> list[Any]:
    app = FastAPI()
    api.install(app)
    found = list(schemathesis.openapi.from_dict(app.openapi()).get_all_operations())
    assert not [one for one in found if isinstance(one, Err)]
    return [one.ok() for one in found if isinstance(one, Ok)]


OPERATIONS = _operations()
each_operation = pytest.mark.parametrize("operation", OPERATIONS, ids=[one.label for one in OPERATIONS])
# Names that there are: guessed ones alone would show no more than how "there is no such thing" is said.
KNOWN = {"alert": RULE, "node": NODE, "gpu": "0", "run": RUN, "series": ["gpu_used_bytes"]}
TRUE = [
    checks.not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]
REFUSED_TOO = {409, 412}  # what is as good a refusal, in schemathesis' eyes is none


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    with site(tmp_path_factory.mktemp("site")) as running:
        yield running
        assert running.parts.service.defects.total == 0


@pytest.fixture(scope="module")
def line() -> Iterator[requests.Session]:
    """One connection for all questions."""
    with requests.Session() as session:
        session.trust_env = False
        yield session


@each_operation
def test_whatever_it_admits_is_answered_as_it_says(
    server: RunningServer, line: requests.Session, operation: Any
) -> None:
    names = _known_names(server, operation)

    @asking
    @given(st.one_of(operation.as_strategy(), operation.as_strategy(**names)), st.sampled_from(["operator", "reader"]))
    def ask(case: Case[Any], role: str) -> None:
        answer = case.call(base_url=server.url, session=line, headers=dict(bearer(role)))
        case.validate_response(answer, checks=TRUE)
        assert answer.status_code != 401

    ask()


@each_operation
def test_what_it_does_not_admit_is_refused_with_a_sentence(
    server: RunningServer, line: requests.Session, operation: Any
) -> None:
    if not (operation.body or operation.query or operation.path_parameters or operation.headers):
        return  # there is nothing to be wrong

    @asking
    @given(operation.as_strategy(generation_mode=GenerationMode.NEGATIVE))
    def ask(case: Case[Any]) -> None:
        answer = case.call(base_url=server.url, session=line, headers=dict(bearer("operator")))
        case.validate_response(
            answer, checks=TRUE if answer.status_code in REFUSED_TOO else [*TRUE, negative_data_rejection]
        )
        assert answer.status_code < 400 or "error" in answer.json()

    ask()


def test_a_node_and_a_run_are_found_whatever_they_are_called(server: RunningServer) -> None:
    for path in (f"/api/v1/nodes/{quote(ODD, safe='')}", f"/api/v1/runs/{quote(ODD, safe='')}/steps"):
        answer = server.get(path, headers=bearer("reader"))
        assert answer.status_code == 200, path
        assert answer.json()


def _known_names(server: RunningServer, operation: Any) -> Mapping[str, Any]:
    """Those of the operation's parameters that stand for something in this server."""
    path = {one.name: _named(server, operation.path, one.name) for one in operation.path_parameters}
    query = {one.name: KNOWN[one.name] for one in operation.query if one.name in KNOWN}
    return {name: value for name, value in (("path_parameters", path), ("query", query)) if value}


def _named(server: RunningServer, path: str, parameter: str) -> str:
    if parameter == "alert_id":
        return str(server.get("/api/v1/alerts", headers=bearer("reader")).json()[0]["id"])
    if "/incidents/" in path:
        return str(server.get("/api/v1/incidents", headers=bearer("reader")).json()[0]["id"])
    named = {"/nodes/": NODE, "/runs/": RUN, "/rules/": RULE, "/templates/": TEMPLATE, "/channels/": "ops"}
    return next((name for part, name in named.items() if part in path), "0123")
