"""The way to the server: connect, resume, send, hear what was stored; and again after every break.

The protocol is docs/reference/wire-protocol.md. Whatever goes wrong, the agent goes on: it keeps what it has to say in
its outbox, tries again with growing pauses, and tells its log each change of the situation once and not once a try.
"""

import asyncio
import contextlib
import logging
import random
import time
from collections.abc import Awaitable, Callable

from oomwatch import wire
from oomwatch_agent.credentials import Credentials
from oomwatch_agent.link import Link, LinkError
from oomwatch_agent.outbox import MAX_AGE_SECONDS, Outbox
from oomwatch_agent.pace import Backoff

REFUSED_PAUSE_SECONDS = 60.0  # a refusal that says "do not try again" means: not within seconds
FRAMES_AT_ONCE = 500
FRAMES_POSTED = 10  # of a moment; more are sent by the task, which lets others go on between
CANCEL_SECONDS = 1.0
CLOCK_SET_SECONDS = 1.0  # a step of the wall clock that is told: the server takes two seconds for skew

logger = logging.getLogger(__name__)
NOTHING_SHOWN = Credentials()


class Uplink:
    """One agent's way to one server. `introduce` gives the hello as of now. `run` is the task that talks, but
    for what `wake` posts while that one rests.

    `on_act` takes what the server asks to have done, and never waits. `clock` never jumps: against it is seen that the
    wall clock, which `introduce` reads, was set.
    """

    def __init__(
        self,
        url: str,
        outbox: Outbox,
        introduce: Callable[[], wire.Hello],
        *,
        credentials: Credentials = NOTHING_SHOWN,
        on_act: Callable[[wire.ActRequest], None] | None = None,
        jitter: random.Random | None = None,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._url = url
        self._outbox = outbox
        self._introduce = introduce
        self._credentials = credentials
        self._on_act = on_act
        self._backoff = Backoff(jitter or random.Random())  # noqa: S311 - spreads retries, guards nothing
        self._sleep = sleep
        self._clock = clock
        self._news = asyncio.Event()  # there is something to send, or the connection ended
        self._stored = asyncio.Event()  # the server acknowledged something
        self._told_facts: wire.NodeFacts | None = None
        self._told_ahead = 0.0  # of `clock`, the wall clock at the last hello
        self._connected = False
        self._resting: Link | None = None  # the connection, while `run` has sent everything and waits
        self._sent_seq = 0
        self._leaving = False
        self._situation = ""
        self._dropped_told = 0
        self.unknown_total = 0

    async def run(self) -> None:
        """Keep a connection until `finish`, or for as long as the task lives."""
        while True:
            await self._converse_and_recover()
            if self._leaving:
                return  # the server closes after a bye: no news

    async def _converse_and_recover(self) -> None:
        try:
            await self._converse()
        except LinkError as error:
            if self._leaving:
                return
            self._tell(logging.WARNING, f"{error} - {_what_next(retry=error.retry)}")
            await self._sleep(self._backoff.next_seconds() if error.retry else REFUSED_PAUSE_SECONDS)
        except Exception:  # a mistake of ours: say it whole, and go on watching
            logger.exception("the connection to %s failed in an unforeseen way", self._url)
            await self._sleep(REFUSED_PAUSE_SECONDS)

    def wake(self) -> None:
        """Something new is in the outbox, or the facts have changed. In the loop's thread."""
        if not self._post_news():
            self._news.set()

    async def finish(self, seq: int, within_seconds: float) -> bool:
        """Send what is left, up to `seq`; whether the server has acknowledged it in time. Without a connection: no."""
        self._leaving = True
        self.wake()
        if not self._connected:
            return False
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(self._until_stored(seq), within_seconds)
        return self._outbox.acknowledged_seq >= seq

    async def _until_stored(self, seq: int) -> None:
        while self._connected and self._outbox.acknowledged_seq < seq:
            self._stored.clear()
            await self._stored.wait()

    async def _converse(self) -> None:
        """One connection, from hello to its end, which is a LinkError."""
        link = await Link.open(self._url, self._credentials)
        try:
            hello = self._introduce()
            self._remember(hello)
            welcome = await link.greet(hello)
            self._outbox.acknowledge(welcome.resume_after_seq)
            self._tell(logging.INFO, f"connected to {self._url} (oomwatch {welcome.server_version})")
            self._tell_dropped()
            self._connected = True
            self._sent_seq = welcome.resume_after_seq
            await self._exchange(link)
        finally:
            self._connected = False
            self._stored.set()  # whoever waits for the last acknowledgement waits in vain
            await link.close()

    async def _exchange(self, link: Link) -> None:
        """Listen and send until one of the two fails."""
        listening = asyncio.create_task(self._listen(link))
        listening.add_done_callback(lambda _: self._news.set())
        try:
            while not listening.done():
                self._news.clear()
                await self._send_news(link)
                self._resting = link
                await self._news.wait()
                self._resting = None
            await listening
        finally:
            self._resting = None
            listening.cancel()
            await asyncio.gather(listening, return_exceptions=True)

    async def _send_news(self, link: Link) -> None:
        """Send what is new of the agent itself, then every frame that was not sent."""
        hello = self._introduce()
        if self._is_news(hello):
            self._tell_of_the_clock(self._clock_step_seconds(hello))
            self._remember(hello)
            await link.send(wire.encode(hello))
        while frames := self._outbox.after(self._sent_seq, FRAMES_AT_ONCE):
            for frame in frames:
                await link.send(frame.text)
                self._sent_seq = frame.seq

    def _post_news(self) -> bool:
        """The same at once, as of most samples: to wake the task that sends costs as much as to send."""
        link = self._resting
        if link is None or self._news.is_set() or self._is_news(self._introduce()):
            return False
        for frame in self._outbox.after(self._sent_seq, FRAMES_POSTED):
            if not link.post(frame.text):
                return False
            self._sent_seq = frame.seq
        return self._sent_seq >= self._outbox.last_seq

    def _is_news(self, hello: wire.Hello) -> bool:
        return hello.facts != self._told_facts or abs(self._clock_step_seconds(hello)) > CLOCK_SET_SECONDS

    def _remember(self, hello: wire.Hello) -> None:
        self._told_facts = hello.facts
        self._told_ahead = hello.sent_at - self._clock()

    def _clock_step_seconds(self, hello: wire.Hello) -> float:
        """By how much the wall clock was set, or the machine slept, since the server last measured it."""
        return hello.sent_at - self._clock() - self._told_ahead

    def _tell_of_the_clock(self, step_seconds: float) -> None:
        if abs(step_seconds) > CLOCK_SET_SECONDS:
            logger.warning(
                "this machine's clock was set by %+.1f s (or it slept): the server measures it anew", step_seconds
            )

    async def _listen(self, link: Link) -> None:
        while True:
            message = await link.receive()
            if isinstance(message, wire.Ack):
                self._outbox.acknowledge(message.seq)
                self._backoff.reset()  # not at the welcome: a server that falls right after it must not be hammered
                self._stored.set()
            elif isinstance(message, wire.ActRequest) and self._on_act is not None:
                self._on_act(message)
            else:
                self._count_unknown(message)

    def _count_unknown(self, message: object) -> None:
        self.unknown_total += 1
        if self.unknown_total == 1:
            logger.info("%s sends messages that this agent does not know; they are skipped: %s", self._url, message)

    def _tell(self, level: int, situation: str) -> None:
        if situation != self._situation:
            self._situation = situation
            logger.log(level, "%s", situation)

    def _tell_dropped(self) -> None:
        dropped = self._outbox.dropped_total - self._dropped_told
        if dropped:
            logger.warning("the server was away for long: the oldest %d messages were dropped", dropped)
        self._dropped_told = self._outbox.dropped_total


async def end(task: "asyncio.Task[None]") -> None:
    """Cancel it until it is over: before Python 3.12 `wait_for` may swallow that in the moment in which it ends."""
    while not task.done():
        task.cancel()
        await asyncio.wait([task], timeout=CANCEL_SECONDS)


def _what_next(*, retry: bool) -> str:
    when = "trying again" if retry else f"trying again every {REFUSED_PAUSE_SECONDS:g} s"
    return f"{when}; the last {MAX_AGE_SECONDS / 60:g} minutes are kept"
