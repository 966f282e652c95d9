"""The socket that a server listens on, for the server and for who checks whether it could be had."""

import errno
import socket

from oomwatch.options import SettingError
from oomwatch.oserror import with_remedy
from oomwatch.settings import Address

BACKLOG = 1024  # every agent of a fleet connects in the same second after a restart


def bind(address: Address) -> socket.socket:
    """A listening socket. Raises SettingError with a sentence."""
    try:
        family, kind, protocol, _, place = socket.getaddrinfo(
            address.host, address.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listener = socket.socket(family, kind, protocol)
    except OSError as error:
        raise SettingError(f"listen: cannot use the address {address.host}: {with_remedy(error)}") from error
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(place)
        listener.listen(BACKLOG)
        listener.setblocking(False)
    except OSError as error:
        listener.close()
        raise SettingError(_why_not(error, address)) from error
    return listener


def _why_not(error: OSError, address: Address) -> str:
    at = f"{address.host}:{address.port}"
    if error.errno == errno.EADDRINUSE:
        other = f"{address.host}:{address.port + 1}"
        return f"listen: {at} is taken by another program; stop it, or take another port, for example --listen {other}"
    if error.errno == errno.EACCES:
        return f"listen: {at} needs root; take a port above 1023"
    return f"listen: cannot bind {at}: {with_remedy(error)}"
