"""What the routes work with: the running parts of the server, made in app.py."""

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from starlette.requests import HTTPConnection

from oomwatch.access.attempts import Attempts
from oomwatch.access.audit import AuditLog
from oomwatch.access.keyring import Keyring
from oomwatch.hub import Hub
from oomwatch.incident.cabinet import Reports
from oomwatch.incident.desk import Desk
from oomwatch.metrics.page import Metrics
from oomwatch.notify.heartbeat import Heartbeat
from oomwatch.service.journal import Journal
from oomwatch.service.service import Service
from oomwatch.settings import Settings
from oomwatch.store.store import Store
from oomwatch.tasks import Crew
from oomwatch.web.herald import Herald
from oomwatch.web.practice import Practice
from oomwatch.web.ruleparts import RuleParts
from oomwatch.web.storagewatch import StorageWatch
from oomwatch.web.threads import Threads
from oomwatch.web.turns import Turns

if TYPE_CHECKING:  # of extras
    from oomwatch.oidc.provider import Provider
    from oomwatch.web.clustered import Clustered

T = TypeVar("T")


class Parts(NamedTuple):
    """Everything that lives from start to stop."""

    settings: Settings
    threads: Threads
    store: Store
    service: Service
    journal: Journal
    hub: Hub
    herald: Herald
    heartbeat: Heartbeat
    metrics: Metrics
    incidents: Reports
    desk: Desk
    crew: Crew  # the tasks that work all that time
    rules: RuleParts
    doctor: Practice
    keyring: Keyring
    audit: AuditLog
    attempts: Attempts
    storage: StorageWatch
    turns: Turns
    cluster: "Clustered | None" = None  # None: this server is alone
    provider: "Provider | None" = None  # by which people sign in

    @property
    def dead_tasks(self) -> list[str]:
        """Names of those that ended by a defect."""
        return self.crew.dead()

    @property
    def leads(self) -> bool:
        """Whether this server delivers messages and keeps house; one that is alone does."""
        return self.cluster is None or self.cluster.leads

    async def write(self, fn: Callable[..., T], *args: object) -> T:
        """Run a call of the store in its one writing thread."""
        return await self.threads.write(fn, *args)

    async def read(self, fn: Callable[..., T], *args: object, **kwargs: object) -> T:
        """Run a read of the store beside the writer, so that a long one delays no alert."""
        return await self.threads.read(fn, *args, **kwargs)


def parts_of(connection: HTTPConnection) -> Parts:
    parts: Parts = connection.app.state.parts
    return parts
