"""`oomwatch record` and `oomwatch replay`: runs to traces, and traces to what rules say of them."""

import argparse
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from oomwatch.backtest.inputs import sources_of
from oomwatch.backtest.source import InputError
from oomwatch.commands.given import known_of, rules_file
from oomwatch.options import SettingError
from oomwatch.oserror import with_remedy
from oomwatch.rulefile import RuleFileError, read_rules
from oomwatch.trace import Line, TraceError, read_trace, replay
from oomwatch.units import counted

FAILED = 1


def run_record(options: argparse.Namespace) -> int:
    """Write one input into a trace. Gives the exit status."""
    known = known_of(options)
    try:
        sources = sources_of(options.inputs, known, together=options.together or len(options.inputs) > 1)
        if len(sources) > 1:
            raise SettingError(
                f"{options.inputs[0]} has {len(sources)} series, each an input of its own, and a trace holds one"
            )
        count = _write(options.trace, sources[0].lines, over=options.force)
    except InputError as error:
        print(error, file=sys.stderr)
        return FAILED
    except OSError as error:
        print(f"{options.trace}: cannot be written: {with_remedy(error)}", file=sys.stderr)
        return FAILED
    for note in sources[0].notes:
        print(f"{sources[0].name}: {note}", file=sys.stderr)
    print(f"{options.trace}: {counted(count, 'line')}")
    return 0


def _write(path: Path, lines: Callable[[], Iterator[Line]], *, over: bool) -> int:
    """The number of lines written. Raises OSError, also where the file is there and may not be written over."""
    with path.open("wb" if over else "xb") as file:
        count = 0
        for line in lines():
            file.write(msgspec.json.encode(line) + b"\n")
            count += 1
    return count


def run_replay(options: argparse.Namespace) -> int:
    """Print what the rules say of a trace. Gives the exit status."""
    try:
        rules = read_rules(rules_file(options.rules)).rules
        for transition in replay(read_trace(options.trace), rules):
            print(msgspec.json.encode(transition).decode())
    except (RuleFileError, TraceError) as error:
        print(error, file=sys.stderr)
        return FAILED
    return 0
