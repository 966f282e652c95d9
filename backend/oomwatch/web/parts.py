"""What the routes work with: the running parts of the server, made in app.py."""

import asyncio
import functools
from collections.abc import Callable
from concurrent.futures import Executor
from typing import NamedTuple, TypeVar

from starlette.requests import HTTPConnection

from oomwatch.hub import Hub
from oomwatch.incident.desk import Desk
from oomwatch.incident.folder import Folder
from oomwatch.metrics.page import Metrics
from oomwatch.notify.heartbeat import Heartbeat
from oomwatch.service.journal import Call, Journal
from oomwatch.service.service import Service
from oomwatch.settings import Settings
from oomwatch.store.store import Store
from oomwatch.web.feeds import Feeds
from oomwatch.web.herald import Herald
from oomwatch.web.pool import WatchedPool
from oomwatch.web.ruleparts import RuleParts

T = TypeVar("T")


class Parts(NamedTuple):
    """Everything that lives from start to stop. `write` runs in the store's one writing thread."""

    settings: Settings
    store: Store
    service: Service
    journal: Journal
    hub: Hub
    herald: Herald
    feeds: Feeds
    heartbeat: Heartbeat
    metrics: Metrics
    write: Call
    writer: WatchedPool
    readers: WatchedPool
    incidents: Folder
    desk: Desk
    dead_tasks: list[str]  # names of those that ended by a defect
    rules: RuleParts | None = None  # of a server that runs it is there

    async def read(self, fn: Callable[..., T], *args: object, **kwargs: object) -> T:
        """Run a read of the store beside the writer, so that a long one delays no alert."""
        return await run_in(self.readers, fn, *args, **kwargs)


def parts_of(connection: HTTPConnection) -> Parts:
    parts: Parts = connection.app.state.parts
    return parts


async def run_in(executor: Executor, fn: Callable[..., T], *args: object, **kwargs: object) -> T:
    """Run a blocking call in a thread."""
    return await asyncio.get_running_loop().run_in_executor(executor, functools.partial(fn, *args, **kwargs))
