"""The server's settings: flags, environment, YAML file, defaults (oomwatch.options), read once at the start."""

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal, NamedTuple
from urllib.parse import urlsplit

import msgspec

from oomwatch.access.addresses import THIS_MACHINE, Network
from oomwatch.access.proxied import check_header, networks_of
from oomwatch.options import SettingError, option
from oomwatch.units import Duration

DEFAULT_PORT = 8642
FLUSH_SECONDS_MAX = 60.0  # agents keep 10 minutes: an acknowledgement must not be a large part of that
SENDING_SECONDS_MIN, SENDING_SECONDS_MAX = 1.0, 300.0  # what is older, Prometheus shows no more
SESSION_SECONDS_MIN = 60.0
LOOPBACK = ("127.0.0.1", "localhost", "::1")

# A misspelled or empty one too: to be refused, rather than made into folders that may have a password in their names.
_URL = re.compile(r"[^/]*://|sqlite:|sqlite//|$")
_PLAIN_NAME = re.compile(r"[A-Za-z0-9_-]{1,100}")

Compat = Literal["dcgm"]
LogLevel = Literal["debug", "info", "warning", "error"]


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """What can be set. Names are flags, environment variables and file keys at once."""

    listen: Annotated[str, option("address to serve on; 0.0.0.0:8642 opens it to the network", metavar="HOST:PORT")] = (
        f"127.0.0.1:{DEFAULT_PORT}"
    )
    db: Annotated[
        str | None,
        option("database: a file or a SQLAlchemy URL; without it a file in the user's data folder", metavar="FILE|URL"),
    ] = None
    rules: Annotated[
        Path | None, option("rule file; without it ./alerts.yaml, else the one that is shipped", metavar="FILE")
    ] = None
    rules_editable: Annotated[bool, option("let whoever may read change the rule file over the API")] = False
    token: Annotated[str | None, option("token that agents must send", metavar="TOKEN", secret=True)] = None
    reader_token: Annotated[
        str | None, option("token that browsers, scripts and Prometheus must send", metavar="TOKEN", secret=True)
    ] = None
    operator_token: Annotated[
        str | None,
        option(
            "token of those who acknowledge, silence and change rules; without it whoever may read may do so",
            metavar="TOKEN",
            secret=True,
        ),
    ] = None
    open_to_network: Annotated[
        bool, option("listen beyond this machine without tokens: whoever can reach the address may look and send")
    ] = False
    tls_cert: Annotated[
        Path | None, option("certificate to serve TLS with, a PEM file with its chain", metavar="FILE")
    ] = None
    tls_key: Annotated[Path | None, option("its private key, where it is not in the same file", metavar="FILE")] = None
    tls_client_ca: Annotated[
        Path | None,
        option(
            "authorities, a PEM file, one of which must have signed the certificate of whoever connects", metavar="FILE"
        ),
    ] = None
    session_idle: Annotated[
        Duration, option("how long a browser that somebody signed in with stays so without a page open", metavar="TIME")
    ] = Duration(86400)
    session_length: Annotated[Duration, option("how long it stays so at most", metavar="TIME")] = Duration(7 * 86400)
    readers: Annotated[
        tuple[str, ...],
        option(
            "group of the identity provider or proxy whose people may look; * is everybody it knows",
            metavar="GROUP",
        ),
    ] = ()
    operators: Annotated[tuple[str, ...], option("group whose people may look and act", metavar="GROUP")] = ()
    oidc_issuer: Annotated[
        str | None, option("identity provider by which people sign in, with OpenID Connect", metavar="URL")
    ] = None
    oidc_client_id: Annotated[str | None, option("what the provider calls this server", metavar="ID")] = None
    oidc_client_secret: Annotated[
        str | None, option("secret that the provider gave this server", metavar="SECRET", secret=True)
    ] = None
    oidc_scopes: Annotated[tuple[str, ...], option("scope that the provider is asked for", metavar="SCOPE")] = (
        "openid",
        "profile",
        "email",
    )
    oidc_name_claim: Annotated[str, option("claim that names the person", metavar="CLAIM")] = "preferred_username"
    oidc_role_claims: Annotated[
        tuple[str, ...],
        option(
            "claim that holds the groups of --readers and --operators, with dots where it is within another one",
            metavar="CLAIM",
        ),
    ] = ("groups",)
    oidc_private: Annotated[bool, option("the provider's name may lead to an address of a private network")] = False
    trusted_proxies: Annotated[
        tuple[str, ...],
        option(
            "address or network of proxies and load balancers whose X-Forwarded-For and X-Forwarded-Proto are "
            "believed; without it this machine's own",
            metavar="CIDR",
        ),
    ] = ()
    auth_header: Annotated[
        str | None,
        option("header by which a proxy before the server names whom it signed in, e.g. X-Remote-User", metavar="NAME"),
    ] = None
    auth_header_from: Annotated[
        tuple[str, ...],
        option(
            "address or network of these proxies, nobody else's header counts; without it those of --trusted-proxies",
            metavar="CIDR",
        ),
    ] = ()
    auth_role_header: Annotated[
        str | None,
        option(
            "header by which the proxy names the person's groups, with commas between; without it --readers and "
            "--operators are of names",
            metavar="NAME",
        ),
    ] = None
    external_url: Annotated[
        str | None, option("address of the page as people reach it, for links in messages", metavar="URL")
    ] = None
    history_keep: Annotated[Duration, option("how long events and ended alerts are kept", metavar="TIME")] = Duration(
        7 * 86400
    )
    history_raw_keep: Annotated[Duration, option("how long every reading is kept", metavar="TIME")] = Duration(86400)
    history_10s_keep: Annotated[
        Duration, option("how long least, greatest and mean of each 10 seconds are kept", metavar="TIME")
    ] = Duration(7 * 86400)
    history_1m_keep: Annotated[
        Duration, option("how long least, greatest and mean of each minute are kept", metavar="TIME")
    ] = Duration(90 * 86400)
    flush_interval: Annotated[Duration, option("how often messages are stored and acknowledged", metavar="TIME")] = (
        Duration(10)
    )
    record: Annotated[
        Path | None, option("append everything the rules are given to a file, for oomwatch replay", metavar="FILE")
    ] = None
    incidents: Annotated[
        Path | None,
        option(
            "folder for reports of what ran out of memory; without it incidents beside the database, or a PostgreSQL",
            metavar="DIR",
        ),
    ] = None
    incidents_keep: Annotated[int, option("how many of these reports are kept, of 5 MB each", metavar="COUNT")] = 50
    compat: Annotated[
        tuple[Compat, ...],
        option(
            "exporter whose families /metrics has too: dcgm; not beside the exporter itself, for sums would double",
            metavar="EXPORTER",
        ),
    ] = ()
    remote_write_url: Annotated[
        str | None,
        option("store that the metrics are sent to, by Prometheus' remote write", metavar="URL", secret=True),
    ] = None
    remote_write_token: Annotated[
        str | None, option("bearer token that this store asks for", metavar="TOKEN", secret=True)
    ] = None
    remote_write_interval: Annotated[Duration, option("how often they are sent there", metavar="TIME")] = Duration(15)
    otlp_endpoint: Annotated[
        str | None, option("OpenTelemetry collector that the metrics are sent to, over HTTP", metavar="URL")
    ] = None
    otlp_interval: Annotated[Duration, option("how often they are sent there", metavar="TIME")] = Duration(15)
    cluster_nats: Annotated[
        str | None,
        option(
            "NATS by which several servers that share a PostgreSQL act as one; several addresses with commas between",
            metavar="URL",
            secret=True,
        ),
    ] = None
    cluster_site: Annotated[
        str, option("which servers belong together, where several sites share a NATS", metavar="NAME")
    ] = "default"
    cluster_replica: Annotated[
        str | None,
        option("what this server is called among them; without it the host's name and the port", metavar="NAME"),
    ] = None
    log_level: Annotated[LogLevel, option("debug, info, warning or error", metavar="LEVEL")] = "info"


class Address(NamedTuple):
    host: str
    port: int

    @property
    def is_loopback(self) -> bool:
        return self.host in LOOPBACK

    @property
    def url(self) -> str:
        """Where a browser on this machine finds it."""
        host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(self.host, self.host)
        return f"http://[{host}]:{self.port}" if ":" in host else f"http://{host}:{self.port}"


def address_of(settings: Settings) -> Address:
    """The address to bind. Raises SettingError."""
    text = settings.listen
    host, _, port = text.rpartition(":")
    if not host and text.isdigit():
        host, port = "127.0.0.1", text
    host = host.removeprefix("[").removesuffix("]")
    if not host or not port.isdigit() or int(port) > 65535:  # noqa: PLR2004 - the highest port there is
        raise SettingError(f'listen: "{text}" is no HOST:PORT; write for example 127.0.0.1:{DEFAULT_PORT}')
    return Address(host, int(port))


def signing_proxies(settings: Settings) -> tuple[Network, ...]:
    """Whose word counts on who somebody is: those that are named, and not whoever is on this machine. SettingError."""
    if settings.auth_header_from:
        return networks_of(settings.auth_header_from, "auth_header_from")
    return networks_of(settings.trusted_proxies, "trusted_proxies")


def believed_proxies(settings: Settings) -> tuple[Network, ...]:
    """Whose word counts on where somebody comes from, and whether by https. Raises SettingError."""
    named = networks_of(settings.trusted_proxies, "trusted_proxies") or THIS_MACHINE
    return (*named, *networks_of(settings.auth_header_from, "auth_header_from"))


def check(settings: Settings) -> None:
    """Raises SettingError for what the types cannot say."""
    address_of(settings)
    if not 0 < settings.flush_interval <= FLUSH_SECONDS_MAX:
        raise SettingError(f"flush_interval: must be more than 0s and at most {FLUSH_SECONDS_MAX:g}s")
    _check_keeping(settings)
    if settings.tls_cert is None and (settings.tls_key or settings.tls_client_ca):
        raise SettingError("tls_cert: is missing; tls_key and tls_client_ca are of no use without it")
    _check_people(settings)
    if settings.incidents_keep < 1:
        raise SettingError("incidents_keep: must be at least 1")
    if settings.external_url is not None and not _is_http(settings.external_url):
        raise SettingError(f'external_url: "{settings.external_url}" is no http:// or https:// address')
    _check_sending(settings)
    _check_cluster(settings)


def _check_people(settings: Settings) -> None:
    if not SESSION_SECONDS_MIN <= settings.session_idle <= settings.session_length:
        raise SettingError("session_idle: must be at least 1m, and at most as long as session_length")
    by_oidc, by_header = settings.oidc_issuer is not None, settings.auth_header is not None
    if by_oidc and not _is_http(settings.oidc_issuer or ""):
        raise SettingError(f'oidc_issuer: "{settings.oidc_issuer}" is no https:// address')
    if by_oidc != (settings.oidc_client_id is not None):
        raise SettingError("oidc_issuer and oidc_client_id: one is of no use without the other")
    if by_oidc and "openid" not in settings.oidc_scopes:
        raise SettingError('oidc_scopes: must hold "openid", else the provider says of nobody who it is')
    if settings.auth_header_from and not by_header:
        raise SettingError("auth_header_from: is of no use without auth_header")
    if by_header and not signing_proxies(settings):
        raise SettingError(
            "auth_header: is of no use without auth_header_from or trusted_proxies; the header of whom is believed?"
        )
    for name in ("auth_header", "auth_role_header"):
        if getattr(settings, name) is not None:
            check_header(getattr(settings, name), name)
    believed_proxies(settings)
    if (by_oidc or by_header) and not (settings.readers or settings.operators):
        raise SettingError(
            "readers and operators: nobody could look; name groups, or * for everybody whom the provider or proxy knows"
        )


def _check_cluster(settings: Settings) -> None:
    for name in ("cluster_site", "cluster_replica"):
        text = getattr(settings, name)
        if text is not None and not _PLAIN_NAME.fullmatch(text):
            raise SettingError(f'{name}: "{text}" is no name of letters, digits, "-" and "_", of at most 100')
    if settings.cluster_nats is None:
        return
    if not is_postgres(settings.db or ""):
        raise SettingError(
            "cluster_nats: servers that act as one share a PostgreSQL; name it with --db postgresql://..."
        )
    if not all(_is_nats(one) for one in settings.cluster_nats.split(",")):
        raise SettingError("cluster_nats: is no nats:// or tls:// address (not shown: it may be secret)")


def _is_nats(address: str) -> bool:
    try:
        parts = urlsplit(address.strip())
        return parts.scheme in {"nats", "tls"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


def _check_keeping(settings: Settings) -> None:
    """What is coarser is all that is left of what is finer, so it is kept for at least as long."""
    for shorter, longer in (("history_raw_keep", "history_10s_keep"), ("history_10s_keep", "history_1m_keep")):
        if getattr(settings, shorter) > getattr(settings, longer):
            raise SettingError(f"{longer}: must be at least as long as {shorter}")


def _check_sending(settings: Settings) -> None:
    if settings.remote_write_url is not None and not _is_http(settings.remote_write_url):
        raise SettingError("remote_write_url: is no http:// or https:// address (not shown: it may be secret)")
    if settings.otlp_endpoint is not None and not _is_http(settings.otlp_endpoint):
        raise SettingError(f'otlp_endpoint: "{settings.otlp_endpoint}" is no http:// or https:// address')
    for name in ("remote_write_interval", "otlp_interval"):
        if not SENDING_SECONDS_MIN <= getattr(settings, name) <= SENDING_SECONDS_MAX:
            raise SettingError(f"{name}: must be from {SENDING_SECONDS_MIN:g}s to {SENDING_SECONDS_MAX:g}s")


def _is_http(address: str) -> bool:
    try:
        parts = urlsplit(address)
        has_port = parts.port != 0
        name = (parts.hostname or "").encode("idna").decode("idna")
    except ValueError:  # "http://[": no IPv6 address; "http://a:99999": no port; "http://xn--a": no name
        return False
    return parts.scheme in {"http", "https"} and bool(name) and has_port


def database_address(settings: Settings, environ: Mapping[str, str] = os.environ) -> str:
    """Where the database is: the path of a SQLite file, to be taken as it is, or a SQLAlchemy URL (`is_url`)."""
    if settings.db is None:
        return str(_data_folder(environ) / "oomwatch.db")
    return settings.db if is_url(settings.db) else str(Path(settings.db).expanduser())


def is_url(address: str) -> bool:
    """Whether the address of a database is a URL, in which some letters mean more than themselves."""
    return _URL.match(address) is not None


def is_postgres(address: str) -> bool:
    """Whether the address of a database is a PostgreSQL's."""
    return is_url(address) and address.startswith("postgres")


def _data_folder(environ: Mapping[str, str]) -> Path:
    return Path(environ.get("XDG_DATA_HOME") or Path("~/.local/share").expanduser()) / "oomwatch"


def keeps_incidents_in_database(settings: Settings) -> bool:
    """In a PostgreSQL, where every server and command finds them, unless a folder is named."""
    return settings.incidents is None and is_postgres(database_address(settings))


def incidents_path(settings: Settings, database: Path | None, environ: Mapping[str, str] = os.environ) -> Path:
    """The folder of incident reports: beside the database where that is a file, else in the user's data folder."""
    if settings.incidents is not None:
        return settings.incidents
    return (_data_folder(environ) if database is None else database.parent) / "incidents"


def is_shipped(rules: Path) -> bool:
    """Whether a rule file that rules_path() found is the one that comes with oomwatch, and not somebody's own."""
    return rules.is_absolute() and rules.parent in (Path(__file__).parent, Path(__file__).parents[2])


def rules_path(settings: Settings) -> Path:
    """The rule file in force. Raises SettingError where there is none."""
    if settings.rules is not None:
        return settings.rules
    # In a checkout the shipped file lies at its root; the wheel holds a copy beside this module.
    package = Path(__file__).parent
    for candidate in (Path("alerts.yaml"), package / "alerts.yaml", package.parent.parent / "alerts.yaml"):
        if candidate.is_file():
            return candidate
    raise SettingError("rules: there is no alerts.yaml here; name one with --rules FILE")
