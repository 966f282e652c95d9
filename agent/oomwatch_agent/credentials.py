"""By what the agent knows its server, and the server its agent: a token, and certificates."""

import ssl
from pathlib import Path
from typing import Any, NamedTuple

from oomwatch.oserror import in_words


class Credentials(NamedTuple):
    """Files are read at each connection, so that renewed ones count from the next on."""

    token: str | None = None
    tls_ca: Path | None = None
    tls_cert: Path | None = None
    tls_key: Path | None = None

    def options(self, url: str) -> dict[str, Any]:
        """What websockets' connect takes of this. Raises CredentialsError."""
        options: dict[str, Any] = {}
        if self.token:
            options["additional_headers"] = {"Authorization": f"Bearer {self.token}"}
        if url.startswith("wss:") and (self.tls_ca or self.tls_cert):
            options["ssl"] = self._context()
        return options

    def _context(self) -> ssl.SSLContext:
        try:
            context = ssl.create_default_context(cafile=self.tls_ca)
        except (OSError, ValueError) as error:
            raise CredentialsError(
                f"tls_ca: {self.tls_ca} cannot be used: {in_words(error)}; it is a PEM file"
            ) from error
        if self.tls_cert is not None:
            try:
                context.load_cert_chain(self.tls_cert, self.tls_key, password=_no_password)
            except (OSError, ValueError) as error:
                raise CredentialsError(
                    f"tls_cert: {self.tls_cert} and its key cannot be used: {in_words(error)}; both are PEM files"
                ) from error
        return context


class CredentialsError(ValueError):
    """A file that cannot be used, in a sentence."""


def _no_password() -> str:
    raise ValueError("the key is encrypted, and nobody is there to type its password")
