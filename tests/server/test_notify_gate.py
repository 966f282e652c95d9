"""Which addresses our requests may reach: a name that leads into a private network is refused unless that is meant."""

import asyncio
import ipaddress
import socket
import threading
from pathlib import Path

import httpx
import pytest
from tests.server.receiver import Receiver, receiving

from oomwatch.notify import http
from oomwatch.notify.gate import Address, AddressRefusedError, is_public, proxy_for, public_of
from oomwatch.notify.outcome import Delivered, Failed, Outcome, TryAgain
from oomwatch.notify.secret import Secret


class Names:
    """A resolver that knows one name, and counts how often it was asked."""

    def __init__(self, *addresses: str) -> None:
        self._addresses = addresses
        self.asked: list[str] = []

    async def __call__(self, host: str, port: int) -> list[Address]:
        self.asked.append(f"{host}:{port}")
        if host != "hooks.example":
            raise OSError("unknown name")
        return [ipaddress.ip_address(address) for address in self._addresses]


def send(url: str, names: Names, *, allowed: bool = False) -> Outcome:
    async def go() -> Outcome:
        async with http.Client(names) as client:
            client.allow_private_addresses(allowed)
            return await http.post(client, Secret(url), b"{}", {})

    return asyncio.run(go())


def port_of(receiver: Receiver) -> int:
    port = httpx.URL(receiver.url).port
    assert port is not None
    return port


def test_a_name_that_leads_into_a_private_network_is_refused_with_the_line_to_add() -> None:
    names = Names("127.0.0.1")
    with receiving() as receiver:
        outcome = send(f"http://hooks.example:{port_of(receiver)}/secret", names)
        assert receiver.received == []
    assert isinstance(outcome, Failed)
    assert "private address (127.0.0.1)" in outcome.reason
    assert outcome.reason.endswith("add this line to the notify section of alerts.yaml: allow_private_addresses: true")
    assert "secret" not in outcome.reason


def test_with_that_line_it_is_reached_by_its_name() -> None:
    names = Names("127.0.0.1")
    with receiving() as receiver:
        assert send(f"http://hooks.example:{port_of(receiver)}/", names, allowed=True) == Delivered()
        assert receiver.received[0].headers["host"] == f"hooks.example:{port_of(receiver)}"


def test_a_name_is_resolved_once_and_what_was_judged_is_what_is_connected_to() -> None:
    names = Names("127.0.0.1")
    with receiving() as receiver:
        send(f"http://hooks.example:{port_of(receiver)}/", names, allowed=True)
        assert names.asked == [f"hooks.example:{port_of(receiver)}"]


def test_an_address_that_does_not_answer_is_passed_over_for_the_next() -> None:
    names = Names("127.0.0.2", "127.0.0.1")  # the receiver listens on the second alone
    with receiving() as receiver:
        assert send(f"http://hooks.example:{port_of(receiver)}/", names, allowed=True) == Delivered()


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_what_is_written_in_the_clear_is_meant(host: str) -> None:
    with receiving() as receiver:
        url = f"http://{host}:{port_of(receiver)}/"

        async def go() -> Outcome:
            async with http.client() as client:
                return await http.post(client, Secret(url), b"{}", {})

        assert asyncio.run(go()) == Delivered()


@pytest.mark.parametrize("host", ["169.254.169.254", "[fe80::1]", "0.0.0.0", "224.0.0.1", "[::ffff:169.254.169.254]"])
def test_addresses_of_the_link_are_refused_even_in_the_clear(host: str) -> None:
    outcome = send(f"http://{host}/latest/meta-data", Names())
    assert isinstance(outcome, Failed)
    assert "is no address of a receiver" in outcome.reason


def test_a_name_that_cannot_be_resolved_is_tried_again() -> None:
    outcome = send("http://elsewhere.example/", Names())
    assert outcome == TryAgain(
        "cannot reach http://elsewhere.example: its name cannot be resolved; is it right, and does the name service "
        "know it?"
    )


@pytest.mark.parametrize("proxy", [None, "http://127.0.0.1:1"])
def test_where_no_certificates_can_be_loaded_the_file_and_the_remedy_are_named(
    proxy: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = tmp_path / "authorities.pem"
    broken.write_text("none")
    monkeypatch.setenv("SSL_CERT_FILE", str(broken))
    if proxy is not None:
        monkeypatch.setenv("HTTPS_PROXY", proxy)
    outcome = send("https://hooks.example/", Names("93.184.215.14"))
    assert isinstance(outcome, TryAgain)
    assert f"cannot be loaded from {broken}, which SSL_CERT_FILE names: there is no certificate in it" in outcome.reason
    assert outcome.reason.endswith("name a PEM file with them, or unset it")


def test_a_proxy_that_cannot_be_used_is_named_by_its_variable_and_not_by_its_password(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("http_proxy", raising=False)
    monkeypatch.setenv("no_proxy", "proxy")  # stands before it, and in it
    monkeypatch.setenv("http_proxy", "gopher://user:password@proxy:70")
    outcome = send("http://hooks.example/", Names("93.184.215.14"))
    assert isinstance(outcome, TryAgain)
    assert "the proxy that http_proxy names cannot be used; it is an address such as http://" in outcome.reason
    assert "password" not in outcome.reason


@pytest.mark.parametrize(
    ("address", "public"),
    [
        ("93.184.215.14", True),
        ("2606:2800:21f:cb07:6820:80da:af6b:8b2c", True),
        ("127.0.0.1", False),
        ("10.1.2.3", False),
        ("172.16.0.1", False),
        ("192.168.1.1", False),
        ("100.64.0.1", False),
        ("169.254.169.254", False),
        ("0.0.0.0", False),
        ("224.0.0.1", False),
        ("::1", False),
        ("fd00::1", False),
        ("fe80::1", False),
        ("ff0e::1", False),
        ("::ffff:127.0.0.1", False),
        ("64:ff9b::7f00:1", False),
        ("2002:7f00:1::", False),
    ],
)
def test_only_addresses_of_the_internet_are_public(address: str, public: bool) -> None:
    assert is_public(ipaddress.ip_address(address)) is public


def test_of_a_name_with_both_kinds_the_public_ones_are_used() -> None:
    both = [ipaddress.ip_address(one) for one in ("10.0.0.1", "93.184.215.14")]
    assert public_of(both) == both[1:]
    with pytest.raises(AddressRefusedError):
        public_of(both[:1])


def test_tls_asks_for_the_name_and_not_for_the_number() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        hello: list[bytes] = []

        def take() -> None:
            with server.accept()[0] as connection:
                hello.append(connection.recv(4096))

        listener = threading.Thread(target=take)
        listener.start()
        outcome = send(f"https://hooks.example:{server.getsockname()[1]}/", Names("127.0.0.1"), allowed=True)
        listener.join()
    assert b"hooks.example" in hello[0]
    assert isinstance(outcome, TryAgain)


@pytest.fixture
def proxied(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "all_proxy", "HTTP_PROXY", "ALL_PROXY", "https_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy.example:3128")
    monkeypatch.setenv("NO_PROXY", "internal.example")


@pytest.mark.usefixtures("proxied")
@pytest.mark.parametrize(
    ("url", "proxy"),
    [
        ("https://hooks.slack.com/services/x", "http://proxy.example:3128"),
        ("http://hooks.slack.com/services/x", None),
        ("https://am.internal.example/", None),
        ("https://localhost/", None),
        ("https://127.0.0.1:9093/", None),
        ("https://[::1]:9093/", None),
    ],
)
def test_the_environments_proxy_is_used_but_never_for_this_machine(url: str, proxy: str | None) -> None:
    assert proxy_for(httpx.URL(url)) == proxy


def test_through_a_proxy_names_are_for_the_proxy_to_resolve(monkeypatch: pytest.MonkeyPatch) -> None:
    names = Names()
    with receiving() as proxy:
        monkeypatch.setenv("http_proxy", proxy.url)
        monkeypatch.delenv("no_proxy", raising=False)
        monkeypatch.delenv("NO_PROXY", raising=False)
        assert send("http://hooks.example/x", names) == Delivered()
        assert proxy.received[0].path == "http://hooks.example/x"
    assert names.asked == []


def test_a_proxy_that_cannot_be_used_is_an_outcome_that_does_not_show_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "gopher://me:canary@proxy.example")
    monkeypatch.delenv("no_proxy", raising=False)
    outcome = send("http://hooks.example/x", Names())
    assert isinstance(outcome, TryAgain)
    assert "canary" not in outcome.reason
