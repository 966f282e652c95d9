"""`oomwatch-agent --check`: what is found on this node, one sample as it is sent, and whether the server answers."""

import asyncio
import time
from collections.abc import Callable, Iterator

import msgspec

from oomwatch import wire
from oomwatch_agent.link import Link, LinkError
from oomwatch_agent.sampler import Sampler
from oomwatch_agent.settings import AgentSettings, credentials

FIRST_ANSWERS_SECONDS = 15.0  # a GPU driver that was not running takes seconds to start
_GIB = 1024**3


def check(settings: AgentSettings, sampler: Sampler, hello: Callable[[], wire.Hello]) -> Iterator[str]:
    """The report, line by line. Raises LinkError where the server cannot be reached or refuses."""
    collected = sampler.collect(time.time(), slow=True, within_seconds=FIRST_ANSWERS_SECONDS)
    yield "Sources"
    for source in sampler.facts.sources:
        yield f"  {source.name:<14} {source.state:<8} {source.detail or ''}".rstrip()
    yield from _facts(sampler.facts)
    yield "One sample, as it is sent every " + f"{settings.interval:g} s"
    yield msgspec.json.format(wire.encode(collected.sample), indent=2).decode()
    yield f"Events in the logs so far: {len(collected.events)}"
    yield f"Acts permitted before a process dies: {', '.join(settings.allow_acts) or 'none'}"
    welcome = asyncio.run(_ask_server(settings, msgspec.structs.replace(hello(), check=True)))
    yield f"Server {settings.server} (oomwatch {welcome.server_version}) takes this agent as node {settings.node}"


def _facts(facts: wire.NodeFacts) -> Iterator[str]:
    yield f"GPUs: {len(facts.gpus)}"
    for gpu in facts.gpus:
        usable = (gpu.total_bytes - gpu.reserved_bytes) / _GIB
        yield f"  {gpu.gpu:<5} {gpu.name}, {usable:.2f} GiB usable, {gpu.uuid}"
    if facts.host is not None:
        limit = facts.host.memory_limit_bytes
        bounded = f", limited to {limit / _GIB:.1f} GiB by {facts.host.memory_limit_source}" if limit else ""
        yield f"Host: {facts.host.memory_total_bytes / _GIB:.1f} GiB of memory{bounded}"


async def _ask_server(settings: AgentSettings, hello: wire.Hello) -> wire.Welcome:
    """What the server says to this hello."""
    link = await Link.open(settings.server, credentials(settings))
    try:
        welcome = await link.greet(hello)
        await _say_goodbye(link)
        return welcome
    finally:
        await link.close()


async def _say_goodbye(link: Link) -> None:
    """For a server that knows no checks and took the agent in: it must not take the silence after it for trouble.

    One that knows them has closed. So a check does not insist on any of it.
    """
    try:
        await link.send(wire.encode(wire.Bye(seq=1, at=time.time(), reason="checked")))
        while not isinstance(await asyncio.wait_for(link.receive(), 3), wire.Ack):
            pass
    except (LinkError, asyncio.TimeoutError):
        return
