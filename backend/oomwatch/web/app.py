"""The wiring: which parts the server is made of, in which order they start and stop, and which path leads where."""

import asyncio
import contextlib
import functools
import logging
import os
import signal
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from fastapi import FastAPI
from starlette.routing import Mount, Route, WebSocketRoute
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from oomwatch import __version__, wire
from oomwatch.access.attempts import Attempts
from oomwatch.access.audit import AuditLog
from oomwatch.hub import Hub
from oomwatch.incident.cabinet import Cabinet, Reports
from oomwatch.incident.clerk import Clerk
from oomwatch.incident.desk import Desk
from oomwatch.incident.folder import Folder
from oomwatch.metrics.page import Metrics, rooms_with
from oomwatch.notify import http
from oomwatch.notify.feeding import Outlook
from oomwatch.notify.heartbeat import Heartbeat
from oomwatch.options import SettingError
from oomwatch.rulefile import RuleFile, read_rules
from oomwatch.senders.chosen import chosen
from oomwatch.service.journal import Journal
from oomwatch.service.rulewatch import RuleWatch, Stamp, stamp
from oomwatch.service.service import BEAT_SECONDS, Service
from oomwatch.settings import (
    Settings,
    believed_proxies,
    check,
    database_address,
    incidents_path,
    keeps_incidents_in_database,
    rules_path,
)
from oomwatch.store.address import file_of
from oomwatch.store.archive import Archive
from oomwatch.store.claim import claimed
from oomwatch.store.soundness import be_sure_of
from oomwatch.store.store import Store, StoreError
from oomwatch.tasks import Crew
from oomwatch.trace import TraceWriter
from oomwatch.units import counted
from oomwatch.web import api, health, systemd
from oomwatch.web.access import keep_access, keyring_of, write_audit, write_uses
from oomwatch.web.crowd import Crowd
from oomwatch.web.curves import Curves
from oomwatch.web.entrance import PERMIT, access_of, provider_of
from oomwatch.web.feedwatch import FeedWatch
from oomwatch.web.guard import Guard
from oomwatch.web.herald import Herald
from oomwatch.web.ingest import agent_endpoint
from oomwatch.web.live import LIVE_PATH, live_endpoint
from oomwatch.web.parts import Parts
from oomwatch.web.peer import Peer
from oomwatch.web.practice import Practice
from oomwatch.web.restart import restore
from oomwatch.web.ruledesk import RuleDesk
from oomwatch.web.ruleparts import RuleParts
from oomwatch.web.static import PageFiles
from oomwatch.web.storagewatch import StorageWatch
from oomwatch.web.threads import Threads, WatchedPool
from oomwatch.web.tryouts import Tryouts
from oomwatch.web.turns import Turns
from oomwatch.web.upkeep import keep_pasts, keep_up
from oomwatch.web.wellbeing import ailing, silencing
from oomwatch_frontend import STATIC

if TYPE_CHECKING:
    from oomwatch.web.clustered import Clustered

READ_THREADS = 2  # a chart over a week must not stand in the way of a short question

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
    files = PageFiles(STATIC)
    api.install(app)
    app.router.routes += [
        WebSocketRoute("/ws/agent", agent_endpoint),
        WebSocketRoute(LIVE_PATH, live_endpoint),
        Route("/metrics", health.metrics),
        Route("/healthz", health.healthz),
        Route("/readyz", health.readyz),
        Route("/", files.page),
        Mount("/static", files),
    ]
    app.add_middleware(Crowd)
    # What is added last comes first: who connected, whom they say they speak for, and whether these may come in.
    app.add_middleware(Guard, settings=parts.settings, access=access_of(parts))
    proxies = believed_proxies(parts.settings)
    app.add_middleware(ProxyHeadersMiddleware, trusted_hosts=[str(network) for network in proxies])
    app.add_middleware(Peer, proxies=proxies)
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
        parts = await _start(settings, RuleFileOnDisk(path, seen, rules), clock, stack)
        await parts.herald.ready()
        stack.push_async_callback(keep_pasts, parts)
        stack.push_async_callback(write_audit, parts)
        stack.push_async_callback(write_uses, parts)
        stack.push_async_callback(parts.crew.end)
        if parts.cluster is not None:
            stack.push_async_callback(parts.cluster.say_goodbye)
        _set_to_work(parts, rules.notify.language, clock)
        stack.enter_context(_reload_on_hangup(parts.rules.watch))
        logger.info("watching by %s of %s", counted(len(rules.rules.rules), "rule"), path)
        yield parts


def _set_to_work(parts: Parts, language: wire.Language, clock: Callable[[], float]) -> None:
    """Everything that goes on by itself until the server stops."""
    crew = parts.crew
    crew.start("journal", parts.journal.run())
    crew.start("beat", _beat(parts.service))
    crew.start("rule watch", parts.rules.watch.run())
    crew.start("access", keep_access(parts))
    feed_watch, clerk = FeedWatch(parts.herald.fed, parts.herald, clock), _clerk(parts, language)
    duties: dict[str, Callable[[], Coroutine[Any, Any, None]]] = {  # of several servers one has them
        "upkeep": lambda: keep_up(parts),
        "feed watch": feed_watch.run,
        "heartbeat": lambda: parts.heartbeat.run(lambda: silencing(parts)),
        "incidents": clerk.run,
    }
    for name, work in duties.items():
        crew.start(name, work() if parts.cluster is None else parts.cluster.duty(work))
    if parts.cluster is not None:
        parts.metrics.cluster = parts.cluster.counts
        parts.cluster.set_to_work(crew, lambda: _resume_reports(parts))
    limit_seconds = systemd.watchdog_seconds()
    if limit_seconds is not None:
        crew.start("systemd", systemd.keep_telling(lambda: ailing(parts), limit_seconds))
    senders = chosen(
        parts.settings, parts.metrics.read, parts.service.defects.count, parts.service.started_at, lambda: parts.leads
    )
    parts.metrics.senders += senders
    for sender in senders:
        crew.start(sender.name, sender.run())


async def _resume_reports(parts: Parts) -> None:
    """Of what the last leader did not come to write."""
    try:
        written = await parts.read(parts.incidents.ids)
    except StoreError as error:
        logger.warning("which incidents are written of already cannot be read: %s", error)
    else:
        parts.desk.resume(parts.service.board.all(), written, parts.service.clock())


class RuleFileOnDisk(NamedTuple):
    path: Path
    seen: Stamp  # when it was read
    rules: RuleFile


async def _start(
    settings: Settings, file: RuleFileOnDisk, clock: Callable[[], float], stack: contextlib.AsyncExitStack
) -> Parts:
    """What comes first here is stopped last. What needs all parts is given a way to them, to be used once they are."""
    store, threads = await _open_store(settings, stack)
    keyring = await threads.read(keyring_of, settings, store, clock)
    past = await _past(settings, store, threads, file.rules.notify.language)
    provider = provider_of(settings, client_of_provider := http.client(PERMIT), clock)
    stack.push_async_callback(client_of_provider.aclose)
    client = http.client()
    herald = _herald(settings, store, threads, client, clock, lambda: parts)
    stack.push_async_callback(herald.stop)
    hub, heartbeat = Hub(), Heartbeat(client, clock=clock)
    recorder = _recorder(settings, stack)
    service = Service(file.rules.rules, hub, herald, recorder=recorder, incidents=past.desk, clock=clock)
    journal = Journal(Archive(store), threads.write, service.tell, flush_seconds=float(settings.flush_interval))
    service.attach(journal)
    cluster = await _clustered(settings, service, store, herald, stack)
    stack.push_async_callback(journal.flush)
    apply = functools.partial(put_in_force, herald, heartbeat, service)
    # From here on nothing is waited for: the channels that this starts have a way to all parts, and would take it.
    apply(file.rules)
    restore(service, store)
    past.desk.resume(service.board.all(), past.written, service.started_at)
    parts = Parts(
        settings, threads, store, service, journal, hub, herald, heartbeat,
        metrics=_metrics(settings, service, hub, herald, heartbeat, lambda: parts),
        incidents=past.reports,
        desk=past.desk,
        crew=Crew(service.defects.count),
        rules=_rule_parts(settings, file, service, apply),
        doctor=stack.enter_context(Practice()),
        keyring=keyring, audit=AuditLog(), attempts=Attempts(), storage=StorageWatch(), turns=Turns(),
        cluster=cluster, provider=provider,
    )  # fmt: skip
    return parts


class _Past(NamedTuple):
    """What is known of the incidents that were. `written`: those of which there is a report."""

    reports: Reports
    desk: Desk
    written: Sequence[str]


async def _past(settings: Settings, store: Store, threads: Threads, language: wire.Language) -> _Past:
    reports: Reports = await threads.write(_reports, settings, store, language)
    desk = Desk()
    desk.remember(reversed(await threads.read(reports.entries)))
    return _Past(reports, desk, await threads.read(reports.ids))


def _reports(settings: Settings, store: Store, language: wire.Language) -> Reports:
    """It blocks. Raises StoreError."""
    folder = Folder(incidents_path(settings, file_of(database_address(settings))), settings.incidents_keep)
    if not keeps_incidents_in_database(settings):
        return folder
    cabinet = Cabinet(store, settings.incidents_keep, language)
    cabinet.take_in(folder)  # where an earlier version kept them
    return cabinet


async def _clustered(
    settings: Settings, service: Service, store: Store, herald: Herald, stack: contextlib.AsyncExitStack
) -> "Clustered | None":
    """What a server has that is one of several. Raises SettingError, StoreError."""
    if settings.cluster_nats is None:
        return None
    try:
        from oomwatch.web.clustered import clustered  # noqa: PLC0415 - of an extra
    except ImportError as error:
        raise SettingError('cluster_nats: this needs more: pip install "oomwatch[cluster,postgres]"') from error
    return await clustered(settings, service, store, herald, stack)


def _herald(
    settings: Settings,
    store: Store,
    threads: Threads,
    client: http.Client,
    clock: Callable[[], float],
    parts: Callable[[], Parts],
) -> Herald:
    charts = Curves(store, threads.read, lambda one: parts().service.engine.rules.of(one))  # noqa: PLW0108 - made later
    outlook = Outlook(
        lambda: parts().service.board.all(),  # noqa: PLW0108 - made later
        lambda: not silencing(parts()),
        lambda alert: parts().service.board.find(alert),  # noqa: PLW0108
    )
    return Herald(
        store,
        threads.write,
        client,
        external_url=settings.external_url,
        clock=clock,
        charts=charts.of,
        outlook=outlook,
        delivers=settings.cluster_nats is None,
    )


def _metrics(
    settings: Settings, service: Service, hub: Hub, herald: Herald, heartbeat: Heartbeat, parts: Callable[[], Parts]
) -> Metrics:
    return Metrics(
        service,
        herald.status,
        hub,
        rooms_with(settings.compat),
        heartbeat_at=lambda: heartbeat.last_success_at,
        problems=lambda: silencing(parts()),
        storage=lambda: parts().storage.latest,
    )


def _rule_parts(
    settings: Settings, file: RuleFileOnDisk, service: Service, apply: Callable[[RuleFile], None]
) -> RuleParts:
    watch = RuleWatch(
        file.path, apply, service.report_rules, service.defects.count, seen=file.seen, in_force=file.rules
    )
    desk = RuleDesk(file.path, settings, watch, lambda: service.rules_error)
    return RuleParts(watch, desk, Tryouts(database_address(settings), file.path))


async def _open_store(settings: Settings, stack: contextlib.AsyncExitStack) -> tuple[Store, Threads]:
    threads = Threads(
        stack.enter_context(WatchedPool(1, "store")), stack.enter_context(WatchedPool(READ_THREADS, "read"))
    )
    database = database_address(settings)
    stack.enter_context(claimed(database, with_others=settings.cluster_nats is not None))
    await threads.write(be_sure_of, database)
    store = await threads.write(Store.open, database)
    stack.push_async_callback(threads.write, store.close)
    return store, threads


def _recorder(settings: Settings, stack: contextlib.AsyncExitStack) -> TraceWriter | None:
    recorder = TraceWriter(settings.record) if settings.record else None
    if recorder is not None:
        stack.callback(recorder.close)
    return recorder


def put_in_force(herald: Herald, heartbeat: Heartbeat, service: Service, rules: RuleFile) -> None:
    """What alerts.yaml says, at the start and whenever it changes. Raises SettingError, and then changes nothing."""
    section = rules.notify.heartbeat
    channels = herald.prepare(rules.notify)
    target = section.open(os.environ) if section is not None else None
    windows = rules.notify.windows()
    herald.replace(channels)
    heartbeat.replace(target)
    if rules.rules is not service.engine.rules:  # it was made with the first ones
        service.replace_rules(rules.rules)
    service.attention.replace_windows(windows)


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
