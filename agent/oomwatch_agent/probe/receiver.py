"""The Unix datagram socket that probes send to, and the thread that empties it.

The kernel queues few datagrams for a socket (net.unix.max_dgram_qlen, often 10) and a probe never waits, so somebody
must always be receiving. Of each process the latest datagram is kept. The kernel says which process sent it, in this
agent's own numbering of processes: nobody can speak for another.
"""

import contextlib
import os
import select
import socket
import stat
import struct
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from oomwatch.oserror import in_words
from oomwatch_agent.probe.report import MAX_DATAGRAM_BYTES

# Where probes look for an agent (oomwatch_probe.sender has the same two).
ROOT_SOCKET = Path("/run/oomwatch/probe.sock")
USER_SOCKET = "/tmp/oomwatch-{uid}/probe.sock"  # noqa: S108 - its folder is made for this user alone, and checked

MAX_SENDERS = 1024
# After each look the receiver rests for a moment, so that many senders, and a flood, cost little. Where the kernel
# queues ten datagrams, two hundred a second still come through: 64 probes send 64.
_BATCH = 64
_PAUSE_SECONDS = 0.05
_CREDENTIALS = struct.Struct("=iII")  # struct ucred: pid, uid, gid
_CREDENTIALS_SPACE = socket.CMSG_SPACE(_CREDENTIALS.size)
_LONGEST_PATH_BYTES = 107  # sockaddr_un


class Datagram(msgspec.Struct, frozen=True):
    """What a process sent. `pid` is the kernel's word; None where the process is of a namespace that is not seen."""

    content: bytes
    pid: int | None


class ProbeSocket:
    """Bound while it exists. Raises OSError where it cannot be: with a sentence, where a person can do something."""

    def __init__(self, path: Path, *, for_everybody: bool) -> None:
        self.path = path
        self._latest: dict[int | bytes, Datagram] = {}
        self._lock = threading.Lock()
        self._socket = _bound(path, 0o666 if for_everybody else 0o600)
        self._inode = path.stat().st_ino
        self._stop_reading, self._stop_writing = os.pipe()
        self._thread = threading.Thread(target=self._receive, name="oomwatch probe receiver", daemon=True)
        self._thread.start()

    def take(self) -> list[Datagram]:
        """The latest of every process that has sent something since the last time."""
        with self._lock:
            taken, self._latest = list(self._latest.values()), {}
        return taken

    def in_place(self) -> bool:
        """Whether the path still leads here. Somebody may have cleared its folder."""
        try:
            return self.path.stat().st_ino == self._inode
        except OSError:
            return False

    def close(self) -> None:
        """Take the socket away, unless another is in its place by now."""
        os.close(self._stop_writing)
        self._thread.join()
        if self.in_place():
            self.path.unlink(missing_ok=True)
        self._socket.close()
        os.close(self._stop_reading)

    def _receive(self) -> None:
        stopped, anything = select.poll(), select.poll()
        for waiting in (stopped, anything):
            waiting.register(self._stop_reading, select.POLLIN)
        anything.register(self._socket, select.POLLIN)
        while anything.poll():
            self._receive_batch()
            if stopped.poll(_PAUSE_SECONDS * 1000):
                return

    def _receive_batch(self) -> None:
        with contextlib.suppress(OSError):  # nothing more for now
            for _ in range(_BATCH):
                content, ancillary, flags, _ = self._socket.recvmsg(MAX_DATAGRAM_BYTES, _CREDENTIALS_SPACE)
                if not flags & socket.MSG_TRUNC:
                    self._keep(Datagram(content, _sender(ancillary)))

    def _keep(self, datagram: Datagram) -> None:
        key = datagram.content if datagram.pid is None else datagram.pid
        with self._lock:
            if key in self._latest or len(self._latest) < MAX_SENDERS:
                self._latest[key] = datagram


class Place(NamedTuple):
    """Where an agent may listen: for the probes of every user, or of its own only."""

    path: Path
    for_everybody: bool


def usual_places(uid: int) -> list[Place]:
    """Best first. An agent that runs as root listens for everybody; where /run cannot be written, for root at least."""
    own = Place(Path(USER_SOCKET.format(uid=uid)), for_everybody=False)
    return [Place(ROOT_SOCKET, for_everybody=True), own] if uid == 0 else [own]


def listen_at(path: Path) -> ProbeSocket:
    """At a place that a person named, for everybody: it was named in order to be shared. Raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    return ProbeSocket(path, for_everybody=True)


def listen(places: Sequence[Place], uid: int) -> ProbeSocket:
    """At the first of the places that works. Raises OSError with the reason of the last."""
    *better, last = places
    for place in better:
        with contextlib.suppress(OSError):
            return _listen_in_own_folder(place, uid)
    return _listen_in_own_folder(last, uid)


def _listen_in_own_folder(place: Place, uid: int) -> ProbeSocket:
    try:
        _make_own(place.path.parent, 0o755 if place.for_everybody else 0o700, uid)
        return ProbeSocket(place.path, for_everybody=place.for_everybody)
    except OSError as error:
        raise OSError(f"{place.path}: {in_words(error)}") from error


def _make_own(folder: Path, mode: int, uid: int) -> None:
    """Make the folder, or see that it is ours: in /tmp, anybody can have made it."""
    folder.mkdir(mode, exist_ok=True)
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != uid:
        raise OSError(f"{folder} is no folder of user {uid}")
    folder.chmod(mode)


def _bound(path: Path, mode: int) -> socket.socket:
    if len(os.fsencode(path)) > _LONGEST_PATH_BYTES:
        raise OSError(f"a socket's path has {_LONGEST_PATH_BYTES} bytes at most; name a shorter one")
    _clear(path)
    made = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        made.bind(str(path))
        _set_mode(path, mode)
    except OSError:
        made.close()
        raise
    return made


def _set_mode(path: Path, mode: int) -> None:
    """Of the socket, and of nothing that somebody may have put in its place since: chmod follows links."""
    place = os.open(path, os.O_PATH | os.O_NOFOLLOW)
    try:
        if not stat.S_ISSOCK(os.fstat(place).st_mode):
            raise OSError("something else was put in the socket's place")
        Path(f"/proc/self/fd/{place}").chmod(mode)
    finally:
        os.close(place)


def _clear(path: Path) -> None:
    """Remove the socket that a killed agent left behind. Raises OSError where something else is in the way."""
    try:
        found = path.lstat()
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(found.st_mode):
        raise OSError("there is a file of that name that is no socket")
    with contextlib.closing(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)) as other:
        try:
            other.connect(str(path))
        except ConnectionRefusedError:
            path.unlink()
            return
    raise OSError("another agent listens there; give one of the two a socket of its own with --probe PATH")


def _sender(ancillary: list[tuple[int, int, bytes]]) -> int | None:
    for level, kind, content in ancillary:
        if (level, kind) == (socket.SOL_SOCKET, socket.SCM_CREDENTIALS) and len(content) == _CREDENTIALS.size:
            pid: int = _CREDENTIALS.unpack(content)[0]
            return pid or None
    return None
