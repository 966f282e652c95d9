"""Sign-in by OpenID Connect, against a provider on loopback that signs for real and may be made to lie."""

import asyncio
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest
from joserfc import jwt
from joserfc.jwk import OctKey, RSAKey
from tests.access.provider import CLIENT_ID, CLIENT_SECRET, Claims, FakeProvider, unsigned
from tests.access.visitor import Visitor
from tests.server.running_server import DEADLINE_SECONDS, RunningServer, serving, settings_in

from oomwatch.access.attempts import BY_ADDRESS
from oomwatch.notify import http
from oomwatch.notify.gate import Address
from oomwatch.notify.secret import Secret
from oomwatch.oidc.discovery import discovery_of
from oomwatch.oidc.errors import OidcError
from oomwatch.oidc.person import Person, person_of
from oomwatch.oidc.provider import FAILED_SECONDS, KEPT_SECONDS, KEYS_AGAIN_SECONDS, Provider, Registration
from oomwatch.oidc.trip import SECONDS_MAX, Trip, read, written
from oomwatch.options import SettingError
from oomwatch.settings import Settings, check
from oomwatch.web.entrance import PERMIT, provider_of

NOW = 1_700_000_000.0
TRIP = Trip("state", "nonce", "a-verifier-of-some-length-that-nobody-guesses", int(NOW))
BACK = "https://gpus.example/sign-in/back"


class Clock:
    now = NOW

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def idp(clock: Clock) -> Iterator[FakeProvider]:
    provider = FakeProvider(clock)
    yield provider
    provider.stop()


def _registration(idp: FakeProvider) -> Registration:
    secret = Secret(idp.secret) if idp.secret is not None else None
    return Registration(idp.issuer, CLIENT_ID, secret, ("openid",), "preferred_username", ("groups",))


def _met(idp: FakeProvider, clock: Clock, trip: Trip = TRIP, times: int = 1) -> list[Person]:
    """Who comes back from the provider."""

    async def meet() -> list[Person]:
        async with http.client() as client:
            provider = Provider(_registration(idp), client, clock)
            return [await _one(provider) for _ in range(times)]

    async def _one(provider: Provider) -> Person:
        address = await provider.way_there(trip, BACK)
        query = {name: values[0] for name, values in parse_qs(urlsplit(address).query).items()}
        back = idp.authorize(query)
        return await provider.person(parse_qs(urlsplit(back).query)["code"][0], trip, BACK)

    return asyncio.run(meet())


# ---------------------------------------------------------------- what a token must be


def test_a_person_is_who_a_good_token_says(idp: FakeProvider, clock: Clock) -> None:
    assert _met(idp, clock) == [Person("lin", ("gpu-ops",))]


def _with(**changes: object) -> Callable[[Claims], Claims]:
    return lambda claims: {name: value for name, value in {**claims, **changes}.items() if value is not None}


@pytest.mark.parametrize(
    ("spoil", "why"),
    [
        (_with(nonce="of another sign-in"), "not for this sign-in"),
        (_with(nonce=None), "not for this sign-in"),
        (_with(aud="another program"), "not for this sign-in"),
        (_with(aud=["another program"]), "not for this sign-in"),
        (_with(aud=[CLIENT_ID, "another program"]), "another program"),
        (_with(aud=[CLIENT_ID, "other"], azp="other"), "another program"),
        (_with(aud=None), "not for this sign-in"),
        (_with(iss="https://elsewhere.example"), "not for this sign-in"),
        (_with(iss=None), "not for this sign-in"),
        (_with(exp=int(NOW) - 61), "has expired"),
        (_with(exp=None), "not for this sign-in"),
        (_with(exp="tomorrow"), "not for this sign-in"),
        (_with(iat=int(NOW) + 3600), "not for this sign-in"),
        (_with(nbf=int(NOW) + 3600), "not for this sign-in"),
        (_with(sub=None), "not for this sign-in"),
    ],
)
def test_a_token_that_is_not_for_us_now_lets_nobody_in(
    idp: FakeProvider, clock: Clock, spoil: Callable[[Claims], Claims], why: str
) -> None:
    idp.spoil = spoil
    with pytest.raises(OidcError, match=why):
        _met(idp, clock)


def test_clocks_may_be_a_little_apart(idp: FakeProvider, clock: Clock) -> None:
    idp.spoil = _with(exp=int(NOW) - 30, iat=int(NOW) + 30)
    assert [person.name for person in _met(idp, clock)] == ["lin"]


def _by_our_own_secret(_: FakeProvider) -> Callable[[Claims], str]:
    return lambda claims: jwt.encode({"alg": "HS256"}, claims, OctKey.import_key(CLIENT_SECRET))


def _by_the_public_key_as_a_secret(idp: FakeProvider) -> Callable[[Claims], str]:
    public = idp.key.as_dict(private=False)
    return lambda claims: jwt.encode(
        {"alg": "HS256", "kid": idp.key.kid}, claims, OctKey.import_key(str(public["n"]), {"kid": str(public["kid"])})
    )


def _by_somebody_elses_key(idp: FakeProvider) -> Callable[[Claims], str]:
    key = RSAKey.generate_key(2048, {"kid": str(idp.key.kid)})
    return lambda claims: jwt.encode({"alg": "RS256", "kid": key.kid}, claims, key)


def _by_a_key_of_no_name(_: FakeProvider) -> Callable[[Claims], str]:
    key = RSAKey.generate_key(2048, {"kid": "never published"})
    return lambda claims: jwt.encode({"alg": "RS256", "kid": key.kid}, claims, key)


def _by_nobody(_: FakeProvider) -> Callable[[Claims], str]:
    return unsigned


def _no_token_at_all(_: FakeProvider) -> Callable[[Claims], str]:
    return lambda _: "a.b.c"


@pytest.mark.parametrize(
    ("forge", "why"),
    [
        (_by_nobody, "only the provider can sign"),
        (_by_our_own_secret, "only the provider can sign"),
        (_by_the_public_key_as_a_secret, "only the provider can sign"),
        (_by_somebody_elses_key, "signature is not the provider's"),
        (_by_a_key_of_no_name, "a key that the provider does not publish"),
        (_no_token_at_all, "signature is not the provider's"),
    ],
)
def test_a_token_that_the_provider_did_not_sign_lets_nobody_in(
    idp: FakeProvider, clock: Clock, forge: Callable[[FakeProvider], Callable[[Claims], str]], why: str
) -> None:
    idp.sign = forge(idp)
    with pytest.raises(OidcError, match=why):
        _met(idp, clock)


def test_a_signature_counts_for_what_was_signed_alone(idp: FakeProvider, clock: Clock) -> None:
    honest = idp.sign

    def swapped(claims: Claims) -> str:
        head, _, signature = honest(claims).split(".")
        return f"{head}.{unsigned({**claims, 'preferred_username': 'root'}).split('.')[1]}.{signature}"

    idp.sign = swapped
    with pytest.raises(OidcError, match="signature is not the provider's"):
        _met(idp, clock)


def test_new_keys_of_the_provider_are_fetched_when_they_are_first_met(idp: FakeProvider, clock: Clock) -> None:
    async def meet_before_and_after() -> list[str]:
        async with http.client() as client:
            provider = Provider(_registration(idp), client, clock)
            names = []
            for _ in range(2):
                address = await provider.way_there(TRIP, BACK)
                back = idp.authorize({name: one[0] for name, one in parse_qs(urlsplit(address).query).items()})
                code = parse_qs(urlsplit(back).query)["code"][0]
                names.append((await provider.person(code, TRIP, BACK)).name)
                idp.rotate()
                clock.now += KEYS_AGAIN_SECONDS
            return names

    assert asyncio.run(meet_before_and_after()) == ["lin", "lin"]
    assert idp.asked.count("/realm/keys") == 2


def test_the_provider_is_not_asked_who_it_is_for_each_person(idp: FakeProvider, clock: Clock) -> None:
    _met(idp, clock, times=3)
    assert idp.asked.count("/realm/keys") == 1
    assert KEPT_SECONDS > KEYS_AGAIN_SECONDS


# ---------------------------------------------------------------- what the provider says of itself and us


def test_a_client_without_a_secret_and_one_that_sends_it_in_the_form_are_taken(idp: FakeProvider, clock: Clock) -> None:
    idp.secret = None
    assert _met(idp, clock)
    idp.secret, idp.basic = CLIENT_SECRET, False
    assert _met(idp, clock)


def test_a_wrong_secret_is_said_to_be_the_matter_and_not_shown(idp: FakeProvider, clock: Clock) -> None:
    registration = _registration(idp)._replace(client_secret=Secret("of last year"))

    async def meet() -> None:
        async with http.client() as client:
            provider = Provider(registration, client, clock)
            address = await provider.way_there(TRIP, BACK)
            back = idp.authorize({name: one[0] for name, one in parse_qs(urlsplit(address).query).items()})
            await provider.person(parse_qs(urlsplit(back).query)["code"][0], TRIP, BACK)

    with pytest.raises(OidcError, match="answered 401: invalid_client") as refused:
        asyncio.run(meet())
    assert "last year" not in str(refused.value)


@pytest.mark.parametrize(
    ("tell", "why"),
    [
        (_with(issuer="https://elsewhere.example"), 'calls itself "https://elsewhere.example"'),
        (_with(token_endpoint="http://idp.example/token"), "token_endpoint is no https://"),
        (_with(jwks_uri="http://idp.example/keys"), "jwks_uri is no https://"),
        (_with(authorization_endpoint="javascript:alert(1)"), "authorization_endpoint is no https://"),
        (_with(token_endpoint="https://169.254.169.254/token"), "a number and not its own"),
        (_with(token_endpoint="https://localhost/token"), "a number and not its own"),
        (_with(jwks_uri=None), "no description of an OpenID provider"),
    ],
)
def test_a_provider_that_says_odd_things_of_itself_is_not_used(
    idp: FakeProvider, clock: Clock, tell: Callable[[Claims], Claims], why: str
) -> None:
    idp.tell = tell
    with pytest.raises(OidcError, match=why):
        _met(idp, clock)


def test_a_description_that_is_none_is_called_that() -> None:
    with pytest.raises(OidcError, match="no description of an OpenID provider"):
        discovery_of(b"<html>", "https://idp.example")


def _resolving(address: str) -> Any:
    import ipaddress  # noqa: PLC0415

    async def resolve(_host: str, _port: int) -> list[Address]:
        return [ipaddress.ip_address(address)]

    return resolve


def test_a_provider_whose_name_leads_into_a_private_network_is_reached_only_where_that_is_meant(clock: Clock) -> None:
    registration = Registration("https://idp.example", CLIENT_ID, None, ("openid",), "sub", ("groups",))

    async def ask() -> None:
        async with http.Client(_resolving("10.0.0.1"), PERMIT) as client:
            await Provider(registration, client, clock).way_there(TRIP, BACK)

    with pytest.raises(OidcError, match=r"private address \(10\.0\.0\.1\); if that is meant, start .* --oidc-private"):
        asyncio.run(ask())


def test_a_provider_that_is_away_is_not_asked_by_everybody_in_turn(idp: FakeProvider, clock: Clock) -> None:
    honest, idp.tell = idp.tell, _with(issuer="https://elsewhere.example")

    async def come() -> list[str]:
        async with http.client() as client:
            provider = Provider(_registration(idp), client, clock)
            told = await asyncio.gather(*(provider.way_there(TRIP, BACK) for _ in range(5)), return_exceptions=True)
            assert all(isinstance(one, OidcError) for one in told)
            idp.tell = honest
            clock.now += FAILED_SECONDS
            return [await provider.way_there(TRIP, BACK)]

    assert asyncio.run(come())
    assert idp.asked.count("/realm/.well-known/openid-configuration") == 2


def test_a_provider_that_does_not_answer_is_named(idp: FakeProvider, clock: Clock) -> None:
    idp.stop()
    with pytest.raises(OidcError, match="cannot reach http://127"):
        _met(idp, clock)
    idp._server.server_close()


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"oidc_issuer": "https://idp.example"}, "one is of no use without the other"),
        ({"oidc_client_id": "x"}, "one is of no use without the other"),
        ({"oidc_issuer": "idp.example", "oidc_client_id": "x"}, "is no https://"),
        ({"oidc_issuer": "https://idp.example", "oidc_client_id": "x"}, "nobody could look"),
        (
            {"oidc_issuer": "https://i.example", "oidc_client_id": "x", "readers": ("*",), "oidc_scopes": ("email",)},
            'must hold "openid"',
        ),
    ],
)
def test_settings_that_would_let_nobody_in_are_refused(changes: dict[str, object], why: str) -> None:
    with pytest.raises(SettingError, match=why):
        check(Settings(**changes))  # type: ignore[arg-type]


def test_a_provider_over_plain_http_is_refused(clock: Clock) -> None:
    settings = Settings(oidc_issuer="http://idp.example", oidc_client_id="x", readers=("*",))

    async def make() -> None:
        async with http.client() as client:
            provider_of(settings, client, clock)

    with pytest.raises(SettingError, match="must begin with https://"):
        asyncio.run(make())


# ---------------------------------------------------------------- claims


@pytest.mark.parametrize(
    ("claims", "wanted"),
    [
        ({"preferred_username": "lin", "groups": ["a", "b", 3]}, Person("lin", ("a", "b"))),
        ({"preferred_username": "lin", "groups": "a"}, Person("lin", ("a",))),
        ({"preferred_username": "lin"}, Person("lin", ())),
        ({"groups": ["a"]}, Person("u-17", ("a",))),
        ({"preferred_username": " \n", "groups": []}, Person("u-17", ())),
    ],
)
def test_names_and_groups_are_read_from_the_claims(claims: Claims, wanted: Person) -> None:
    assert person_of({"sub": "u-17", **claims}, "preferred_username", ("groups",)) == wanted


def test_claims_may_be_within_others_and_several_may_count() -> None:
    claims = {"sub": "u", "realm_access": {"roles": ["ops"]}, "hd": "example.com", "https://x.y/groups": ["g"]}
    said = person_of(claims, "sub", ("realm_access.roles", "hd", "https://x.y/groups", "hd.nothing")).said
    assert said == ("ops", "example.com", "g")


@pytest.mark.parametrize(("verified", "counts"), [(True, True), (False, False), (None, False), ("false", False)])
def test_an_address_counts_only_once_the_provider_has_verified_it(verified: object, *, counts: bool) -> None:
    claims = {"sub": "u-17", "email": "lin@example.com", "email_verified": verified}
    person = person_of(claims, "email", ("email",))
    assert person == (Person("lin@example.com", ("lin@example.com",)) if counts else Person("u-17", ()))


def test_what_the_token_lacks_is_asked_for(idp: FakeProvider, clock: Clock) -> None:
    idp.person = {"sub": "u-17"}
    idp.userinfo = {"sub": "u-17", "preferred_username": "lin", "groups": ["gpu-ops"]}
    assert _met(idp, clock) == [Person("lin", ("gpu-ops",))]
    idp.userinfo = {**idp.userinfo, "sub": "u-18"}
    with pytest.raises(OidcError, match="somebody else"):
        _met(idp, clock)


# ---------------------------------------------------------------- the trip


def test_a_trip_is_read_as_it_was_written_and_ends_in_time() -> None:
    assert read(written(TRIP)) == TRIP
    assert TRIP.is_of("state", NOW + SECONDS_MAX)
    assert not TRIP.is_of("state", NOW + SECONDS_MAX + 1)
    assert not TRIP.is_of("state", NOW - 1)
    assert not TRIP.is_of("another", NOW)


@pytest.mark.parametrize("text", ["", "a.b.c", "a.b.c.d", "a..c.1", "a.b.c.1.2", "..."])
def test_what_is_no_trip_is_none(text: str) -> None:
    assert read(text) is None


# ---------------------------------------------------------------- over a running server


@pytest.fixture
def live_idp() -> Iterator[FakeProvider]:
    provider = FakeProvider(time.time)
    yield provider
    provider.stop()


@pytest.fixture
def server(tmp_path: Path, live_idp: FakeProvider) -> Iterator[RunningServer]:
    settings = settings_in(
        tmp_path,
        oidc_issuer=live_idp.issuer,
        oidc_client_id=CLIENT_ID,
        oidc_client_secret=CLIENT_SECRET,
        operators=("gpu-ops",),
        readers=("staff",),
    )
    with serving(settings) as running:
        yield running


def _come_back(visitor: Visitor) -> str:
    """Where the provider sends the browser that was sent there."""
    there = visitor.get("/sign-in/oidc")
    assert there.status_code == 303, there.text
    at_provider = httpx.get(there.headers["location"], timeout=DEADLINE_SECONDS, trust_env=False)
    location: str = at_provider.headers["location"]
    assert location.startswith(f"{visitor.url}/sign-in/back?")
    return location.removeprefix(visitor.url)


# A browser that comes from the provider says so.
LED = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}


def test_a_person_signs_in_by_the_provider_acts_and_is_noted(server: RunningServer) -> None:
    visitor = Visitor(server)
    assert "Sign in with 127.0.0.1" in visitor.get("/", Accept="text/html").text
    answer = visitor.get(_come_back(visitor), **LED)
    assert (answer.status_code, answer.headers["location"]) == (303, "/")
    assert visitor.looks()
    assert visitor.act().status_code == 201
    assert visitor.get("/api/v1/me").json()["name"] == "lin"
    told = [(row["who"], row["path"]) for row in visitor.get("/api/v1/audit").json()]
    assert told == [("lin", "/api/v1/silences"), ("lin", "/sign-in (oidc)")]
    assert visitor.post("/sign-out").status_code == 303
    assert not visitor.looks()


def test_a_reader_of_the_provider_looks_alone_and_who_is_in_no_group_does_not(
    server: RunningServer, live_idp: FakeProvider
) -> None:
    live_idp.person = {"sub": "u-18", "preferred_username": "ada", "groups": ["staff"]}
    ada = Visitor(server)
    ada.get(_come_back(ada))
    assert ada.looks()
    assert ada.act().status_code == 403
    live_idp.person = {"sub": "u-19", "preferred_username": "<b>eve", "groups": ["visitors"]}
    eve = Visitor(server)
    answer = eve.get(_come_back(eve))
    assert answer.status_code == 403
    assert "signed in as &lt;b&gt;eve, but in no group" in answer.text
    assert not eve.looks()


def test_an_answer_counts_once_and_for_the_browser_that_asked(server: RunningServer) -> None:
    visitor, other = Visitor(server), Visitor(server)
    back = _come_back(visitor)
    cookie = {"Cookie": f"oomwatch_trip={visitor.cookie_of('oomwatch_trip')}"}
    assert other.get(back).status_code == 403  # somebody's answer, handed to another
    assert visitor.get(back).status_code == 303
    replayed = server.get(back, headers=cookie)
    assert replayed.status_code == 403
    assert "is over already" in replayed.text
    assert "oow_session" not in str(replayed.headers)


def test_an_answer_to_another_question_lets_nobody_in(server: RunningServer) -> None:
    visitor = Visitor(server)
    back = _come_back(visitor)
    query = {name: one[0] for name, one in parse_qs(urlsplit(back).query).items()}
    answer = visitor.ask("GET", "/sign-in/back", {}, params={**query, "state": "guessed"})
    assert answer.status_code == 403
    assert not visitor.looks()


def test_an_answer_of_another_provider_lets_nobody_in(server: RunningServer) -> None:
    visitor = Visitor(server)
    query = {name: one[0] for name, one in parse_qs(urlsplit(_come_back(visitor)).query).items()}
    answer = visitor.ask("GET", "/sign-in/back", {}, params={**query, "iss": "https://elsewhere.example"})
    assert answer.status_code == 502
    assert "another provider&#x27;s" in answer.text


def test_what_the_provider_says_against_somebody_is_shown_as_its_words(
    server: RunningServer, live_idp: FakeProvider
) -> None:
    live_idp.refusal = "access_denied"
    visitor = Visitor(server)
    answer = visitor.get(_come_back(visitor))
    assert answer.status_code == 502
    assert "access_denied &lt;b&gt;not you&lt;/b&gt;" in answer.text
    assert "身份提供方未能完成登录" in answer.text


@pytest.mark.parametrize("sign", [unsigned], ids=["none"])
def test_a_forged_token_lets_nobody_in_over_the_wire_either(
    server: RunningServer, live_idp: FakeProvider, sign: Callable[[Claims], str]
) -> None:
    live_idp.sign = sign
    visitor = Visitor(server)
    answer = visitor.get(_come_back(visitor))
    assert answer.status_code == 502
    assert not visitor.looks()


def test_while_the_provider_is_away_that_is_said(server: RunningServer, live_idp: FakeProvider) -> None:
    live_idp.tell = _with(issuer="https://elsewhere.example")
    answer = Visitor(server).get("/sign-in/oidc")
    assert answer.status_code == 502
    assert "could not sign you in" in answer.text


def test_that_the_provider_is_away_is_nobodys_failed_try_and_a_forged_token_is_one(
    server: RunningServer, live_idp: FakeProvider
) -> None:
    attempts, visitor = server.parts.attempts, Visitor(server)

    def wait_seconds() -> float:
        return server.call(lambda: attempts.wait_seconds(None, "127.0.0.1", time.time()))

    def fail() -> None:
        for _ in range(BY_ADDRESS.free - 1):
            attempts.begin(None, "127.0.0.1", time.time())

    server.call(fail)
    live_idp.is_away = True
    assert visitor.get(_come_back(visitor)).status_code == 502
    assert wait_seconds() == 0
    live_idp.is_away, live_idp.sign = False, unsigned
    assert visitor.get(_come_back(visitor)).status_code == 502
    assert wait_seconds() > 0


def test_a_server_without_a_provider_has_no_such_paths(tmp_path: Path) -> None:
    with serving(settings_in(tmp_path, reader_token="look")) as server:
        assert server.get("/sign-in/oidc").status_code == 401
        assert server.get("/sign-in/back?code=x&state=y").status_code == 401
