"""What a page of another site may try with the browser of somebody who is signed in, each for real."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.access.conftest import PASSWORD, settle
from tests.access.visitor import Visitor
from tests.server.running_server import DEADLINE_SECONDS, RunningServer, serving, settings_in
from websockets.exceptions import ConnectionClosed, InvalidStatus

from oomwatch.web.live import NOT_KNOWN
from oomwatch.web.policy import SECURITY_HEADERS

EVIL = "https://evil.example"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    folder = tmp_path_factory.mktemp("cross-site")
    settle(folder)
    with serving(settings_in(folder)) as running:
        yield running


@pytest.fixture
def lin(visitor: Visitor) -> Visitor:
    """An operator, signed in."""
    visitor.sign_in(name="lin", password=PASSWORD)
    return visitor


@pytest.fixture
def closed(tmp_path: Path) -> Iterator[RunningServer]:
    with serving(settings_in(tmp_path, reader_token="look")) as server:
        yield server


# ---------------------------------------------------------------- acting


@pytest.mark.parametrize("origin", [EVIL, "null", "http://[", "http://127.0.0.1:1"])
def test_a_page_of_another_origin_changes_nothing(lin: Visitor, origin: str) -> None:
    assert lin.act(Origin=origin).status_code == 403


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_nor_does_one_that_hides_its_origin_but_not_that_it_is_another(lin: Visitor, site: str) -> None:
    assert lin.act(**{"Sec-Fetch-Site": site}).status_code == 403
    answer = lin.ask("POST", "/api/v1/silences", {"Sec-Fetch-Site": site}, json={})
    assert answer.status_code == 403


def test_our_own_page_does(lin: Visitor) -> None:
    assert lin.act(**{"Sec-Fetch-Site": "same-origin"}).status_code == 201


def test_a_cookie_without_a_word_of_where_from_changes_nothing(lin: Visitor, server: RunningServer) -> None:
    """Every browser says it; what does not is none, and has no business with a cookie."""
    answer = server.ask("DELETE", "/api/v1/nodes/gpu-07", headers={"Cookie": f"oomwatch_token={lin.cookie}"})
    assert answer.status_code == 403
    assert "Origin" in answer.json()["error"]
    as_a_program = {"Authorization": f"Bearer {lin.cookie}"}
    assert server.ask("DELETE", "/api/v1/nodes/gpu-07", headers=as_a_program).status_code == 404


# ---------------------------------------------------------------- looking


def test_a_page_of_another_site_is_told_nothing_and_a_link_leads_here(lin: Visitor) -> None:
    asked = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Dest": "image"}
    assert lin.get("/api/v1/state", **asked).status_code == 403
    led = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
    assert lin.get("/", **led).status_code == 200


@pytest.mark.parametrize(
    "headers",
    [{"Origin": EVIL}, {"Origin": "null"}, {"Sec-Fetch-Site": "cross-site"}],
    ids=["another origin", "no origin", "another site"],
)
def test_a_page_of_another_site_opens_no_websocket(
    server: RunningServer, lin: Visitor, headers: dict[str, str]
) -> None:
    with (
        pytest.raises(InvalidStatus) as refused,
        server.websocket("/ws/live", additional_headers={"Cookie": f"oomwatch_token={lin.cookie}", **headers}),
    ):
        pytest.fail("it was let in")
    assert refused.value.response.status_code == 403


def test_our_own_page_opens_one(server: RunningServer, lin: Visitor) -> None:
    headers = {"Cookie": f"oomwatch_token={lin.cookie}", "Origin": server.url, "Sec-Fetch-Site": "same-origin"}
    with server.websocket("/ws/live", additional_headers=headers) as page:
        assert page.recv(timeout=DEADLINE_SECONDS)


def test_no_page_is_taken_for_an_agent(server: RunningServer) -> None:
    for headers in ({"Origin": server.url}, {"Sec-Fetch-Site": "same-origin"}):
        with (
            pytest.raises(InvalidStatus) as refused,
            server.websocket("/ws/agent", additional_headers=headers),
        ):
            pytest.fail("a page was taken for an agent")
        assert refused.value.response.status_code == 403


def test_our_own_page_is_told_by_a_code_that_nobody_knows_it_and_a_program_by_a_status(server: RunningServer) -> None:
    with server.websocket("/ws/live", additional_headers={"Origin": server.url}) as page:
        with pytest.raises(ConnectionClosed) as over:
            page.recv(timeout=DEADLINE_SECONDS)
        assert over.value.rcvd is not None
        assert over.value.rcvd.code == NOT_KNOWN
    with pytest.raises(InvalidStatus) as refused, server.websocket("/ws/live"):
        pytest.fail("a stranger was let in")
    assert refused.value.response.status_code == 401


# ---------------------------------------------------------------- signing in for somebody


def test_a_form_that_is_not_of_this_browser_signs_nobody_in(server: RunningServer) -> None:
    """Else a page could sign its visitors in by a name of its owner's, who then sees what they do."""
    attacker, victim = Visitor(server), Visitor(server)
    fields = {"name": "lin", "password": PASSWORD, "form": attacker.form()}
    for form in (fields, {**fields, "form": ""}, {"name": "lin", "password": PASSWORD}):
        answer = victim.post("/sign-in", form)
        assert answer.status_code == 403
        assert "no longer good" in answer.text
    victim.form()
    assert victim.post("/sign-in", fields).status_code == 403


def test_a_page_of_another_site_can_sign_nobody_in_or_out(lin: Visitor) -> None:
    form = lin.form()
    fields = {"name": "ada", "password": PASSWORD, "form": form}
    assert lin.post("/sign-in", fields, Origin=EVIL).status_code == 403
    assert lin.post("/sign-in", fields, **{"Sec-Fetch-Site": "cross-site"}).status_code == 403
    assert lin.post("/sign-out", Origin=EVIL).status_code == 403
    assert lin.get("/api/v1/me").json()["name"] == "lin"


def test_a_link_of_another_site_signs_nobody_in_and_says_what_to_do(closed: RunningServer) -> None:
    visitor = Visitor(closed)
    led = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Accept": "text/html"}
    answer = visitor.get("/?token=look", **led)
    assert answer.status_code == 401
    assert "copy the address into the address bar" in answer.text
    assert "oomwatch_token" not in answer.headers["set-cookie"]
    typed = {"Sec-Fetch-Site": "none", "Sec-Fetch-Mode": "navigate", "Accept": "text/html"}
    assert visitor.get("/?token=look", **typed).status_code == 303


# ---------------------------------------------------------------- headers


@pytest.mark.parametrize("path", ["/", "/sign-in", "/api/v1/state", "/healthz", "/nowhere", "/static/style.css"])
def test_every_answer_has_the_headers_that_keep_a_page_safe(lin: Visitor, path: str) -> None:
    headers = lin.get(path).headers
    assert set(SECURITY_HEADERS) <= {name.title().replace("Csp", "CSP") for name in headers}
    assert headers["cross-origin-resource-policy"] == headers["cross-origin-opener-policy"] == "same-origin"
    assert "camera=()" in headers["permissions-policy"]
    assert "frame-ancestors 'none'" in headers["content-security-policy"]
    assert "'unsafe-eval'" not in headers["content-security-policy"]
    assert "strict-transport-security" not in headers


@pytest.mark.parametrize(
    ("host", "is_said"), [("gpus.example", True), ("gpus.example:443", True), ("gpus.example:8642", False)]
)
def test_https_for_ever_is_said_where_the_hosts_own_port_is_ours(tmp_path: Path, host: str, is_said: bool) -> None:
    """Of a host with other programs on other ports, these would be out of reach."""
    with serving(settings_in(tmp_path, external_url=f"https://{host}")) as server:
        headers = server.get("/healthz", headers={"Host": host}).headers
        assert ("strict-transport-security" in headers) is is_said
