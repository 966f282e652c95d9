"""The senders that the settings ask for."""

import socket
from collections.abc import Callable

from oomwatch import __version__
from oomwatch.notify import http
from oomwatch.notify.secret import Secret
from oomwatch.senders.otlp import Otlp
from oomwatch.senders.remote_write import RemoteWrite, remote_client
from oomwatch.senders.sending import OwnUp, Read, always
from oomwatch.settings import Settings, address_of


def instance_of(settings: Settings) -> str:
    """Whose series these are: host and port; of several servers the site.

    Else there would be two of each series, for as long as a store looks back, whenever another comes to lead.
    """
    if settings.cluster_nats is not None:
        return settings.cluster_site
    return f"{socket.gethostname()}:{address_of(settings).port}"


def chosen(
    settings: Settings, read: Read, own_up: OwnUp, started_at: float, on_duty: Callable[[], bool] = always
) -> list[RemoteWrite | Otlp]:
    """Made, and not yet run; of several servers, one is `on_duty`.

    Raises SettingError where an extra is missing, or an address is none.
    """
    instance = instance_of(settings)
    found: list[RemoteWrite | Otlp] = []
    if settings.remote_write_url is not None:
        http.check_url(Secret(settings.remote_write_url), "remote_write_url")
        found.append(
            RemoteWrite(
                remote_client(settings.remote_write_token),
                settings.remote_write_url,
                read,
                own_up,
                labels={"job": "oomwatch", "instance": instance},
                interval_seconds=settings.remote_write_interval,
                on_duty=on_duty,
            )
        )
    if settings.otlp_endpoint is not None:
        found.append(
            Otlp(
                settings.otlp_endpoint,
                read,
                own_up,
                resource={
                    "service.name": "oomwatch", "service.version": __version__, "service.instance.id": instance
                },
                interval_seconds=settings.otlp_interval,
                started_at=started_at,
                on_duty=on_duty,
            )
        )  # fmt: skip
    return found
