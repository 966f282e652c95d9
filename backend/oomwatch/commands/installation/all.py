"""Every family of checks, in the order in which a person would look."""

from collections.abc import Callable, Iterable, Iterator, Mapping
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
from oomwatch.settings import Settings, database_address, is_postgres

Check = Callable[[], Iterable[Finding]]
SETTINGS = Family("settings")


def findings(asked: Asked) -> Iterator[Finding]:
    """Of all checks that these settings ask for. One that fails by a defect takes no other along."""
    for name, check in _of(asked, _extras(asked)):
        yield from _guarded(name, check)


def _extras(asked: Asked) -> frozenset[str]:
    """Of our distribution, which what is to run here cannot do without."""
    wanted = {"server"} if "server" in asked.roles else set()
    if asked.server is not None and is_postgres(database_address(asked.server)):
        wanted.add("postgres")
    return frozenset(wanted)


def _settings(asked: Asked) -> Iterator[Finding]:
    for who, mistake in asked.mistakes:
        yield SETTINGS.wrong(who, mistake, f"oomwatch{'-agent' if who == 'agent' else ' serve'} --help lists settings")
    for who, settings in (("server", asked.server), ("agent", asked.agent)):
        if settings is not None:
            yield SETTINGS.ok(who, "all can be used")


def _of(asked: Asked, extras: frozenset[str]) -> Iterator[tuple[str, Check]]:
    yield "python", partial(python.checks, extras)
    yield "settings", partial(_settings, asked)
    lacking = {extra for extra in extras if python.lacks(extra)}
    if asked.server is not None and "server" not in lacking:
        yield from _of_server(asked.server, asked.environ, lacking)
    if asked.agent is not None:
        yield "GPUs", partial(cards.checks, asked.agent)
        yield "rights", partial(rights.checks, asked.agent)
        yield "server", partial(reach.checks, asked.agent)
    yield "limits", partial(limits.checks, asked.roles)
    yield "schedulers", partial(schedulers.checks, asked.environ)


def _of_server(settings: Settings, environ: Mapping[str, str], lacking: set[str]) -> Iterator[tuple[str, Check]]:
    yield "folders", partial(folders.checks, settings)
    if "postgres" not in lacking:
        yield "database", partial(database.checks, settings)
    yield "rules", partial(rulesfile.checks, settings, environ)
    yield "address", partial(listening.checks, settings)
    yield "NATS", partial(nats.checks, settings)


def _guarded(name: str, check: Check) -> Iterator[Finding]:
    try:
        yield from check()
    except Exception as error:
        yield Family(name).wrong("check", f"it failed: {error!r}", "report it as a defect of oomwatch, please")
