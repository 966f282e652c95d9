"""Takes what the server asks for before a process dies, does what is permitted, and tells what came of it.

Each act has a thread of its own, so that a hook that asks for a checkpoint need not wait for a snapshot, and so that
nothing of it touches the sampling. What is refused is told as well: the alert says then how to permit it.
"""

import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Callable

from oomwatch import wire
from oomwatch.oserror import with_place
from oomwatch_agent.acts.cabinet import Cabinet
from oomwatch_agent.acts.hook import hook
from oomwatch_agent.acts.permit import Permit
from oomwatch_agent.acts.snapshot import memory_snapshot
from oomwatch_agent.acts.stacks import stacks
from oomwatch_agent.acts.task import Deed, Done, Task
from oomwatch_agent.acts.watched import Watched
from oomwatch_agent.probe.asking import Asking

DEEDS: dict[str, Deed] = {"memory_snapshot": memory_snapshot, "stacks": stacks, "hook": hook}
PAUSE_SECONDS = 600.0  # between two alerts' acts on one GPU
RUNNING_MAX = 64  # acts at once: three on each of sixteen GPUs, and room
IDS_KEPT = 1000

logger = logging.getLogger(__name__)

Tell = Callable[[wire.Event], None]


class Desk:
    """`take` never waits. `tell` is called from other threads."""

    def __init__(
        self,
        permit: Permit,
        watched: Watched,
        asking: Asking,
        tell: Tell,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._permit = permit
        self._watched = watched
        self._asking = asking
        self._tell = tell
        self._clock = clock
        self._cabinet = Cabinet(permit.folder)
        self._seen: OrderedDict[str, None] = OrderedDict()
        self._done_at: dict[str | None, float] = {}
        self._running = threading.Semaphore(RUNNING_MAX)
        self._threads: list[threading.Thread] = []
        self._stopping = threading.Event()

    def take(self, request: wire.ActRequest) -> None:
        """Do what is asked, unless this alert's acts were done before."""
        if request.id in self._seen:
            return
        self._remember(request.id)
        acts = list(dict.fromkeys(request.acts))
        logger.warning("%s", _printable(f"the server asks for {', '.join(acts)} because of alert {_named(request)}"))
        permitted = [act for act in acts if self._is_permitted(act, request)]
        if permitted:
            self._note(request.gpu)
            self._start(lambda: self._do_set(permitted, request))

    def close(self, within_seconds: float = 2.0) -> None:
        """End what is going on."""
        self._stopping.set()
        deadline = time.monotonic() + within_seconds
        for thread in list(self._threads):
            thread.join(max(0.0, deadline - time.monotonic()))

    def _is_permitted(self, act: str, request: wire.ActRequest) -> bool:
        refusal = self._permit.refusal(act) or self._too_soon(request.gpu)
        if refusal is not None:
            self._report(act, request, Done(ok=False, detail=refusal), 0.0)
        return refusal is None

    def _too_soon(self, gpu: str | None) -> str | None:
        done_at = self._done_at.get(gpu)
        if done_at is None or self._clock() - done_at >= PAUSE_SECONDS:
            return None
        where = "this node" if gpu is None else f"GPU {gpu}"
        return f"not done: acts were done on {where} less than {PAUSE_SECONDS / 60:g} minutes ago"

    def _note(self, gpu: str | None) -> None:
        now = self._clock()
        self._done_at = {place: at for place, at in self._done_at.items() if now - at < PAUSE_SECONDS}
        self._done_at[gpu] = now

    def _remember(self, request_id: str) -> None:
        self._seen[request_id] = None
        while len(self._seen) > IDS_KEPT:
            self._seen.popitem(last=False)

    def _do_set(self, acts: list[str], request: wire.ActRequest) -> None:
        try:
            folder = self._cabinet.open_set(request.alert)
        except OSError as error:
            for act in acts:
                self._report(act, request, Done(ok=False, detail=f"no file can be kept: {with_place(error)}"), 0.0)
            return
        task = Task(
            request=request,
            permit=self._permit,
            cabinet=self._cabinet,
            folder=folder,
            pids=tuple(self._watched.processes(request.gpu, request.alert.labels.get("run"))),
            asking=self._asking,
            stopping=self._stopping,
        )
        for act in acts:
            self._start(lambda act=act: self._do(act, task))  # type: ignore[misc]

    def _do(self, act: str, task: Task) -> None:
        if not self._running.acquire(blocking=False):
            self._report(act, task.request, Done(ok=False, detail=f"{RUNNING_MAX} acts are going on already"), 0.0)
            return
        began_at = time.monotonic()
        try:
            done = DEEDS[act](task)
        except Exception as error:  # whatever it is, the agent goes on
            logger.exception("the act %s failed in an unforeseen way", act)
            done = Done(ok=False, detail=f"{type(error).__name__}: {error}")
        finally:
            self._running.release()
        self._report(act, task.request, done, time.monotonic() - began_at)

    def _report(self, act: str, request: wire.ActRequest, done: Done, seconds: float) -> None:
        """To the agent's own log, which is the node's record of it, and to the server."""
        level = logging.INFO if done.ok else logging.WARNING
        logger.log(level, "%s", _printable(f"act {act} for alert {_named(request)}: {done.detail}{_at(done)}"))
        path = None if done.path is None else str(done.path)
        detail = done.detail[: wire.TEXT_CHARS_MAX]
        body = wire.ActDone(id=request.id, act=act, ok=done.ok, detail=detail, path=path, seconds=round(seconds, 3))
        self._tell(wire.Event(seq=0, at=time.time(), body=body, run=request.alert.labels.get("run")))

    def _start(self, work: Callable[[], None]) -> None:
        self._threads = [thread for thread in self._threads if thread.is_alive()]
        thread = threading.Thread(target=work, name="oomwatch act", daemon=True)
        self._threads.append(thread)
        thread.start()


def _named(request: wire.ActRequest) -> str:
    place = f" of GPU {request.gpu}" if request.gpu is not None else ""
    return f"{request.alert.alert} ({request.id}){place}"


def _printable(text: str) -> str:
    """What another machine sent makes no lines of its own in the log."""
    return "".join(letter if letter.isprintable() else "?" for letter in text)


def _at(done: Done) -> str:
    return f" - {done.path}" if done.path is not None else ""
