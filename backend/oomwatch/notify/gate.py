"""The way out: which addresses our own requests may reach, and by which proxy.

The reasons are in docs/decisions/0006-outgoing-requests.md.

A name is resolved once, judged, and connected to at the very address that was judged. What the owner of alerts.yaml
wrote as a number, or as localhost, is what it says and needs no judgement but that it is no address of the link.
"""

import asyncio
import ipaddress
import os
import socket
import ssl
import urllib.request
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TypeAlias

import certifi
import httpcore
import httpx

from oomwatch.oserror import in_words

Address: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address
# All addresses of a host, in the order in which to try them. Raises OSError or UnicodeError where there is none.
Resolve: TypeAlias = Callable[[str, int], Awaitable[list[Address]]]

KEEP_SECONDS = 5.0  # httpx' own: how long a connection is kept for the next message
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")  # RFC 6052: an IPv4 address in the last 32 bits
_PROXY = "it is an address such as http://proxy:3128 (socks5:// needs the package httpx[socks])"
_NO_NAME = "its name cannot be resolved; is it right, and does the name service know it?"
PERMIT = "add this line to the notify section of alerts.yaml: allow_private_addresses: true"


class AddressRefusedError(Exception):
    """The gate lets nothing through to there. The text is for people and names no address but the numbers."""


async def resolve(host: str, port: int) -> list[Address]:
    """As the system does."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [ipaddress.ip_address(str(one[4][0]).partition("%")[0]) for one in found]


class Gate(httpx.AsyncBaseTransport):
    """Requests of ours go through one. `allow_private` may be changed at any time; `permit` tells people how."""

    def __init__(self, resolve: Resolve = resolve, permit: str = PERMIT) -> None:
        self.allow_private = False
        self.permit = permit
        self._judged = _Judged(self, resolve)
        self._direct: dict[str, httpx.AsyncHTTPTransport] = {}  # by scheme
        self._proxied: dict[str, httpx.AsyncHTTPTransport] = {}

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Raises AddressRefusedError besides what httpx raises."""
        literal = _literal(request.url.host)
        if literal is not None and not self.allow_private:
            _refuse_the_link(literal, self.permit)
        proxy = proxy_for(request.url)
        transport = self._straight(request.url.scheme) if proxy is None else self._through(proxy)
        return await transport.handle_async_request(request)

    def _straight(self, scheme: str) -> httpx.AsyncHTTPTransport:
        """The certificates that https is judged by take a MiB, and are loaded once somebody is written to by it."""
        if scheme not in self._direct:
            trust = authorities() if scheme == "https" else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            self._direct[scheme] = _Guarded(self._judged, trust)
        return self._direct[scheme]

    def _through(self, proxy: str) -> httpx.AsyncHTTPTransport:
        if proxy not in self._proxied:
            trust = authorities()
            try:
                self._proxied[proxy] = httpx.AsyncHTTPTransport(verify=trust, proxy=proxy)
            except (ValueError, ImportError, httpx.InvalidURL) as error:
                raise httpx.ProxyError(
                    f"the proxy that {_variable_of(proxy)} names cannot be used; {_PROXY}"
                ) from error
        return self._proxied[proxy]

    async def aclose(self) -> None:
        for transport in (*self._direct.values(), *self._proxied.values()):
            await transport.aclose()


def authorities() -> ssl.SSLContext:
    """Who is trusted to say whose a certificate is. Raises httpx.ConnectError that names the file and the remedy."""
    try:
        return httpx.create_ssl_context()
    except OSError as error:
        named = os.environ.get("SSL_CERT_FILE")
        place = f"{named}, which SSL_CERT_FILE names" if named else certifi.where()
        remedy = "name a PEM file with them, or unset it" if named else "install the package certifi anew"
        sentence = f"the authorities' certificates cannot be loaded from {place}: {in_words(error)}; {remedy}"
        raise httpx.ConnectError(sentence) from error


def _variable_of(proxy: str) -> str:
    """The variable that it came from; its value may hold a password and is not told."""
    named = ((name, value) for name, value in os.environ.items() if name.lower().endswith("_proxy") and value)
    return next((name for name, value in named if name.lower() != "no_proxy" and value in proxy), "the environment")


def proxy_for(url: httpx.URL) -> str | None:
    """By the environment: HTTPS_PROXY, HTTP_PROXY and ALL_PROXY, but for the hosts of NO_PROXY, loopback and localhost.

    A proxy resolves names itself: what may be reached through it is for the proxy to say.
    """
    literal = _literal(url.host)
    if url.host == "localhost" or (literal is not None and literal.is_loopback):
        return None
    proxies = urllib.request.getproxies()
    proxy = proxies.get(url.scheme) or proxies.get("all")
    if not proxy or urllib.request.proxy_bypass(url.host):
        return None
    return proxy if "://" in proxy else f"http://{proxy}"


class _Guarded(httpx.AsyncHTTPTransport):
    """httpx' own transport, over connections that the gate has judged."""

    def __init__(self, network: httpcore.AsyncNetworkBackend, trust: ssl.SSLContext) -> None:
        super().__init__(verify=trust)
        self._pool = httpcore.AsyncConnectionPool(
            ssl_context=trust, keepalive_expiry=KEEP_SECONDS, network_backend=network
        )


class _Judged(httpcore.AsyncNetworkBackend):
    """Connects to addresses that may be reached, and to no others."""

    def __init__(self, gate: Gate, resolve: Resolve) -> None:
        self._gate = gate
        self._resolve = resolve
        self._inner = httpcore.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        """The first of the host's addresses that answers."""
        error: Exception = httpcore.ConnectError(_NO_NAME)
        for address in await self._addresses(host, port, timeout):
            try:
                return await self._inner.connect_tcp(str(address), port, timeout, local_address, socket_options)
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as failure:  # noqa: PERF203 - of a few addresses
                error = failure
        raise error

    async def _addresses(self, host: str, port: int, timeout: float | None) -> list[Address]:
        """Those that may be reached. Raises httpcore's errors and AddressRefusedError."""
        literal = _literal(host)
        if literal is not None:
            return [literal]
        try:
            found = await asyncio.wait_for(self._resolve(host, port), timeout)
        except asyncio.TimeoutError as error:
            raise httpcore.ConnectTimeout("its name could not be resolved in time") from error
        except (OSError, UnicodeError) as error:
            raise httpcore.ConnectError(_NO_NAME) from error
        is_let_through = self._gate.allow_private or host == "localhost"
        return found if is_let_through else public_of(found, self._gate.permit)

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


def public_of(addresses: Sequence[Address], permit: str = PERMIT) -> list[Address]:
    """Those of a name that everybody may reach. Raises AddressRefusedError where there is none."""
    public = [address for address in addresses if is_public(address)]
    if addresses and not public:
        private = ", ".join(str(address) for address in addresses[:3])
        raise AddressRefusedError(f"its name leads to a private address ({private}); if that is meant, {permit}")
    return public


def is_public(address: Address) -> bool:
    """Whether it is one of the Internet: not of this machine, of the link, of a private network, or of a group."""
    inner = _embedded(address)
    return inner.is_global and not inner.is_multicast


def _embedded(address: Address) -> Address:
    """The IPv4 address within an IPv6 one that only carries it."""
    if isinstance(address, ipaddress.IPv4Address):
        return address
    if address in _NAT64:
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return address.ipv4_mapped or address.sixtofour or address


def _refuse_the_link(address: Address, permit: str) -> None:
    """Addresses at which clouds keep their machines' credentials, and such that belong to nobody."""
    inner = _embedded(address)
    if inner.is_link_local or inner.is_multicast or inner.is_unspecified:
        raise AddressRefusedError(f"{address} is no address of a receiver; if it is, {permit}")


def _literal(host: str) -> Address | None:
    try:
        return ipaddress.ip_address(host.strip("[]").partition("%")[0])
    except ValueError:
        return None
