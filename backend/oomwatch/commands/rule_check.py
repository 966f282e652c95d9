"""`oomwatch check`: the mistakes of a rule file, and what its channels lack here."""

import argparse
import asyncio
import os

from oomwatch.commands.given import rules_file
from oomwatch.notify import sighting
from oomwatch.rulefile import RuleFileError, read_rules
from oomwatch.units import counted

FAILED = 1


def run(options: argparse.Namespace) -> int:
    """List every mistake. Gives the exit status."""
    path = rules_file(options.file)
    try:
        found = read_rules(path)
    except RuleFileError as error:
        print(error)
        return FAILED
    except Exception as error:
        print(f"{path}: reading it failed by a defect of oomwatch: {error!r}; please report it, with the file")
        return FAILED
    doubts = asyncio.run(sighting.doubts(found.notify, os.environ))
    for doubt in doubts:
        print(f"{path}: {'' if doubt.is_mistake else 'note: '}{doubt.text}")
    if any(doubt.is_mistake for doubt in doubts):
        return FAILED
    rules, channels = len(found.rules.rules), len(found.notify.channels)
    print(f"{path}: {counted(rules, 'rule')}, {counted(channels, 'channel')}: fine")
    return 0
