"""oomwatch: the server and its tools."""

import argparse
import sys
from collections.abc import Callable, Sequence

from oomwatch.commandline import command_line
from oomwatch.options import SettingError
from oomwatch.oserror import written_out

MISUSED = 2


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line. Gives the exit status."""
    with written_out():
        return _run(arguments)


def _run(arguments: Sequence[str] | None) -> int:
    options, more = command_line().parse_known_args(arguments)
    if more and not hasattr(options, "words"):
        command: argparse.ArgumentParser = options.its_parser
        command.error(f"unrecognized arguments: {' '.join(more)}")
    elif more:
        options.words = [*options.words, *more]  # of commands that take words of verl's, which may stand between flags
    run: Callable[[argparse.Namespace], int] = options.run_command
    try:
        return run(options)
    except SettingError as error:
        print(f"oomwatch: {error}", file=sys.stderr)
        return MISUSED
    except KeyboardInterrupt:
        return 0


if __name__ == "__main__":
    sys.exit(main())
