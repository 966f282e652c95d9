"""uvicorn, as this server runs it."""

import ssl
from pathlib import Path
from types import FrameType
from typing import Any

import uvicorn

from oomwatch.options import SettingError
from oomwatch.settings import Settings

FRAME_BYTES_MAX = 8 * 2**20
PING_SECONDS = 20.0  # docs/reference/wire-protocol.md, "Liveness"
STOP_SECONDS = 5


class Program(uvicorn.Server):
    """Ends when a signal asks for it, and leaves the process to whoever ran it."""

    def __init__(self, app: Any, settings: Settings) -> None:  # noqa: ANN401 - an ASGI application
        super().__init__(
            uvicorn.Config(
                app,
                **tls(settings),
                ws="websockets-sansio",
                ws_max_size=FRAME_BYTES_MAX,
                ws_ping_interval=PING_SECONDS,
                ws_ping_timeout=PING_SECONDS,
                ws_per_message_deflate=False,  # costs more CPU than everything else together
                lifespan="off",
                access_log=False,
                log_config=None,
                server_header=False,
                proxy_headers=False,  # app.py sees to it: who may speak for others is for the settings to say
                timeout_graceful_shutdown=STOP_SECONDS,
            )
        )

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:  # noqa: ARG002 - uvicorn's signature
        """A signal asks us to end; the second one, at once.

        uvicorn's own would raise the signal again once it is done, and so end the process before the parts are stopped.
        """
        self.force_exit = self.should_exit
        self.should_exit = True


def tls(settings: Settings) -> dict[str, Any]:
    """uvicorn's settings for TLS. Raises SettingError where the files cannot be used."""
    if settings.tls_cert is None:
        return {}
    _try_certificate(settings.tls_cert, settings.tls_key, settings.tls_client_ca)
    files = {"ssl_certfile": str(settings.tls_cert), "ssl_keyfile": str(settings.tls_key or settings.tls_cert)}
    if settings.tls_client_ca is None:
        return files
    return {**files, "ssl_ca_certs": str(settings.tls_client_ca), "ssl_cert_reqs": ssl.CERT_REQUIRED}


def _try_certificate(certificate: Path, key: Path | None, client_ca: Path | None) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        context.load_cert_chain(certificate, key, password=_no_password)
    except (OSError, ValueError) as error:
        raise SettingError(
            f"tls_cert: {certificate} and its key cannot be used: {error}; both are PEM files"
        ) from error
    try:
        if client_ca is not None:
            context.load_verify_locations(client_ca)
    except (OSError, ValueError) as error:
        raise SettingError(f"tls_client_ca: {client_ca} cannot be used: {error}; it is a PEM file") from error


def _no_password() -> str:
    raise ValueError("the key is encrypted, and nobody is there to type its password")
