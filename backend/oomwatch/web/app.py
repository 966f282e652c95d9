"""The wiring: which parts the server is made of, in which order they start and stop, and which path leads where."""

import asyncio
import contextlib
import functools
import logging
import os
import signal
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from fastapi import FastAPI
from starlette.routing import Mount, Route, WebSocketRoute

from oomwatch import __version__, wire
from oomwatch.export.chosen import chosen
from oomwatch.hub import Hub
from oomwatch.incident.clerk import Clerk
from oomwatch.incident.desk import Desk
from oomwatch.incident.folder import Folder
from oomwatch.metrics.page import Metrics, rooms_with
from oomwatch.notify import http
from oomwatch.notify.heartbeat import Heartbeat, Target
from oomwatch.rulefile import RuleFile, read_rules
from oomwatch.service.journal import Entry, Journal
from oomwatch.service.rulewatch import RuleWatch, Stamp, stamp
from oomwatch.service.service import BEAT_SECONDS, Service
from oomwatch.settings import Settings, check, database_url, incidents_path, rules_path
from oomwatch.store.store import Batch, Store
from oomwatch.store.store import Entry as StoreEntry
from oomwatch.trace import TraceWriter
from oomwatch.web import api, health, systemd
from oomwatch.web.curves import Curves
from oomwatch.web.feeds import Feeds, Tellers
from oomwatch.web.feedwatch import FeedWatch
from oomwatch.web.guard import Guard
from oomwatch.web.herald import Herald
from oomwatch.web.ingest import agent_endpoint
from oomwatch.web.live import live_endpoint
from oomwatch.web.parts import Parts, run_in
from oomwatch.web.pool import WatchedPool
from oomwatch.web.restart import restore
from oomwatch.web.ruledesk import RuleDesk
from oomwatch.web.ruleparts import RuleParts
from oomwatch.web.static import PageFiles, page, plotly
from oomwatch.web.tryouts import Tryouts
from oomwatch.web.upkeep import keep_pasts, keep_up
from oomwatch.web.wellbeing import ailing, silencing
from oomwatch_frontend import STATIC

T = TypeVar("T")

READ_THREADS = 2  # a chart over a week must not stand in the way of a short question

CANCEL_SECONDS = 1.0

logger = logging.getLogger(__name__)


def create_app(parts: Parts) -> FastAPI:
    """The paths of a running server."""
    app = FastAPI(
        title="oomwatch",
        version=__version__,
        description="Warns before a GPU or host runs out of memory.",
        openapi_url="/api/v1/openapi.json",
        docs_url=None,  # its page would load scripts from elsewhere
        redoc_url=None,
    )
    app.state.parts = parts
    api.install(app)
    app.router.routes += [
        WebSocketRoute("/ws/agent", agent_endpoint),
        WebSocketRoute("/ws/live", live_endpoint),
        Route("/metrics", health.metrics),
        Route("/healthz", health.healthz),
        Route("/readyz", health.readyz),
        Route("/", page),
        Route("/vendor/plotly.min.js", plotly),
        Mount("/static", PageFiles(directory=STATIC)),
    ]
    app.add_middleware(Guard, settings=parts.settings)
    return app


@contextlib.asynccontextmanager
async def running(settings: Settings, *, clock: Callable[[], float] = time.time) -> AsyncIterator[Parts]:
    """The parts of a server, started and, at the end, stopped.

    Raises SettingError, RuleFileError, StoreError or OSError where it cannot start.
    """
    check(settings)
    path = rules_path(settings)
    seen = stamp(path)
    rules = read_rules(path)
    async with contextlib.AsyncExitStack() as stack:
        parts = await _start(settings, rules, clock, stack)
        parts.feeds.attach(lambda: not silencing(parts))
        stack.push_async_callback(keep_pasts, parts)
        watch = _rule_watch(parts, path, seen, rules)
        parts = parts._replace(rules=_rule_parts(parts, path, watch))
        work = {
            "journal": parts.journal.run(),
            "beat": _beat(parts.service),
            "rule watch": watch.run(),
            "upkeep": keep_up(parts),
            "feed watch": FeedWatch(parts.feeds.status, parts.herald, clock).run(),
            "heartbeat": parts.heartbeat.run(lambda: silencing(parts)),
            "incidents": _clerk(parts, rules.notify.language).run(),
        }
        limit_seconds = systemd.watchdog_seconds()
        if limit_seconds is not None:
            work["systemd"] = systemd.keep_telling(lambda: ailing(parts), limit_seconds)
        senders = chosen(settings, parts.metrics.read, parts.service.defects.count, parts.service.started_at)
        parts.metrics.senders += senders
        work |= {sender.name: sender.run() for sender in senders}
        await stack.enter_async_context(in_background(work, parts))
        stack.enter_context(_reload_on_hangup(watch))
        logger.info("watching by %d rules of %s", len(rules.rules.rules), path)
        yield parts


async def _start(
    settings: Settings, rules: RuleFile, clock: Callable[[], float], stack: contextlib.AsyncExitStack
) -> Parts:
    """What comes first here is stopped last."""
    writer = stack.enter_context(WatchedPool(1, "store"))
    readers = stack.enter_context(WatchedPool(READ_THREADS, "read"))

    async def write(fn: Callable[..., T], *args: object) -> T:
        return await run_in(writer, fn, *args)

    store: Store = await write(Store.open, database_url(settings))
    stack.push_async_callback(write, store.close)
    recorder = TraceWriter(settings.record) if settings.record else None
    if recorder is not None:
        stack.callback(recorder.close)
    hub = Hub()
    client = http.client()
    heartbeat = Heartbeat(client, clock=clock)
    curves = Curves(store, functools.partial(run_in, readers), lambda one: service.engine.rules.of(one))  # noqa: PLW0108 - made below
    herald = Herald(store, write, client, external_url=settings.external_url, clock=clock, charts=curves.of)
    stack.push_async_callback(herald.stop)
    folder, desk = Folder(incidents_path(settings), settings.incidents_keep), Desk()
    desk.remember(reversed(await run_in(readers, folder.entries)))
    feeds = Feeds(client, external_url=settings.external_url, clock=clock)
    stack.push_async_callback(feeds.stop)
    service = Service(rules.rules, hub, Tellers(herald, feeds), recorder=recorder, incidents=desk, clock=clock)
    journal = Journal(_Archive(store), write, service.tell, flush_seconds=float(settings.flush_interval))
    service.attach(journal)
    stack.push_async_callback(journal.flush)
    service.muting.replace_windows(rules.notify.windows())
    restore(service, store)
    desk.resume(service.board.all(), folder.ids(), service.started_at)
    heartbeat.replace(_target(rules))
    feeds.watch(service.board.all)
    prepared = feeds.prepare(rules.notify)
    herald.replace(rules.notify)
    feeds.replace(prepared)
    await herald.ready()
    metrics = Metrics(
        service,
        Tellers(herald, feeds).status,
        hub,
        rooms_with(settings.compat),
        heartbeat_at=lambda: heartbeat.last_success_at,
        problems=lambda: silencing(parts),
    )
    parts = Parts(
        settings,
        store,
        service,
        journal,
        hub,
        herald,
        feeds,
        heartbeat,
        metrics,
        write,
        writer,
        readers,
        folder,
        desk,
        dead_tasks=[],
    )
    return parts


class _Archive:
    """The store, as the journal writes to it."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def append(self, transitions: Sequence[wire.Transition]) -> None:
        self._store.append(transitions)

    def record(self, entries: Sequence[Entry]) -> None:
        self._store.record(
            Batch(
                entries=tuple(
                    StoreEntry(
                        node=entry.session.node,
                        session=entry.session.session,
                        received_at=entry.received_at,
                        message=entry.message,
                    )
                    for entry in entries
                )
            )
        )


def _rule_parts(parts: Parts, path: Path, watch: RuleWatch) -> RuleParts:
    desk = RuleDesk(path, parts.settings, watch, lambda: parts.service.rules_error)
    return RuleParts(desk, Tryouts(database_url(parts.settings), path))


def _rule_watch(parts: Parts, path: Path, seen: Stamp, in_force: RuleFile) -> RuleWatch:
    def apply(rules: RuleFile) -> None:
        target, feeds = _target(rules), parts.feeds.prepare(rules.notify)  # first what may refuse
        parts.herald.replace(rules.notify)
        parts.feeds.replace(feeds)
        parts.heartbeat.replace(target)
        parts.service.replace_rules(rules.rules)
        parts.service.attention.replace_windows(rules.notify.windows())

    return RuleWatch(path, apply, parts.service.report_rules, parts.service.defects.count, seen=seen, in_force=in_force)


def _target(rules: RuleFile) -> Target | None:
    """Whom the heartbeat is to call. Raises SettingError."""
    section = rules.notify.heartbeat
    return section.open(os.environ) if section is not None else None


def _clerk(parts: Parts, language: wire.Language) -> Clerk:
    return Clerk(parts.desk, parts.incidents, parts.service, parts.store, parts.journal, parts.read, language=language)


async def _beat(service: Service) -> None:
    """Once a second, on the clock's own seconds as nearly as the load lets it."""
    loop = asyncio.get_running_loop()
    due_at = loop.time()
    while True:
        service.beat()
        due_at = max(due_at + BEAT_SECONDS, loop.time())
        await asyncio.sleep(due_at - loop.time())


@contextlib.asynccontextmanager
async def in_background(work: Mapping[str, Coroutine[Any, Any, None]], parts: Parts) -> AsyncIterator[None]:
    """Tasks that none may end before all are ended here."""
    tasks = [asyncio.create_task(one, name=name) for name, one in work.items()]
    tell = functools.partial(_tell_of_death, parts=parts)
    for task in tasks:
        task.add_done_callback(tell)
    try:
        yield
    finally:
        for task in tasks:
            task.remove_done_callback(tell)
        await end(tasks)


async def end(tasks: Sequence["asyncio.Task[None]"]) -> None:
    """Cancel them until they are over: before Python 3.12 `wait_for` may swallow it in the moment in which it ends."""
    left = set(tasks)
    while left:
        for task in left:
            task.cancel()
        _, left = await asyncio.wait(left, timeout=CANCEL_SECONDS)
    await asyncio.gather(*tasks, return_exceptions=True)


def _tell_of_death(task: "asyncio.Task[None]", parts: Parts) -> None:
    error = None if task.cancelled() else task.exception()
    parts.service.defects.count()
    parts.dead_tasks.append(task.get_name())
    logger.critical("the task %s has ended by a defect", task.get_name(), exc_info=error)


@contextlib.contextmanager
def _reload_on_hangup(watch: RuleWatch) -> Iterator[None]:
    """SIGHUP reads the rules again. Only the main thread may listen to signals."""
    loop = asyncio.get_running_loop()
    try:
        loop.add_signal_handler(signal.SIGHUP, watch.reload_soon)
    except (RuntimeError, ValueError):
        yield
        return
    try:
        yield
    finally:
        loop.remove_signal_handler(signal.SIGHUP)
