"""The dead man's switch: a service elsewhere is called as long as all is well, and raises the alarm once it is not.

Nothing here can tell people that this server is gone, so what is told is that it is there.
"""

import asyncio
import logging
import random
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Literal, NamedTuple

import httpx

from oomwatch.notify import http
from oomwatch.notify.backoff import pause_seconds
from oomwatch.notify.channel import Section, given
from oomwatch.notify.outcome import Delivered, Failed, Outcome, TryAgain
from oomwatch.notify.secret import Secret, find_secret
from oomwatch.tasks import rung
from oomwatch.units import Duration

PLACE = "notify heartbeat"
LEAST_INTERVAL_SECONDS = 1.0
CALL_SECONDS = 10.0  # for one call: long enough for a service far away, short enough for a second try in the minute
LOOK_SECONDS = 1.0  # how often it is looked whether all is well
LASTING_LOOKS = 3  # what is over sooner is no failure to report: a machine that slept has to wake up first

logger = logging.getLogger(__name__)


class HeartbeatSection(Section, frozen=True, kw_only=True):
    """`fail_suffix` is added to the address's path where the service wants to be told of a failure ("/fail")."""

    url: Secret | None = None
    url_env: str | None = None
    url_file: str | None = None
    interval: Duration = Duration(60)
    method: Literal["GET", "POST"] = "GET"
    fail_suffix: str | None = None

    def __post_init__(self) -> None:
        if given(self.url, self.url_env, self.url_file) != 1:
            raise ValueError("give its address by exactly one of url, url_env (an environment variable) and url_file")
        if self.interval < LEAST_INTERVAL_SECONDS:
            raise ValueError(f"an interval of less than {LEAST_INTERVAL_SECONDS:g} s only burdens the service")
        if self.fail_suffix is not None and not _is_path(self.fail_suffix):
            raise ValueError('fail_suffix is added to the path of the address; write for example "/fail"')

    def open(self, environ: Mapping[str, str]) -> "Callee":
        """Raises SettingError where the address cannot be found or used."""
        url = find_secret(self.url, self.url_env, self.url_file, environ=environ, place=PLACE)
        http.check_url(url, PLACE)
        failing = _with_suffix(url, self.fail_suffix) if self.fail_suffix is not None else None
        return Callee(self.method, url, failing, float(self.interval))


class Callee(NamedTuple):
    """Whom to call, and how often."""

    method: Literal["GET", "POST"]
    url: Secret
    failing: Secret | None  # to be called once when something fails
    interval_seconds: float


class Heartbeat:
    """Calls its target once an interval, by a task of its own: `run`."""

    def __init__(
        self,
        client: httpx.AsyncClient,
        *,
        clock: Callable[[], float] = time.time,
        chance: Callable[[], float] = random.random,
        look_seconds: float = LOOK_SECONDS,
    ) -> None:
        self.last_success_at: float | None = None  # Unix seconds
        self._client = client
        self._clock = clock
        self._chance = chance
        self._look_seconds = look_seconds
        self._target: Callee | None = None
        self._changed = asyncio.Event()
        self._due_at = 0.0  # loop time
        self._refused = 0  # calls in a row that did not arrive
        self._ill_looks = 0  # in a row

    def replace(self, target: Callee | None) -> None:
        """Call this one from now on, at once; None: nobody."""
        if target != self._target:
            self._target, self._due_at = target, 0.0
            self._changed.set()

    async def run(self, problems: Callable[[], Sequence[str]]) -> None:
        """Until cancelled. `problems` says why an alert might not be told; while it says anything, all is quiet."""
        while True:
            self._changed.clear()
            if self._target is not None:
                await self._look(self._target, problems(), asyncio.get_running_loop().time())
            await rung(self._changed, self._look_seconds if self._target is not None else None)

    async def _look(self, target: Callee, problems: Sequence[str], now: float) -> None:
        if problems:
            self._ill_looks += 1
            if self._ill_looks == LASTING_LOOKS:
                await self._report(target, problems)
            return
        if self._ill_looks >= LASTING_LOOKS:
            logger.warning("all is well again: the heartbeat goes on")
            self._due_at = now
        self._ill_looks = 0
        if now >= self._due_at:
            await self._call(target, now)

    async def _report(self, target: Callee, problems: Sequence[str]) -> None:
        logger.error("the heartbeat stops, for an alert might not be told: %s", "; ".join(problems))
        if target.failing is None:
            return
        outcome = await self._send(target.method, target.failing)
        if not isinstance(outcome, Delivered):
            logger.warning("%s: the failure could not be reported: %s", PLACE, outcome.reason)

    async def _call(self, target: Callee, now: float) -> None:
        outcome = await self._send(target.method, target.url)
        if isinstance(outcome, Delivered):
            if self._refused:
                logger.warning("%s: calls arrive again", PLACE)
            self._refused, self.last_success_at = 0, self._clock()
            self._due_at = now + target.interval_seconds
            return
        self._refused += 1
        if self._refused == 1:
            logger.warning("%s: %s; it is tried on", PLACE, outcome.reason)
        self._due_at = asyncio.get_running_loop().time() + self._pause_seconds(target, outcome)

    def _pause_seconds(self, target: Callee, outcome: TryAgain | Failed) -> float:
        """Several tries in an interval where that can help, unless the service asks for patience."""
        if isinstance(outcome, Failed):
            return target.interval_seconds
        pause = pause_seconds(self._refused, self._chance())
        return max(min(pause, target.interval_seconds), outcome.after_seconds or 0.0)

    async def _send(self, method: Literal["GET", "POST"], url: Secret) -> Outcome:
        answer = await http.ask(self._client, method, url, headers={}, limit_seconds=CALL_SECONDS)
        return http.judge(answer, url) if isinstance(answer, http.Answer) else answer


def _is_path(suffix: str) -> bool:
    return suffix.startswith("/") and suffix.isascii() and suffix.isprintable() and not set(suffix) & set(" ?#")


def _with_suffix(url: Secret, suffix: str) -> Secret:
    parsed = httpx.URL(url.reveal())
    path, mark, query = parsed.raw_path.partition(b"?")
    return Secret(str(parsed.copy_with(raw_path=path.rstrip(b"/") + suffix.encode() + mark + query)))
