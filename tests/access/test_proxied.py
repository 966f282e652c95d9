"""People whom a proxy has signed in: its header counts from its addresses, and from nowhere else."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.access.visitor import Visitor
from tests.server.running_server import DEADLINE_SECONDS, RunningServer, serving, settings_in

from oomwatch.access.proxied import ProxyHeader, networks_of
from oomwatch.access.roles import role_map
from oomwatch.options import SettingError
from oomwatch.settings import Settings, check, signing_proxies

LIN = {"X-Remote-User": "lin", "X-Forwarded-Groups": "staff, gpu-ops"}


def _settings(folder: Path, trusted: str, **changes: object) -> Settings:
    return settings_in(
        folder,
        auth_header="X-Remote-User",
        auth_header_from=(trusted,),
        auth_role_header="X-Forwarded-Groups",
        operators=("gpu-ops",),
        readers=("staff",),
        **changes,
    )


@pytest.fixture
def proxied(tmp_path: Path) -> Iterator[RunningServer]:
    """The tests' own address is the proxy's."""
    with serving(_settings(tmp_path, "127.0.0.1")) as server:
        yield server


def test_whom_the_proxy_names_looks_and_acts_by_their_groups_and_is_noted(proxied: RunningServer) -> None:
    lin = Visitor(proxied, LIN)
    assert lin.looks()
    assert lin.act().status_code == 201
    assert lin.get("/api/v1/me").json() == {"name": "lin", "may_act": True, "can_leave": False, "ends_at": None}
    (deed,) = lin.get("/api/v1/audit").json()
    assert (deed["who"], deed["role"]) == ("lin", "operator")
    ada = Visitor(proxied, {"X-Remote-User": "ada", "X-Forwarded-Groups": "staff"})
    assert ada.looks()
    assert ada.act().status_code == 403


def test_the_page_of_whom_the_proxy_names_stays_connected(proxied: RunningServer) -> None:
    with proxied.websocket("/ws/live", additional_headers={**LIN, "Origin": proxied.url}) as page:
        page.recv(timeout=DEADLINE_SECONDS)
        proxied.call(lambda: proxied.parts.keyring.replace([]))  # as every two seconds
        for _ in range(2):
            page.recv(timeout=DEADLINE_SECONDS)


def test_who_is_in_no_group_is_told_so(proxied: RunningServer) -> None:
    answer = Visitor(proxied, {"X-Remote-User": "eve", "X-Forwarded-Groups": "visitors"}).get("/api/v1/state")
    assert answer.status_code == 403
    assert "eve is signed in, but in no group that may look" in answer.json()["error"]


def test_without_the_header_nobody_looks(proxied: RunningServer) -> None:
    assert Visitor(proxied).get("/api/v1/state").status_code == 401


def test_the_header_of_anybody_else_counts_for_nothing(tmp_path: Path) -> None:
    with serving(_settings(tmp_path, "10.9.8.0/24")) as server:
        assert Visitor(server, LIN).get("/api/v1/state").status_code == 401
        # The address that a proxy tells of is the browser's; it makes nobody a proxy.
        disguised = {**LIN, "X-Forwarded-For": "10.9.8.7"}
        assert Visitor(server, disguised).get("/api/v1/state").status_code == 401


def test_without_the_setting_the_header_means_nothing(tmp_path: Path) -> None:
    with serving(settings_in(tmp_path, reader_token="look")) as server:
        assert Visitor(server, LIN).get("/api/v1/state").status_code == 401


def test_a_browsers_own_header_beside_the_proxys_is_refused(proxied: RunningServer) -> None:
    lines = [("X-Remote-User", "lin"), ("X-Remote-User", "ada"), ("X-Forwarded-Groups", "gpu-ops")]
    answer = proxied.get("/api/v1/state", headers=lines)
    assert answer.status_code == 403
    assert "it must replace what a browser sent" in answer.json()["error"]


def test_a_page_of_another_site_acts_for_nobody_behind_the_proxy(proxied: RunningServer) -> None:
    assert Visitor(proxied, LIN).act(Origin="https://evil.example").status_code == 403


def test_what_does_not_say_where_it_comes_from_acts_for_nobody_whom_the_proxy_vouches_for(
    proxied: RunningServer,
) -> None:
    body = {"match": ['node="gpu-07"'], "duration": "1h", "created_by": "lin"}
    answer = proxied.ask("POST", "/api/v1/silences", json=body, headers=LIN)
    assert answer.status_code == 403
    assert "a browser says where a request comes from" in answer.json()["error"]


def test_scripts_and_probes_come_as_before(tmp_path: Path) -> None:
    with serving(_settings(tmp_path, "127.0.0.1", reader_token="look")) as server:
        assert server.get("/healthz").status_code == 200
        assert server.get("/metrics", headers={"Authorization": "Bearer look"}).status_code == 200
        nobody = {"X-Remote-User": "eve", "Authorization": "Bearer look"}
        assert server.get("/metrics", headers=nobody).status_code == 200


def test_without_a_header_of_groups_the_names_themselves_are_meant(tmp_path: Path) -> None:
    settings = settings_in(
        tmp_path, auth_header="X-Remote-User", auth_header_from=("127.0.0.1",), operators=("lin",), readers=("*",)
    )
    with serving(settings) as server:
        assert Visitor(server, {"X-Remote-User": "lin"}).act().status_code == 201
        ada = Visitor(server, {"X-Remote-User": "ada"})
        assert ada.looks()
        assert ada.act().status_code == 403


def test_a_proxy_that_is_believed_says_who_asked_it_and_how(proxied: RunningServer) -> None:
    told = {**LIN, "X-Forwarded-For": "203.0.113.9", "X-Forwarded-Proto": "https"}
    lin = Visitor(proxied, told)
    assert lin.act().status_code == 201
    (deed,) = lin.get("/api/v1/audit").json()
    assert deed["address"] == "203.0.113.9"
    assert lin.get("/sign-in").headers["set-cookie"].startswith("__Host-oomwatch_form=")


def test_a_load_balancer_that_is_trusted_says_who_asked_it_and_how_and_signs_nobody_in(tmp_path: Path) -> None:
    with serving(settings_in(tmp_path, trusted_proxies=("127.0.0.0/30",), operator_token="act")) as server:
        told = {"X-Forwarded-For": "203.0.113.9", "X-Forwarded-Proto": "https", "Authorization": "Bearer act"}
        visitor = Visitor(server, told)
        assert visitor.act().status_code == 201
        (deed,) = visitor.get("/api/v1/audit").json()
        assert deed["address"] == "203.0.113.9"
        assert visitor.get("/sign-in").headers["set-cookie"].startswith("__Host-oomwatch_form=")
        assert Visitor(server, LIN).act().status_code == 403


def test_who_is_no_trusted_proxy_speaks_for_nobody_and_the_log_says_so_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with serving(settings_in(tmp_path, trusted_proxies=("10.9.8.7",), operator_token="act")) as server:
        visitor = Visitor(server, {"X-Forwarded-For": "203.0.113.9", "Authorization": "Bearer act"})
        assert visitor.act().status_code == 201
        (deed,) = visitor.get("/api/v1/audit").json()
        assert deed["address"] == "127.0.0.1"
    (said,) = [record.getMessage() for record in caplog.records if "X-Forwarded-For" in record.getMessage()]
    assert said.endswith("if it is your proxy or load balancer: --trusted-proxies 127.0.0.1")


def test_those_who_sign_people_in_are_the_trusted_proxies_where_nobody_else_is_named() -> None:
    named = Settings(auth_header="X-User", trusted_proxies=("10.0.0.1",), readers=("*",))
    check(named)
    assert signing_proxies(named) == networks_of(["10.0.0.1"], "trusted_proxies")
    check(Settings(auth_header="X-User", trusted_proxies=("10.0.0.1",), auth_header_from=("10.0.0.2",), readers=("*",)))


@pytest.mark.parametrize(
    ("peer", "believed"),
    [
        ("10.0.0.7", True),
        ("10.0.1.7", False),
        ("::ffff:10.0.0.7", True),
        ("fd00::1", True),
        ("fd01::1", False),
        ("", False),
        ("testclient", False),
    ],
)
def test_an_address_is_a_proxys_or_it_is_not(peer: str, *, believed: bool) -> None:
    header = ProxyHeader("X", "X", networks_of(["10.0.0.0/24", "fd00::/64"], "auth_header_from"), role_map([], ["*"]))
    assert header.believes(peer) is believed


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"auth_header": "X-Remote-User"}, "the header of whom is believed"),
        ({"auth_header_from": ("10.0.0.1",)}, "is of no use without auth_header"),
        ({"auth_header": "X-Remote-User", "auth_header_from": ("10.0.0.1",)}, "nobody could look"),
        ({"auth_header": "Cookie", "auth_header_from": ("10.0.0.1",)}, "no header that names a person"),
        ({"auth_header": "X: y", "auth_header_from": ("10.0.0.1",)}, "no header that names a person"),
        ({"auth_header": "X-User", "auth_header_from": ("0.0.0.0/0",)}, "is everybody"),
        ({"auth_header": "X-User", "auth_header_from": ("10.0.0.1/8",)}, "has host bits set"),
        ({"auth_header": "X-User", "auth_header_from": ("proxy.example",)}, "no address and no network"),
        ({"trusted_proxies": ("proxy.example",)}, 'trusted_proxies: "proxy.example" is no address and no network'),
        ({"trusted_proxies": ("::/0",)}, 'trusted_proxies: "::/0" is everybody'),
    ],
)
def test_settings_that_would_believe_the_wrong_ones_are_refused(changes: dict[str, object], why: str) -> None:
    with pytest.raises(SettingError, match=why):
        check(Settings(**changes))  # type: ignore[arg-type]
