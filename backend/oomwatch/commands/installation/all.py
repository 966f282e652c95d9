"""Every family of checks, in the order in which a person would look."""

from collections.abc import Callable, Iterable, Iterator
from functools import partial

from oomwatch.commands.installation import (
    cards,
    database,
    folders,
    limits,
    listening,
    nats,
    python,
    reach,
    rights,
    rulesfile,
    schedulers,
)
from oomwatch.commands.installation.asked import Asked
from oomwatch.commands.installation.finding import Family, Finding

Check = Callable[[], Iterable[Finding]]
SETTINGS = Family("settings")


def findings(asked: Asked) -> Iterator[Finding]:
    """Of all checks that these settings ask for. One that fails by a defect takes no other along."""
    first: tuple[tuple[str, Check], ...] = (("python", python.checks), ("settings", partial(_settings, asked)))
    for name, check in (*first, *_of(asked)):
        yield from _guarded(name, check)


def _settings(asked: Asked) -> Iterator[Finding]:
    for who, mistake in asked.mistakes:
        yield SETTINGS.wrong(who, mistake, f"oomwatch{'-agent' if who == 'agent' else ' serve'} --help lists settings")
    for who, settings in (("server", asked.server), ("agent", asked.agent)):
        if settings is not None:
            yield SETTINGS.ok(who, "all can be used")


def _of(asked: Asked) -> Iterator[tuple[str, Check]]:
    if asked.server is not None:
        yield "folders", partial(folders.checks, asked.server)
        yield "database", partial(database.checks, asked.server)
        yield "rules", partial(rulesfile.checks, asked.server, asked.environ)
        yield "address", partial(listening.checks, asked.server)
        yield "NATS", partial(nats.checks, asked.server)
    if asked.agent is not None:
        yield "GPUs", partial(cards.checks, asked.agent)
        yield "rights", partial(rights.checks, asked.agent)
        yield "server", partial(reach.checks, asked.agent)
    yield "limits", partial(limits.checks, serves=asked.server is not None)
    yield "schedulers", partial(schedulers.checks, asked.environ)


def _guarded(name: str, check: Check) -> Iterator[Finding]:
    try:
        yield from check()
    except Exception as error:
        yield Family(name).wrong("check", f"it failed: {error!r}", "report it as a defect of oomwatch, please")
