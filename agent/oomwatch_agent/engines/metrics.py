"""`EngineMetricsSource`: the rollout engines' own metrics, from their Prometheus pages.

They are asked at slow reads only, every ten seconds or so: the page of a busy engine costs it milliseconds of the
thread that serves requests. One that gives nothing is left alone for longer and longer.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence

import msgspec

from oomwatch import wire
from oomwatch.units import counted
from oomwatch_agent.engines.exposition import MalformedMetricsError, parse
from oomwatch_agent.engines.fetch import Endpoint, EngineUnreachableError, endpoint, fetch
from oomwatch_agent.engines.find import Finder, Server, own_addresses
from oomwatch_agent.engines.names import WANTED, samples
from oomwatch_agent.hang_guard import HangGuard
from oomwatch_agent.source import Reading
from oomwatch_agent.who.processes import Processes

AUTO, OFF = "auto", "off"
_LIMIT_SECONDS = 2.0  # all engines together; below what the sampler takes for a hung source
_OF_ONE_RATIO = 0.7  # of that limit, for one engine: one that is slow is told from one that hangs
_FIND_AGAIN_SECONDS = 30.0
_REST_FIRST_SECONDS, _REST_LONGEST_SECONDS = 15.0, 300.0
_MOST_ENGINES = 64


class _Page(msgspec.Struct):
    """What is known of one page."""

    server: Server
    failures: int = 0  # in a row
    rest_until: float = 0.0
    trouble: str | None = None


class EngineMetricsSource:
    """`wanted`: addresses, and "auto" for those that can be found. `run` is for engines whose run is not known."""

    name = "engine metrics"

    def __init__(
        self,
        wanted: Sequence[str] = (AUTO,),
        run: str | None = None,
        *,
        finder: Finder | None = None,
        processes: Processes | None = None,
        clock: Callable[[], float] = time.monotonic,
        limit_seconds: float = _LIMIT_SECONDS,
    ) -> None:
        self._named = tuple(Server(endpoint(text)) for text in wanted if text not in (AUTO, OFF))
        self._finder = (finder or Finder()) if AUTO in wanted else None
        self._run = run
        self._processes = processes or Processes()
        self._clock = clock
        self._limit_seconds = limit_seconds
        self._guard: HangGuard[Endpoint, tuple[wire.EngineSample, ...] | str] = HangGuard(limit_seconds)
        self._pages: dict[Endpoint, _Page] = {}
        self._find_at = 0.0
        self._left_out = 0  # pages beyond those that can be asked
        self._facts: wire.NodeFacts | None = None

    def open(self) -> wire.NodeFacts:
        """Look for engines. There may be none yet: they start long after the agent."""
        self._find_at = 0.0
        self._look_around()
        self._facts = self._facts_now()
        return self._facts

    def read(self, *, slow: bool) -> Reading:
        """Ask the engines, at slow reads."""
        if not slow:
            return Reading()
        self._look_around()
        now = self._clock()
        due = [place for place, page in self._pages.items() if page.rest_until <= now]
        answers = self._guard.ask(due, self._ask)
        for place in due:
            self._take(self._pages[place], answers.get(place, "no answer in time"))
        engines = tuple(self._with_runs({place: given for place, given in answers.items() if isinstance(given, tuple)}))
        facts = self._facts_now()
        changed, self._facts = facts != self._facts, facts
        return Reading(engines=engines, facts=facts if changed else None)

    def close(self) -> None:
        """Nothing is held open."""

    def _look_around(self) -> None:
        """Which pages there are: the named ones always, the others as they are found."""
        if self._clock() < self._find_at:
            return
        self._find_at = self._clock() + _FIND_AGAIN_SECONDS
        found = self._finder.find() if self._finder is not None else ()
        named_ports = {server.place.port for server in self._named if server.place.host in own_addresses()}
        others = (server for server in found if server.place.port not in named_ports)
        servers = (*self._named, *others)
        self._left_out, servers = max(0, len(servers) - _MOST_ENGINES), servers[:_MOST_ENGINES]
        self._pages = {server.place: self._pages.get(server.place) or _Page(server) for server in servers}

    def _ask(self, place: Endpoint) -> tuple[wire.EngineSample, ...] | str:
        """The engine's figures, or why there are none."""
        try:
            found = samples(parse(fetch(place, self._limit_seconds * _OF_ONE_RATIO), WANTED), place.address)
        except (EngineUnreachableError, MalformedMetricsError) as error:
            return str(error)
        return found or "its page has no metrics of vLLM or SGLang"

    def _with_runs(self, answers: Mapping[Endpoint, tuple[wire.EngineSample, ...]]) -> Iterator[wire.EngineSample]:
        """The samples, each with the run that its server's environment names, or else the agent's."""
        pids = {place: self._pages[place].server.pid for place in answers}
        known = self._processes.describe(pid for pid in pids.values() if pid is not None)
        self._processes.forget_all_but(known)
        for place, found in answers.items():
            described = known.get(pids[place] or 0)
            run = (described.run if described else None) or self._run
            yield from (msgspec.structs.replace(sample, run=run) for sample in found)

    def _take(self, page: _Page, answer: tuple[wire.EngineSample, ...] | str) -> None:
        page.trouble = answer if isinstance(answer, str) else None
        page.failures = page.failures + 1 if page.trouble else 0
        rest_seconds = _REST_FIRST_SECONDS * 2 ** min(page.failures - 1, 10) if page.trouble else 0.0
        page.rest_until = self._clock() + min(_REST_LONGEST_SECONDS, rest_seconds)

    def _facts_now(self) -> wire.NodeFacts:
        troubles = [f"{place.address}: {page.trouble}" for place, page in self._pages.items() if page.trouble]
        good = len(self._pages) - len(troubles)
        if self._left_out:
            more = counted(self._left_out, "more engine", "more engines")
            troubles.insert(0, f"{more} than the {_MOST_ENGINES} that are asked")
        state: wire.SourceState = "ok" if good else "failed" if troubles else "waiting"
        nothing = "no vLLM or SGLang server with a metrics page is known on this node; --engine-metrics names one"
        detail = "; ".join(troubles)[: wire.TEXT_CHARS_MAX] or (None if good else nothing)
        return wire.NodeFacts(sources=(wire.SourceFacts(name=self.name, state=state, detail=detail),))
