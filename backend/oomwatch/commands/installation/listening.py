"""The address that the server is to listen on."""

import ssl
import urllib.error
import urllib.request
from collections.abc import Iterator

from oomwatch.commands.installation.finding import Family, Finding
from oomwatch.listener import bind
from oomwatch.options import SettingError
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
        yield FAMILY.wrong("listen", fault, "ss -ltnp tells what listens here; --listen names another address")


def _cannot_bind(address: Address) -> str | None:
    try:
        bind(address).close()
    except SettingError as error:
        return str(error).removeprefix("listen: ")
    return None


def _is_ours(address: Address, scheme: str) -> bool:
    url = f"{scheme}{address.url.removeprefix('http')}/healthz"
    unverified = ssl._create_unverified_context()  # noqa: S323, SLF001 - nothing is told to it
    # An address of this machine: no proxy that the environment names is the way to it.
    straight = urllib.request.build_opener(
        urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=unverified)
    )
    try:
        with straight.open(url, timeout=ANSWER_SECONDS) as answer:
            return bool(answer.read(100) == b"ok\n")
    except urllib.error.HTTPError as refusal:
        refusal.close()
        return False
    except (OSError, ValueError):
        return False
