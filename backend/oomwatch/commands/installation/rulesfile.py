"""The rule file and the channels in it. Secrets are looked up, and never shown; nothing is sent."""

import asyncio
from collections.abc import Iterator, Mapping

from oomwatch.commands.installation.finding import Family, Finding
from oomwatch.options import SettingError
from oomwatch.oserror import with_place
from oomwatch.settings import Settings, rules_path
from oomwatch.units import counted

FAMILY = Family("rules")


def checks(settings: Settings, environ: Mapping[str, str]) -> Iterator[Finding]:
    """What `oomwatch check` finds; a variable that is not here is a warning: it may be where the server runs."""
    from oomwatch.notify import sighting  # noqa: PLC0415 - of the server's extra
    from oomwatch.rulefile import RuleFileError, read_rules  # noqa: PLC0415

    try:
        path = rules_path(settings)
        found = read_rules(path)
    except (RuleFileError, SettingError, OSError) as error:
        yield FAMILY.wrong("rule file", with_place(error), "oomwatch check lists every mistake with its line")
        return
    channels = [channel.name for channel in found.notify.channels]
    yield FAMILY.ok("rule file", f"{path}: {counted(len(found.rules.rules), 'rule')}")
    doubts = asyncio.run(sighting.doubts(found.notify, environ))
    for doubt in doubts:
        state = FAMILY.wrong if doubt.is_mistake else FAMILY.warning
        yield state("channel", doubt.text, "set it where the server runs; oomwatch test-notify tries a channel")
    if not channels:
        yield FAMILY.warning("channels", "none: alerts are on the page alone", "docs/howto/notifications.md")
    elif not doubts:
        yield FAMILY.ok("channels", f"{', '.join(channels)}; oomwatch test-notify tries them")
