"""The messages of one channel that are made and have not arrived, and which goes next. Pure: time is an argument."""

from heapq import nsmallest
from typing import NamedTuple

import msgspec

from oomwatch import wire
from oomwatch.letters import Letter, TransitionKey
from oomwatch.notify.notice import Notice

_decoder = msgspec.json.Decoder(Notice)
_encoder = msgspec.json.Encoder()


class Mail(NamedTuple):
    """A message, as the channel sends it and as the database keeps it."""

    notice: Notice
    letter: Letter
    retry_at: float = 0.0

    @property
    def rank(self) -> int:
        return wire.SEVERITIES.index(self.notice.severity)


def mail_of(channel: str, notice: Notice, covers: tuple[TransitionKey, ...] = ()) -> Mail:
    """A new message to a channel."""
    document = _encoder.encode(notice).decode()
    return Mail(notice, Letter(channel, notice.id, notice.incident, notice.kind, notice.made_at, document, covers))


def mail_again(letter: Letter) -> Mail | None:
    """A message of an earlier life, word for word. None where it was written by a version that meant something else."""
    try:
        return Mail(_decoder.decode(letter.document), letter)
    except (msgspec.DecodeError, ValueError):
        return None


def as_kept(notice: Notice) -> str:
    """What is kept of a message that is done with: what it was about, without the words (of 64 GPUs 100 KB)."""
    news, everything = tuple(map(_bare, notice.news)), tuple(map(_bare, notice.everything))
    return _encoder.encode(msgspec.structs.replace(notice, news=news, everything=everything)).decode()


def _bare(one: wire.Transition) -> wire.Transition:
    return msgspec.structs.replace(one, texts={}, facts={}, causes=(), remedies=(), acts=())


class Outbox:
    """Messages of one incident go in the order in which they were made. Of others those that never failed go first,
    so that one message that a receiver chokes on holds up no other; then the gravest."""

    def __init__(self) -> None:
        self._queues: dict[str, list[Mail]] = {}

    def __len__(self) -> int:
        return sum(len(queue) for queue in self._queues.values())

    def put(self, mail: Mail) -> None:
        """The last of its incident. What is here already is not put twice."""
        queue = self._queues.setdefault(mail.letter.incident, [])
        if all(one.letter.id != mail.letter.id for one in queue):
            queue.append(mail)

    def next(self, now: float) -> Mail | None:
        """What to send now. It stays until it is replaced or removed."""
        due = [queue[0] for queue in self._queues.values() if queue[0].retry_at <= now]
        return min(due, key=lambda mail: (mail.letter.attempts, -mail.rank, mail.letter.made_at), default=None)

    def next_several(self, now: float, count: int) -> list[Mail]:
        """Of those that never failed, each of another incident, so many; none where there are not so many."""
        first = [queue[0] for queue in self._queues.values()]
        untried = [mail for mail in first if mail.letter.attempts == 0 and mail.retry_at <= now]
        ordered = nsmallest(count, untried, key=lambda mail: (-mail.rank, mail.letter.made_at))
        return ordered if len(ordered) == count else []

    def next_at(self) -> float | None:
        """When there will be something to send; None where there is nothing."""
        return min((queue[0].retry_at for queue in self._queues.values()), default=None)

    def hurry(self) -> None:
        """The channel works again: all that waits for another attempt is due."""
        for queue in self._queues.values():
            queue[0] = queue[0]._replace(retry_at=0.0)

    def replace(self, mail: Mail) -> None:
        """The attempt failed: the same, with when to try again."""
        self._queues[mail.letter.incident][0] = mail

    def remove(self, mail: Mail) -> bool:
        """It is done with. True: nothing else of its incident waits."""
        queue = self._queues[mail.letter.incident]
        del queue[0]
        if not queue:
            del self._queues[mail.letter.incident]
        return not queue
