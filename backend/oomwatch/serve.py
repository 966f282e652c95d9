"""`oomwatch serve`: the server, with its log, from the command line."""

import argparse
import asyncio
import logging
import os
import sys

from oomwatch import __version__
from oomwatch.options import Resolved, resolve
from oomwatch.oserror import with_place
from oomwatch.rulefile import RuleFileError
from oomwatch.settings import Settings
from oomwatch.store.errors import StoreError
from oomwatch.web.server import serve

FAILED = 1


def run(options: argparse.Namespace) -> int:
    """Serve until a signal asks it to end. Gives the exit status."""
    resolved = resolve(Settings, options, os.environ)
    _start_log(resolved)
    try:
        asyncio.run(serve(resolved.settings))
    except RuleFileError as error:
        print(error, file=sys.stderr)
        return FAILED
    except (StoreError, OSError) as error:
        print(f"oomwatch: {with_place(error)}", file=sys.stderr)
        return FAILED
    return 0


class LogFormatter(logging.Formatter):
    """What agents call their nodes and runs must neither command a terminal nor pass for a line of the log's own."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - logging's name
        lines = super().formatMessage(record).split("\n")
        return "\n    ".join("".join(one if one.isprintable() else "\ufffd" for one in line) for line in lines)


def _start_log(resolved: Resolved[Settings]) -> None:
    level = resolved.settings.log_level.upper()
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(LogFormatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    logging.basicConfig(level=level, handlers=[handler])
    logging.getLogger("uvicorn").setLevel(max(logging.WARNING, logging.getLogger().level))
    logging.getLogger("alembic").setLevel(max(logging.WARNING, logging.getLogger().level))
    log = logging.getLogger("oomwatch")
    log.info("oomwatch %s", __version__)
    for line in resolved.describe():
        log.debug("%s", line)
