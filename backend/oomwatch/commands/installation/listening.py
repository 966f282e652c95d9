"""The address that the server is to listen on."""

import socket
import ssl
import urllib.request
from collections.abc import Iterator

from oomwatch.commands.installation.finding import Family, Finding
from oomwatch.settings import Address, Settings, address_of

FAMILY = Family("address")
ANSWER_SECONDS = 3.0


def checks(settings: Settings) -> Iterator[Finding]:
    """Free, or taken by a server of ours."""
    address = address_of(settings)
    fault = _cannot_bind(address)
    if fault is None:
        yield FAMILY.ok("listen", f"{settings.listen} is free")
    elif _is_ours(address, "https" if settings.tls_cert else "http"):
        yield FAMILY.ok("listen", f"an oomwatch server answers at {settings.listen}")
    else:
        remedy = "stop what has it (ss -ltnp tells), or name another with --listen"
        yield FAMILY.wrong("listen", f"{settings.listen} cannot be had: {fault}", remedy)


def _cannot_bind(address: Address) -> str | None:
    try:
        family, kind, protocol, _, place = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind, protocol) as listener:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(place)
            listener.listen(1)
    except OSError as error:
        return error.strerror or str(error)
    return None


def _is_ours(address: Address, scheme: str) -> bool:
    url = f"{scheme}{address.url.removeprefix('http')}/healthz"
    unverified = ssl._create_unverified_context()  # noqa: S323, SLF001 - nothing is told to it
    try:
        with urllib.request.urlopen(url, timeout=ANSWER_SECONDS, context=unverified) as answer:  # noqa: S310
            return bool(answer.read(100) == b"ok\n")
    except (OSError, ValueError):
        return False
