"""Delivers to one channel: bundles, writes down, sends, and tries again. One task: a dead channel delays no other.

A message is written to the database, with the transitions that it tells of, before it is sent. Whatever happens after
that, the same message with the same id is sent until it has arrived or is refused. Where the database cannot be written
people are told all the same, and what was not written is written with the next message.
"""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence

import msgspec

from oomwatch import wire
from oomwatch.letters import Account, Letter, Standing
from oomwatch.notify.backoff import Patience
from oomwatch.notify.channel import Channel
from oomwatch.notify.current import as_of_now
from oomwatch.notify.health import Health, totals_of
from oomwatch.notify.inbox import Inbox, Routed
from oomwatch.notify.notice import Notice
from oomwatch.notify.outbox import Mail, Outbox, as_kept, mail_of
from oomwatch.notify.outcome import Delivered, Failed, Outcome, TryAgain
from oomwatch.notify.pool import Pool
from oomwatch.notify.rate import TokenBucket
from oomwatch.notify.recovery import recover
from oomwatch.notify.route import Target
from oomwatch.tasks import rung

# A message that fails waits up to 5 minutes for its next attempt; a new one tries its luck with the channel earlier.
CHANNEL_PAUSE_SECONDS_MAX = 30.0
KEEP_AGAIN_SECONDS = 5.0  # until the database is asked again to take what it did not, where nothing is sent meanwhile
# Where very many groups have something to say, so many messages are written in one transaction, and what became of them
# in another. Killed in between, the server sends them again, by the same ids. No more than go out within seconds, by
# how long the last ones took: what is written says how things stand, and is old once it has waited (decision 5).
MAILS_AT_ONCE = 32
SENT_AT_ONCE = 8  # of those
AHEAD_SECONDS = 2.0
UNSAVED_MAX = 1000  # messages that the database could not be given
UNSAVED_CHARS_MAX = 32 * 2**20  # of a thousand alerts one is megabytes
RECEIPTS_KEPT = 1000
AFTER_DEFECT_SECONDS = 5.0

logger = logging.getLogger(__name__)

Keep = Callable[[Sequence[Letter], Sequence[Standing]], Awaitable[None]]
TellOthers = Callable[[str, Callable[[str], Notice]], list[Letter]]
"""`tell_others(channel, make)`: put what `make` gives for each other channel into its outbox; it is yet to be kept."""


class Courier:
    def __init__(
        self,
        channel: Channel,
        keep: Keep,
        tell_others: TellOthers,
        *,
        find: Callable[[str], wire.Alert | None],
        clock: Callable[[], float],
        patience: Patience,
    ) -> None:
        """It takes what comes at once, and has to be told to `recover` or `go_on` before it does anything with it."""
        self.name = channel.config.name
        self._channel = channel
        self._keep = keep
        self._tell_others = tell_others
        self._find = find
        self._clock = clock
        self._patience = patience
        self._wake = asyncio.Event()
        self._unsaved: dict[str, Letter] = {}
        self._unsaved_since = 0.0  # loop time
        self._inbox = Inbox()
        self._begin(Standing(self.name, clock()), wire.ChannelState(name=self.name, kind=channel.config.kind))

    def _begin(self, standing: Standing, state: wire.ChannelState) -> None:
        config = self._channel.config
        self._pool = Pool(
            self.name, severity=config.severity, send_resolved=config.send_resolved, edits=self._channel.edits
        )
        self._pool.dropped_total = state.dropped_total - self._inbox.dropped_total
        self._outbox = Outbox()
        self._health = Health(state, standing)
        self._kept = standing
        self._receipts: dict[str, str] = {}
        self._tokens = TokenBucket(config.rate, 0.0)
        self._free_at = 0.0  # loop time before which nothing is sent
        self._failures = 0  # in a row
        self._took_seconds = AHEAD_SECONDS  # the last sending, of one message or of several
        self._stopping = False

    # ------------------------------------------------------------ from outside

    def recover(
        self, account: Account, stories: Mapping[str, Sequence[wire.Transition]], targets: Mapping[str, Target]
    ) -> None:
        """Begin anew with what is known of an earlier life, and go on."""
        self._begin(account.standing, self.status())
        self._receipts = dict(account.receipts)
        for mail in recover(self._pool, account, stories, targets, _now(), self._clock()):
            self._outbox.put(mail)
        self.go_on()

    def go_on(self) -> None:
        """As things are, with what came meanwhile."""
        self._stopping = False

    def offer(self, news: Iterable[Routed]) -> None:
        """Transitions, in order, each with its route to here; None where there is none. It only puts them by."""
        now = _now()
        for one in news:
            self._inbox.put(one, now)
        self._wake.set()

    def put(self, mail: Mail) -> None:
        """A message that is about no alert of ours. Who puts it has it kept."""
        self._inbox.put(mail, _now())
        self._wake.set()

    def status(self) -> wire.ChannelState:
        waiting = self._pool.waiting() + len(self._outbox) + self._inbox.has_any
        dropped = self._pool.dropped_total + self._inbox.dropped_total
        return msgspec.structs.replace(self._health.state, waiting=waiting, dropped_total=dropped)

    def inherit(self, before: wire.ChannelState) -> None:
        """An earlier courier of this channel has counted so far. Before it recovers or goes on."""
        self._health.state = totals_of(before, self._health.state)
        self._pool.dropped_total = before.dropped_total

    def stop(self) -> None:
        """Finish the message on its way, then return from `run`."""
        self._stopping = True
        self._wake.set()

    # ------------------------------------------------------------ the loop

    async def run(self) -> None:
        while not self._stopping:
            self._wake.clear()
            try:
                await self._turn()
            except Exception:
                logger.exception("channel %s: a defect of oomwatch; it goes on", self.name)
                await asyncio.sleep(AFTER_DEFECT_SECONDS)
        await self._keep_quietly()

    async def _turn(self) -> None:
        """Send one message, or wait until there is one and the channel is free."""
        self._take_in()
        now = _now()
        mail = await self._next_mail(now) if now >= self._opens_at(now) else None
        if mail is not None:
            await self._deliver(self._with_company(mail, now))
        else:
            await self._rest()

    def _with_company(self, mail: Mail, now: float) -> list[Mail]:
        """Where very many wait, several go at the same time: one by one, each would wait for the answer to the last."""
        several = [] if self._is_held_up() else self._outbox.next_several(now, SENT_AT_ONCE)
        return several if mail in several else [mail]

    def _take_in(self) -> None:
        """What has come since."""
        while (arrival := self._inbox.pop()) is not None:
            self._sort_in(*arrival)

    def _sort_in(self, what: Routed | Mail, now: float) -> None:
        """`now`: when it came. One thing that meets a defect costs neither the others nor whoever offered it."""
        try:
            if isinstance(what, Mail):
                self._pool.hold(what.letter.incident)
                self._outbox.put(what)
                return
            transition, target = what
            wall_then = self._clock() - (_now() - now)
            self._pool.add(transition, target, now, max(0.0, wall_then - transition.at))
        except Exception:
            logger.exception("channel %s: a defect of oomwatch; something is not told", self.name)

    def _opens_at(self, now: float) -> float:
        return max(self._free_at, self._tokens.free_at(now))

    async def _next_mail(self, now: float) -> Mail | None:
        """A group that is due speaks now, unless a message that never failed and is as grave waits already."""
        waiting, rank = self._outbox.next(now), self._pool.rank_at(now)
        if rank is None or (waiting is not None and waiting.letter.attempts == 0 and waiting.rank >= rank):
            return waiting
        drafts = self._pool.take(now, self._clock(), self._at_once(self._pool.due(now)))
        mails = [mail_of(self.name, as_of_now(one.notice, self._find), one.covers) for one in drafts]
        for mail in mails:
            self._outbox.put(mail)
        await self._save([mail.letter for mail in mails])
        return mails[0] if mails else waiting

    def _at_once(self, due: int) -> int:
        """How many of the groups that are due may have their say now: no more than go out before it has become old."""
        if self._is_held_up():
            return 1
        return min(MAILS_AT_ONCE, self._sendings_ahead() * (SENT_AT_ONCE if due >= SENT_AT_ONCE else 1))

    def _sendings_ahead(self) -> int:
        """How many fit into the time for which what is written is as things are; at least one."""
        return max(1, int(AHEAD_SECONDS / max(self._took_seconds, AHEAD_SECONDS / MAILS_AT_ONCE)))

    def _is_held_up(self) -> bool:
        return self._channel.pause_seconds > 0 or self._channel.config.rate is not None or self._failures > 0

    async def _rest(self) -> None:
        times = [at for at in (self._outbox.next_at(), self._pool.next_at()) if at is not None]
        now = _now()
        timeout = max(min(times), self._opens_at(now)) - now if times else None
        if self._unsaved:
            timeout = min(KEEP_AGAIN_SECONDS, timeout if timeout is not None else KEEP_AGAIN_SECONDS)
        await rung(self._wake, timeout)
        if not self._wake.is_set():
            await self._keep_quietly()

    # ------------------------------------------------------------ one message

    async def _deliver(self, mails: Sequence[Mail]) -> None:
        began = _now()
        outcomes = await asyncio.gather(*(self._attempt(mail) for mail in mails))
        self._took_seconds = _now() - began
        failures = self._failures
        for mail, outcome in zip(mails, outcomes, strict=True):
            if isinstance(outcome, TryAgain):
                self._failures = failures  # those of the same moment are one in the row
            await self._note(mail, outcome)

    async def _note(self, mail: Mail, outcome: Outcome) -> None:
        """What became of a message."""
        now, wall = _now(), self._clock()
        self._tokens.take(now)
        changed = self._health.note(outcome, now, wall)
        told = self._tell_others(self.name, lambda to: self._health.notice(to, wall)) if changed else []
        letter = mail.letter._replace(attempts=mail.letter.attempts + 1)
        if isinstance(outcome, TryAgain):
            letter = letter._replace(error=outcome.reason)
            self._try_again(mail._replace(letter=letter), outcome, now)
        else:
            letter = self._settled(mail._replace(letter=letter), outcome, now, wall)
        if isinstance(outcome, Delivered) and not told and self._goes_on(now):
            self._put_by([letter])
        else:
            await self._save([letter, *told])

    def _goes_on(self, now: float) -> bool:
        """Whether the next message goes at once: what became of this one is then written with what becomes of that."""
        waiting = self._outbox.next(now) if now >= self._opens_at(now) else None
        return waiting is not None and waiting.letter.attempts == 0 and self._may_hold_back(now)

    def _may_hold_back(self, now: float) -> bool:
        """Whether what is known of messages may wait until the next ones are sent, for few of them and not for long."""
        held_seconds = now - self._unsaved_since if self._unsaved else 0.0
        return len(self._unsaved) < MAILS_AT_ONCE and held_seconds + self._took_seconds < AHEAD_SECONDS

    async def _attempt(self, mail: Mail) -> Outcome:
        receipt = self._receipts.get(mail.letter.incident)
        try:
            return await self._channel.send(msgspec.structs.replace(mail.notice, receipt=receipt))
        except Exception as error:
            logger.exception("channel %s: a message could not be made", self.name)
            return Failed(f"the message could not be made ({type(error).__name__}); the server's log has the details")

    def _try_again(self, mail: Mail, outcome: TryAgain, now: float) -> None:
        self._failures += 1
        asked = outcome.after_seconds or 0.0
        pause = max(asked, self._patience(mail.letter.attempts))
        self._free_at = now + max(asked, min(self._patience(self._failures), CHANNEL_PAUSE_SECONDS_MAX))
        self._outbox.replace(mail._replace(retry_at=now + pause))
        logger.warning("channel %s: %s; trying again in %.1f s", self.name, outcome.reason, pause)

    def _settled(self, mail: Mail, outcome: Delivered | Failed, now: float, wall: float) -> Letter:
        """It is done with: delivered, or given up. Gives what is to be kept of it."""
        had_failed, self._failures = self._failures > 0, 0
        self._free_at = now + self._channel.pause_seconds
        letter = mail.letter._replace(document=as_kept(mail.notice), done_at=wall)
        if self._outbox.remove(mail):
            self._pool.settle(mail.letter.incident)
        if had_failed and isinstance(outcome, Delivered):
            self._outbox.hurry()
        if isinstance(outcome, Failed):
            logger.error("channel %s: message not sent: %s", self.name, outcome.reason)
            return letter._replace(state="failed", error=outcome.reason)
        if outcome.receipt is not None:
            # A second one of an incident: its message was deleted, and posted anew.
            self._receipts[mail.letter.incident] = outcome.receipt
            if len(self._receipts) > RECEIPTS_KEPT:
                del self._receipts[next(iter(self._receipts))]
        return letter._replace(state="delivered", receipt=outcome.receipt)

    def _put_by(self, letters: Sequence[Letter]) -> None:
        """To be written with the next ones."""
        if not self._unsaved:
            self._unsaved_since = _now()
        self._unsaved.update({f"{one.channel} {one.id}": one for one in letters})
        while len(self._unsaved) > UNSAVED_MAX or self._unsaved_chars() > UNSAVED_CHARS_MAX:
            del self._unsaved[next(iter(self._unsaved))]

    async def _save(self, letters: Sequence[Letter]) -> None:
        self._put_by(letters)
        try:
            await self.flush()
        except Exception as error:
            # The worst that can come of this is that a message is sent once more after a restart, by the same id.
            logger.warning("channel %s: cannot note what is sent, and sends it all the same: %s", self.name, error)

    def _unsaved_chars(self) -> int:
        return sum(len(one.document) for one in self._unsaved.values())

    async def _keep_quietly(self) -> None:
        """Why it could not be kept was said, and the store says when it can be written again."""
        if self._unsaved:
            with contextlib.suppress(Exception):
                await self.flush()

    async def flush(self) -> None:
        """Keep what could not be kept before. Raises what the store raises."""
        saving, standing = dict(self._unsaved), self._health.standing
        standings = [standing] if standing != self._kept else []
        if saving or standings:
            await self._keep(list(saving.values()), standings)
        self._kept = standing
        self._unsaved = {key: one for key, one in self._unsaved.items() if saving.get(key) is not one}


def _now() -> float:
    return asyncio.get_running_loop().time()
