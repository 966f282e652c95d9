"""What systemd is told of a service of Type=notify: that it is ready, that it still works, that it goes down.

The protocol is a datagram to the socket that $NOTIFY_SOCKET names (sd_notify(3), sd_watchdog_enabled(3)). Where systemd
did not start this process nothing is told to anyone.
"""

import asyncio
import logging
import os
import socket
from collections.abc import Callable, Mapping, Sequence

from oomwatch.oserror import in_words

READY, WORKING, STOPPING = "READY=1", "WATCHDOG=1", "STOPPING=1"
STARTING = "EXTEND_TIMEOUT_USEC=60000000"  # it is not ready within TimeoutStartSec=, and works on it

logger = logging.getLogger(__name__)


def tell(state: str, environ: Mapping[str, str] = os.environ) -> None:
    """A systemd that does not listen is its own affair."""
    address = environ.get("NOTIFY_SOCKET", "")
    if not address.startswith(("/", "@")):
        return
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK) as line:
            line.connect(address.replace("@", "\0", 1) if address.startswith("@") else address)
            line.send(state.encode())
    except OSError as error:
        logger.debug("systemd could not be told %s: %s", state, in_words(error))


def watchdog_seconds(environ: Mapping[str, str] = os.environ) -> float | None:
    """After how long without a word (WatchdogSec=) systemd starts the service again; None where it does not."""
    microseconds = environ.get("WATCHDOG_USEC", "")
    for_us = environ.get("WATCHDOG_PID", str(os.getpid())) == str(os.getpid())
    return int(microseconds) / 1e6 if microseconds.isdecimal() and int(microseconds) and for_us else None


async def keep_telling(ailing: Callable[[], Sequence[str]], limit_seconds: float) -> None:
    """That it works, twice in each limit, until it does not. Another start mends what `ailing` gives."""
    silent = False
    while True:
        problems = ailing()
        if not problems:
            tell(WORKING)
        elif not silent:
            logger.critical("systemd is told no more that the server works, and may start it again: %s", problems[0])
        silent = bool(problems)
        await asyncio.sleep(limit_seconds / 2)
