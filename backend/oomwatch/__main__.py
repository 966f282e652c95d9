"""oomwatch: the server and its tools."""

import argparse
import os
import sys
from collections.abc import Callable, Sequence

from oomwatch.commandline import command_line
from oomwatch.options import SettingError

MISUSED = 2


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line. Gives the exit status."""
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
    except BrokenPipeError:  # the reader of our output, such as head, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        return 0


if __name__ == "__main__":
    sys.exit(main())
