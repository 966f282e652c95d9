"""The way from this agent to its server: name, port, TLS, token, clock, version."""

import asyncio
import secrets
import socket
import time
from collections.abc import Iterator
from urllib.parse import urlsplit

from oomwatch import __version__, wire
from oomwatch.commands.installation.finding import Family, Finding
from oomwatch.oserror import in_words
from oomwatch_agent.link import Link, LinkError
from oomwatch_agent.settings import DEFAULT_SERVER, AgentSettings, credentials, server_url

FAMILY = Family("server")
CONNECT_SECONDS = 5.0
SKEW_SECONDS = 2.0  # it is corrected, and times in logs of several nodes are not


def checks(settings: AgentSettings) -> Iterator[Finding]:
    """Step by step: what comes after one that fails is not tried."""
    parts = urlsplit(settings.server)
    host, port = parts.hostname or "", parts.port or (443 if parts.scheme == "wss" else 80)
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except OSError as error:
        remedy = "is the name right (--server), and does this machine's DNS or /etc/hosts know it?"
        yield FAMILY.wrong("name", f"{host}: {in_words(error)}", remedy)
        return
    addresses = ", ".join(dict.fromkeys(str(one[4][0]) for one in found))
    yield FAMILY.ok("name", host if host == addresses else f"{host} is {addresses}")
    fault = _cannot_connect(host, port)
    if fault is not None:
        yield _unreached(settings, f"{host}:{port}: {fault}", port)
        return
    yield FAMILY.ok("port", f"{host}:{port} takes connections")
    yield from asyncio.run(_greeted(settings))


def _unreached(settings: AgentSettings, said: str, port: int) -> Finding:
    if settings.server == server_url(DEFAULT_SERVER):
        return FAMILY.warning("port", said, "start one here (oomwatch serve), or name yours: --server HOST:PORT")
    remedy = f"does it run there and listen to the network (--listen 0.0.0.0:{port}), and is a firewall between?"
    return FAMILY.wrong("port", said, remedy)


def _cannot_connect(host: str, port: int) -> str | None:
    try:
        with socket.create_connection((host, port), CONNECT_SECONDS):
            return None
    except TimeoutError:
        return f"no answer within {CONNECT_SECONDS:g} s"
    except OSError as error:
        return in_words(error)


async def _greeted(settings: AgentSettings) -> list[Finding]:
    """What the server says to an agent of these settings, which is only asking."""
    try:
        link = await Link.open(settings.server, credentials(settings))
    except LinkError as error:
        return [FAMILY.wrong("connection", str(error), "docs/howto/access.md has tokens and certificates")]
    began = time.time()
    try:
        welcome = await link.greet(_hello(settings))
    except LinkError as error:
        return [FAMILY.wrong("hello", str(error), "docs/howto/access.md has what tokens may do")]
    finally:
        await link.close()
    return [
        FAMILY.ok("connection", f"{settings.server} takes this agent as node {settings.node}"),
        _clock(welcome.sent_at - (began + time.time()) / 2),
        _version(welcome.server_version),
    ]


def _hello(settings: AgentSettings) -> wire.Hello:
    return wire.Hello(
        protocol=wire.PROTOCOL_VERSION,
        agent_version=__version__,
        node=settings.node,
        session=secrets.token_hex(8),
        sent_at=time.time(),
        interval_seconds=float(settings.interval),
        facts=wire.NodeFacts(),
        check=True,
    )


def _clock(ahead_seconds: float) -> Finding:
    said = f"the server's is {abs(ahead_seconds):.1f} s {'ahead of' if ahead_seconds > 0 else 'behind'} this one"
    if abs(ahead_seconds) > SKEW_SECONDS:
        return FAMILY.warning("clock", said, "samples are corrected, logs of several nodes are not: run NTP on both")
    return FAMILY.ok("clock", said)


def _version(theirs: str) -> Finding:
    if theirs != __version__:
        said = f"the server is {theirs}, this is {__version__}"
        return FAMILY.warning("version", said, "install the same on both; the server first")
    return FAMILY.ok("version", f"{theirs} on both")
