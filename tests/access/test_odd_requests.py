"""Whatever headers, cookies and forms hold, the answer is one of those that are meant, and lets nobody in."""

from collections.abc import Iterator

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.access.conftest import settle
from tests.server.running_server import DEADLINE_SECONDS, RunningServer, serving, settings_in

MEANT = {303, 400, 401, 403, 404, 405, 413, 429}
TEXTS = st.one_of(
    st.binary(max_size=40).map(lambda some: bytes(byte for byte in some if byte >= 0x20 and byte != 0x7F).strip()),
    st.sampled_from(
        [b"__Host-oomwatch_token=", b"oomwatch_token=oow_session_", b"oomwatch_form=x", b"null", b"http://["]
    ),
)
NAMES = (
    b"Cookie", b"Origin", b"Sec-Fetch-Site", b"Sec-Fetch-Mode", b"Authorization", b"X-Remote-User", b"X-Forwarded-For",
    b"X-Forwarded-Proto", b"Accept", b"Content-Type",
)  # fmt: skip
HEADERS = st.dictionaries(st.sampled_from(NAMES), TEXTS, max_size=6)
PATHS = [
    "/",
    "/sign-in",
    "/sign-out",
    "/sign-in/oidc",
    "/sign-in/back",
    "/api/v1/me",
    "/api/v1/silences",
    "//x",
    "/%00",
]


@pytest.fixture(scope="module")
def closed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    folder = tmp_path_factory.mktemp("odd")
    settle(folder)
    proxied = {"auth_header": "X-Remote-User", "auth_header_from": ("10.0.0.0/8",), "operators": ("*",)}
    with serving(settings_in(folder, **proxied)) as server:
        yield server


@settings(max_examples=100, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(
    method=st.sampled_from(["GET", "POST", "HEAD", "PUT", "OPTIONS"]),
    path=st.sampled_from(PATHS),
    query=st.sampled_from(["", "?token=x", "?state=&code=", "?token=%00&token=", "?%ff=%ff"]),
    headers=HEADERS,
    content=st.one_of(
        st.binary(max_size=60), st.sampled_from([b"form=x&name=%00&password=", b"form=&token=" + b"x" * 9000])
    ),
)
def test_odd_requests_get_answers_that_are_meant(
    closed: RunningServer, method: str, path: str, query: str, headers: dict[bytes, bytes], content: bytes
) -> None:
    answer = httpx.request(
        method, closed.url + path + query, headers=headers, content=content, timeout=DEADLINE_SECONDS, trust_env=False
    )
    assert answer.status_code in MEANT
    assert "oow_session_" not in str(answer.headers)
