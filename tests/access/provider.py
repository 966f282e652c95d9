"""A small OpenID provider on loopback: real signatures, real PKCE, codes that are good once. Tests spoil anything."""

import base64
import hashlib
import json
import secrets
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, quote, unquote, urlencode, urlsplit

from joserfc import jwt
from joserfc.jwk import RSAKey

Claims = dict[str, Any]
CLIENT_ID, CLIENT_SECRET = "oomwatch", "s3cret of/the client"


def _unchanged(claims: Claims) -> Claims:
    return claims


class FakeProvider:
    """`person` is signed in there already, and is let through at once. `clock` gives Unix seconds."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self.clock = clock
        self.person: Claims = {"sub": "u-17", "preferred_username": "lin", "groups": ["gpu-ops"]}
        self.userinfo: Claims | None = None  # None: there is no such address
        self.spoil: Callable[[Claims], Claims] = _unchanged
        self.sign: Callable[[Claims], str] = self._sign
        self.tell: Callable[[Claims], Claims] = _unchanged  # of the discovery document
        self.refusal: str | None = None
        self.is_away = False  # as what stands before it says
        self.secret: str | None = CLIENT_SECRET  # None: a public client
        self.basic = True
        self.rotate()
        self.asked: list[str] = []
        self._codes: dict[str, dict[str, str]] = {}
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler_of(self))
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), name="provider")
        self._thread.start()

    @property
    def issuer(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}/realm"

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def rotate(self) -> None:
        """Sign by another key from now on, and publish that one alone."""
        self.key = RSAKey.generate_key(2048, {"kid": secrets.token_hex(4), "use": "sig", "alg": "RS256"})

    def claims(self, nonce: str) -> Claims:
        now = int(self.clock())
        base = {"iss": self.issuer, "aud": CLIENT_ID, "iat": now, "exp": now + 300, "nonce": nonce}
        return self.spoil({**base, **self.person})

    def _sign(self, claims: Claims) -> str:
        return jwt.encode({"alg": "RS256", "kid": self.key.kid}, claims, self.key)

    # ------------------------------------------------------------ what it answers: a status, and JSON or an address

    def get(self, path: str, query: dict[str, str], headers: Any) -> tuple[int, Claims | str]:
        self.asked.append(path)
        if path == "/realm/.well-known/openid-configuration":
            return 200, self.tell(self._description())
        if path == "/realm/keys":
            return 200, {"keys": [self.key.as_dict(private=False)]}
        if path == "/realm/authorize":
            return 303, self.authorize(query)
        if path == "/realm/userinfo" and self.userinfo is not None and headers["Authorization"] == "Bearer access":
            return 200, self.userinfo
        return 404, {}

    def authorize(self, query: dict[str, str]) -> str:
        """Where the browser is sent back to."""
        assert (query["response_type"], query["client_id"]) == ("code", CLIENT_ID)
        assert query["code_challenge_method"] == "S256"
        if self.refusal is not None:
            back = {"error": self.refusal, "error_description": "<b>not you</b>", "state": query["state"]}
            return f"{query['redirect_uri']}?{urlencode(back)}"
        code = secrets.token_urlsafe(8)
        self._codes[code] = query
        return f"{query['redirect_uri']}?{urlencode({'code': code, 'state': query['state'], 'iss': self.issuer})}"

    def post(self, path: str, form: dict[str, str], headers: Any) -> tuple[int, Claims]:
        self.asked.append(path)
        if self.is_away:
            return 503, {}
        begun = self._codes.pop(form.get("code", ""), None)  # good once
        if path != "/realm/token" or begun is None or begun["redirect_uri"] != form.get("redirect_uri"):
            return 400, {"error": "invalid_grant", "error_description": "no such code"}
        digest = hashlib.sha256(form["code_verifier"].encode()).digest()
        if base64.urlsafe_b64encode(digest).rstrip(b"=").decode() != begun["code_challenge"]:
            return 400, {"error": "invalid_grant", "error_description": "wrong verifier"}
        if not self._knows(form, headers):
            return 401, {"error": "invalid_client"}
        id_token = self.sign(self.claims(begun["nonce"]))
        return 200, {"access_token": "access", "token_type": "Bearer", "id_token": id_token}

    def _knows(self, form: dict[str, str], headers: Any) -> bool:
        if self.secret is None:
            return form.get("client_id") == CLIENT_ID and "Authorization" not in headers
        if not self.basic:
            return (form.get("client_id"), form.get("client_secret")) == (CLIENT_ID, self.secret)
        given = base64.b64decode(headers.get("Authorization", "").removeprefix("Basic ")).decode()
        return "client_secret" not in form and given == f"{CLIENT_ID}:{quote(self.secret, safe='')}"

    def _description(self) -> Claims:
        told: Claims = {
            "issuer": self.issuer,
            "authorization_endpoint": f"{self.issuer}/authorize",
            "token_endpoint": f"{self.issuer}/token",
            "jwks_uri": f"{self.issuer}/keys",
        }
        if not self.basic:
            told["token_endpoint_auth_methods_supported"] = ["client_secret_post"]
        return told if self.userinfo is None else {**told, "userinfo_endpoint": f"{self.issuer}/userinfo"}


def unsigned(claims: Claims) -> str:
    """A token of the algorithm "none", which needs no key."""
    parts = ({"alg": "none", "typ": "JWT"}, claims)
    encoded = (base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=").decode() for part in parts)
    return ".".join(encoded) + "."


def _handler_of(provider: FakeProvider) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            query = {name: values[0] for name, values in parse_qs(parts.query).items()}
            self._answer(*provider.get(unquote(parts.path), query, self.headers))

        def do_POST(self) -> None:
            content = self.rfile.read(int(self.headers["Content-Length"])).decode()
            form = {name: values[0] for name, values in parse_qs(content).items()}
            self._answer(*provider.post(urlsplit(self.path).path, form, self.headers))

        def _answer(self, status: int, told: Claims | str) -> None:
            content = json.dumps(told).encode() if isinstance(told, dict) else b""
            self.send_response(status)
            if isinstance(told, str):
                self.send_header("Location", told)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            """Nobody reads it."""

    return Handler
