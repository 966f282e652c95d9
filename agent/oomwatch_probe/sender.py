"""From this process to the agents of its node: one datagram, never waited for.

The socket lives for the length of one send. A program that forks, or closes every file it has (daemons do), or counts
them, meets nothing of ours; and an agent that was restarted is found again by itself.
"""

from __future__ import annotations

import json
import os
import stat
from _socket import AF_UNIX, SOCK_DGRAM, socket  # not `socket`: programs replace what is in there, gevent for one
from typing import Any

# Where agents listen: one that runs as root for everybody, and each user's own. The agent has the same two.
ROOT_SOCKET = "/run/oomwatch/probe.sock"
USER_SOCKET = "/tmp/oomwatch-{uid}/probe.sock"  # noqa: S108 - its folder must belong to the user, see below
MAX_MESSAGE_BYTES = 16384


def listeners() -> list[str]:
    """The sockets there are to send to: the one of OOMWATCH_PROBE_SOCKET, else those that can be trusted."""
    named = os.environ.get("OOMWATCH_PROBE_SOCKET")
    if named:
        return [named] if os.path.exists(named) else []
    uid = os.geteuid()
    places = ((ROOT_SOCKET, 0), (USER_SOCKET.format(uid=uid), uid))
    return [path for path, owner in places if _belongs_to(path, owner)]


def message(identity: dict[str, Any], devices: list[dict[str, Any]], answers: list[dict[str, Any]]) -> bytes:
    """One datagram: JSON of who this is, of each of its devices, and of what it was asked to do, if anything."""
    more = {"acts": answers} if answers else {}
    return json.dumps(dict(identity, devices=devices, **more), separators=(",", ":")).encode("ascii")


def send(content: bytes, paths: list[str]) -> int:
    """How many agents took it. One that is gone, or whose queue is full, misses this second's message."""
    taken = 0
    if len(content) > MAX_MESSAGE_BYTES:
        return taken
    sock = socket(AF_UNIX, SOCK_DGRAM)
    try:
        sock.setblocking(False)
        for path in paths:
            try:
                sock.sendto(content, path)
                taken += 1
            except OSError:
                continue
    finally:
        sock.close()
    return taken


def _belongs_to(path: str, uid: int) -> bool:
    """Whether a socket is in a folder that only its owner can put things into: in /tmp anybody can make a folder."""
    try:
        folder = os.lstat(os.path.dirname(path))
        if not stat.S_ISDIR(folder.st_mode) or folder.st_uid != uid or folder.st_mode & 0o022:
            return False
        return stat.S_ISSOCK(os.lstat(path).st_mode)
    except OSError:
        return False
