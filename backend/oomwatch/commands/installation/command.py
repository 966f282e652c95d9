"""`oomwatch doctor --self`: what is wrong with an installation, and the remedy."""

import argparse
import os
import sys
import textwrap
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from oomwatch.commands.doctor_flags import FOR_A_CONFIGURATION, given_of
from oomwatch.commands.installation.all import findings
from oomwatch.commands.installation.asked import asked
from oomwatch.commands.installation.finding import Finding
from oomwatch.figures import printable
from oomwatch.options import SettingError

WRONG = 1
MARKS = {"ok": "ok", "warning": "warning", "wrong": "WRONG"}
REMEDY_COLUMNS = 110


def run(options: argparse.Namespace) -> int:
    """Check, and tell. 1 where something is wrong; warnings are none."""
    if unfit := [*given_of(options, FOR_A_CONFIGURATION), *options.words]:
        raise SettingError("--self looks at the installation, and at no configuration: drop " + " ".join(unfit))
    if options.language != "en":
        raise SettingError("--language: --self speaks English, as settings' mistakes and logs do; drop it")
    found = list(findings(asked(options, os.environ)))
    if options.json:
        print(msgspec.json.format(msgspec.json.encode(found), indent=1).decode())
    else:
        sys.stdout.writelines(f"{line}\n" for line in told(found))
    return WRONG if any(one.state == "wrong" for one in found) else 0


def told(found: Sequence[Finding]) -> Iterator[str]:
    """A table, with each remedy below its line, and how it comes out."""
    wide = max((len(_what(one)) for one in found), default=0)
    for one in found:
        yield f"{MARKS[one.state]:<8} {_what(one):<{wide}}  {printable(one.said)}".rstrip()
        if one.remedy is not None:
            yield from textwrap.wrap(
                printable(one.remedy), REMEDY_COLUMNS, initial_indent=" " * 9 + "-> ", subsequent_indent=" " * 12
            )
    yield ""
    yield summed(found)


def _what(one: Finding) -> str:
    return printable(f"{one.family}: {one.what}")


def summed(found: Iterable[Finding]) -> str:
    """In one sentence."""
    states = [one.state for one in found]
    wrong, warnings = states.count("wrong"), states.count("warning")
    more = f", {warnings} with a warning" if warnings else ""
    if wrong:
        return f"{wrong} of {len(states)} checks found something wrong{more}"
    return f"all {len(states)} checks passed{more}"
