"""Ports of loopback for programs that are to be told theirs."""

import contextlib
import socket


def free_port() -> int:
    return free_ports(1)[0]


def free_ports(count: int) -> list[int]:
    """Different ones. Nobody has them now: another program may take one before it is used."""
    with contextlib.ExitStack() as held:
        listeners = [held.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(count)]
        return [int(listener.getsockname()[1]) for listener in listeners]
