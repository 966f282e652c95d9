"""The store, as the journal writes to it."""

from collections.abc import Sequence

from oomwatch import wire
from oomwatch.service.journal import Entry
from oomwatch.store.batch import Batch
from oomwatch.store.batch import Entry as StoreEntry
from oomwatch.store.store import Store


class Archive:
    """The methods block, and raise StoreError."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def append(self, transitions: Sequence[wire.Transition]) -> None:
        self._store.append(transitions)

    def record(self, entries: Sequence[Entry]) -> None:
        self._store.record(Batch(entries=tuple(map(_kept, entries))))


def _kept(entry: Entry) -> StoreEntry:
    return StoreEntry(
        node=entry.session.node, session=entry.session.session, received_at=entry.received_at, message=entry.message
    )
