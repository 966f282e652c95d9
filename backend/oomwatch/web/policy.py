"""The headers by which browsers keep the page safe. Every answer has them."""

from collections.abc import Mapping
from types import MappingProxyType

from starlette.datastructures import MutableHeaders
from starlette.types import Message, Send

# Plotly writes style attributes of all kinds, so these cannot be forbidden: each styles its own element and no other.
# Style sheets come from here alone, but for two of Plotly's: an empty one, which it fills by calls, and MapLibre's.
PLOTLY_STYLES = (
    "'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=' 'sha256-ji27qzEtxXZW+7dun6UwjHXJ18e6WAin1VvNtkzIE/o='"
)
# What a page that shows charts has no use for, should a script ever get into it.
UNUSED = (
    "accelerometer", "camera", "display-capture", "geolocation", "gyroscope", "hid", "magnetometer", "microphone",
    "midi", "payment", "publickey-credentials-get", "serial", "usb", "xr-spatial-tracking",
)  # fmt: skip

SECURITY_HEADERS = {
    # "style-src" is for browsers of before 2023, which do not know the two that follow. Images are exported charts.
    # 'self' is the WebSocket of the same host too.
    "Content-Security-Policy": (
        "default-src 'self'; img-src 'self' data: blob:; style-src 'self' 'unsafe-inline'; "
        f"style-src-elem 'self' {PLOTLY_STYLES}; style-src-attr 'unsafe-inline'; "
        "connect-src 'self'; object-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": ", ".join(f"{feature}=()" for feature in UNUSED),
}

# A browser that was once told so uses https for every port of the host: only where the host's own port of https is ours
# can nothing else on it break.
HSTS = {"Strict-Transport-Security": "max-age=31536000"}
NONE: Mapping[str, str] = MappingProxyType({})
HTTPS_PORT = "443"


def transport_headers(host: str, *, is_https: bool) -> Mapping[str, str]:
    """For an answer to whoever asked for this Host."""
    port = host.rpartition(":")[2] if not host.endswith("]") and ":" in host else HTTPS_PORT
    return HSTS if is_https and port == HTTPS_PORT else NONE


def with_headers(send: Send, more: Mapping[str, str] = NONE) -> Send:
    """Puts the headers that keep the page safe on every answer."""

    async def send_with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in (SECURITY_HEADERS | dict(more)).items():
                headers.setdefault(name, value)
        await send(message)

    return send_with_headers
