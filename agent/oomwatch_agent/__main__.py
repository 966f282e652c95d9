"""The agent as a program: read, send, sleep."""

import asyncio
import functools
import logging
import os
import queue
import secrets
import signal
import sys
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from oomwatch import __version__, wire
from oomwatch.options import SettingError
from oomwatch.oserror import written_out
from oomwatch_agent import parked
from oomwatch_agent.acts.watched import Watched
from oomwatch_agent.assemble import decided, sources
from oomwatch_agent.budget import Budget
from oomwatch_agent.heap import give_back
from oomwatch_agent.link import LinkError
from oomwatch_agent.looker import Looker, Paces
from oomwatch_agent.outbox import Outbox
from oomwatch_agent.pace import Pace
from oomwatch_agent.probe.asking import Asking
from oomwatch_agent.purse import Purse
from oomwatch_agent.rounds import Rounds
from oomwatch_agent.sampler import Collected, Sampler
from oomwatch_agent.settings import AgentSettings, Invocation, credentials, load, permit
from oomwatch_agent.sparing import Sparing, budget_ratio
from oomwatch_agent.uplink import Uplink, end

if TYPE_CHECKING:
    from oomwatch_agent.acts.desk import Desk

FIRST_ANSWERS_SECONDS = 2.0
GOODBYE_SECONDS = 3.0
ANSWER_WITHIN_RATIO = 0.4  # of the interval: what a source may take before a sample goes without it
ANSWER_WITHIN_LONGEST_SECONDS = 1.0

logger = logging.getLogger("oomwatch_agent")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the agent. 0: stopped as asked; 1: --check found the server wanting; 2: a setting cannot be used.

    `oomwatch-agent run -- COMMAND` is another program: it starts a training with the probe inside. So is
    `oomwatch-agent parse FILE...`: it prints what is recognised in logs.
    """
    arguments = sys.argv[1:] if argv is None else argv
    if list(arguments[:1]) == ["run"]:
        from oomwatch_agent import launch  # noqa: PLC0415 - the agent itself never launches anything

        return launch.main(arguments[1:])
    if list(arguments[:1]) == ["parse"]:
        from oomwatch_agent import parse  # noqa: PLC0415 - the agent itself never prints what it reads

        with written_out():
            return parse.main(arguments[1:])
    if argv is None:  # this is the program itself, and it is yet to begin: who stops it now has stopped it
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    try:
        with written_out():  # --help
            invocation = load(argv, os.environ)
    except SettingError as error:
        print(f"oomwatch-agent: {error}", file=sys.stderr)
        return 2
    if argv is None and invocation.check:  # who stops a check has not learnt that all is well
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
    # A check prints what the log would say.
    _set_up_log("error" if invocation.check else invocation.settings.log_level)
    agent = Agent(invocation.settings)
    if invocation.check:
        with written_out():
            return _print_check(agent)
    _log_start(invocation)
    asyncio.run(agent.run())
    return 0


class Agent:
    """Sources, outbox and uplink of one node, and what moves readings from the first to the last."""

    def __init__(self, settings: AgentSettings) -> None:
        self.settings = settings = decided(settings)
        self._answer_within_seconds = min(ANSWER_WITHIN_LONGEST_SECONDS, ANSWER_WITHIN_RATIO * settings.interval)
        self._asking = Asking(interval_seconds=settings.interval)
        # A simulation costs what it costs.
        percent = settings.cpu_budget if settings.simulate == "off" else 0.0
        ratio = budget_ratio(percent, settings.interval)
        purse = Purse(ratio, cpu=time.process_time, clock=time.monotonic)
        watched = sources(settings, self._asking, purse)
        paces = Paces(settings.interval, settings.fastest)
        self._looker = Looker(watched, paces, self._hurry)
        self.sampler = Sampler(
            watched,
            run=settings.run,
            answer_within_seconds=self._answer_within_seconds,
            looker=self._looker,
        )
        self._sparing = Sparing(Budget(ratio), paces, self.sampler, purse)
        self._session = secrets.token_hex(8)
        self._outbox = Outbox()
        self._watched = Watched()
        self._acted: queue.SimpleQueue[wire.Event] = queue.SimpleQueue()
        self._desk: Desk | None = None
        self._rounds: Rounds | None = None  # while it runs

    async def run(self) -> None:
        """Until SIGTERM or SIGINT: read and send."""
        loop = asyncio.get_running_loop()
        loop.set_default_executor(parked.Executor())
        uplink = Uplink(
            self.settings.server,
            self._outbox,
            self.hello,
            credentials=credentials(self.settings),
            on_act=self._take_act,
        )
        self._rounds = rounds = Rounds(
            self.sampler,
            self._looker,
            Pace(self.settings.node, self.settings.interval),
            answer_within_seconds=self._answer_within_seconds,
            may_be_slow=self._sparing.may_be_slow,
            take_in=functools.partial(self._take_in, uplink),
        )
        _stop_on_signals(loop, rounds)
        await rounds.begin(FIRST_ANSWERS_SECONDS)  # so that the first hello has the facts
        give_back()
        talking = asyncio.create_task(uplink.run())
        try:
            await rounds.run()
            await self._end_acts()
            await self._say_goodbye(uplink)
        finally:
            await end(talking)
            self.sampler.close()

    def hello(self) -> wire.Hello:
        """Who this agent is and what it watches, as of now."""
        return wire.Hello(
            protocol=wire.PROTOCOL_VERSION,
            agent_version=__version__,
            node=self.settings.node,
            session=self._session,
            sent_at=time.time(),
            interval_seconds=float(self.settings.interval),
            facts=self.sampler.facts,
            run=self.settings.run,
            simulated=self.settings.simulate != "off",
        )

    def _take_in(self, uplink: Uplink, collected: Collected) -> None:
        now = time.monotonic()
        self._watched.see(collected.sample)
        self._add_acted(now)
        for event in collected.events:
            self._outbox.add(event, now)
        self._outbox.add(collected.sample, now)
        self._sparing.sampled(now)
        uplink.wake()

    def _take_act(self, request: wire.ActRequest) -> None:
        if self._desk is None:
            from oomwatch_agent.acts.desk import Desk  # noqa: PLC0415 - memory: it is seldom wanted

            self._desk = Desk(permit(self.settings), self._watched, self._asking, self._acted.put)
        self._desk.take(request)

    def _add_acted(self, now: float) -> None:
        while not self._acted.empty():
            self._outbox.add(self._acted.get(), now)

    async def _end_acts(self) -> None:
        """What is going on comes to an end, which the server is told too."""
        self._asking.close()
        if self._desk is not None:
            await asyncio.get_running_loop().run_in_executor(None, self._desk.close)
        self._add_acted(time.monotonic())

    def _hurry(self) -> None:
        if self._rounds is not None:
            self._rounds.hurry()

    async def _say_goodbye(self, uplink: Uplink) -> None:
        seq = self._outbox.add(wire.Bye(seq=0, at=time.time()), time.monotonic())
        if await uplink.finish(seq, GOODBYE_SECONDS):
            logger.info("stopped; everything is stored")
        else:
            logger.warning("stopped; the server had not stored the last %d messages", len(self._outbox))


def _stop_on_signals(loop: asyncio.AbstractEventLoop, rounds: Rounds) -> None:
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, rounds.stop)


def _set_up_log(level: str) -> None:
    logging.basicConfig(level=level.upper(), format="%(asctime)s %(levelname)s %(message)s", stream=sys.stderr)
    logging.getLogger("websockets").setLevel(logging.WARNING)


def _log_start(invocation: Invocation) -> None:
    logger.info("oomwatch-agent %s starts", __version__)
    for line in invocation.resolved.describe():
        logger.info("  %s", line)


def _print_check(agent: Agent) -> int:
    from oomwatch_agent.check import check  # noqa: PLC0415 - memory

    try:
        for line in check(agent.settings, agent.sampler, agent.hello):
            print(line, flush=True)
    except LinkError as error:
        print(f"oomwatch-agent: {error}", file=sys.stderr)
        return 1
    finally:
        agent.sampler.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
