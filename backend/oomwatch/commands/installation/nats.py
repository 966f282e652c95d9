"""NATS, by which several servers act as one."""

import asyncio
import importlib.util
import socket
from collections.abc import Iterator
from urllib.parse import urlsplit

from oomwatch.commands.installation.finding import Family, Finding
from oomwatch.oserror import in_words
from oomwatch.settings import Settings

FAMILY = Family("NATS")
CONNECT_SECONDS = 3.0
DEFAULT_PORT = 4222


def checks(settings: Settings) -> Iterator[Finding]:
    """Only where it is set. Addresses are told without what they hold of names and passwords."""
    if settings.cluster_nats is None:
        return
    if importlib.util.find_spec("nats") is None:
        yield FAMILY.wrong("library", "nats-py is missing", 'pip install "oomwatch[cluster]"')
        return
    for address in settings.cluster_nats.split(","):
        parts = urlsplit(address.strip())
        place = f"{parts.hostname}:{parts.port or DEFAULT_PORT}"
        fault = _greeting_fault(str(parts.hostname), parts.port or DEFAULT_PORT) or asyncio.run(
            _refusal(address.strip())
        )
        if fault is None:
            yield FAMILY.ok(place, "it lets this server in")
        else:
            remedy = "does it run there, with this name, password and TLS? docs/howto/several-servers.md"
            yield FAMILY.wrong(place, fault, remedy)


def _greeting_fault(host: str, port: int) -> str | None:
    """NATS speaks first: INFO and what it asks for."""
    try:
        with socket.create_connection((host, port), CONNECT_SECONDS) as line:
            line.settimeout(CONNECT_SECONDS)
            said = line.recv(5)
    except TimeoutError:
        return "no answer in time; is it NATS?"
    except OSError as error:
        return in_words(error)
    return None if said == b"INFO " else "what answers there is no NATS"


async def _refusal(address: str) -> str | None:
    from nats.errors import Error  # noqa: PLC0415

    import nats  # noqa: PLC0415 - optional

    async def heard(_: Exception) -> None:
        """What matters is raised too."""

    try:
        client = await asyncio.wait_for(
            nats.connect(
                address,
                allow_reconnect=False,
                max_reconnect_attempts=0,
                connect_timeout=int(CONNECT_SECONDS),
                error_cb=heard,
            ),
            2 * CONNECT_SECONDS,
        )
    except (Error, OSError, asyncio.TimeoutError) as error:
        return in_words(error)
    await client.close()
    return None
