"""What the commands that tell of the past take. Light to load: every command of `oomwatch` reads it."""

import argparse
from pathlib import Path

SCORECARD = """\
Says how good the warnings of each rule were: of which failures it warned a minute or a step ahead, how early, and how
often for nothing. Without --server it reads the database of a server on this machine."""

INCIDENT = """\
Tells of the incidents that the server wrote down, each when something ran out of memory: the last fifteen minutes of
every series, the phases, the message, the alerts before it, causes and advice. Without an ID it lists them."""

STORAGE = """\
Says how large the database of a running server is, how fast it grows, and how much of it is history of which fineness.
docs/explanation/history.md

The server is the one of --server or OOMWATCH_SERVER, else http://127.0.0.1:8642.
Exit status: 0; 1 where the server cannot be reached or refuses, with what it says on standard error."""


def add_scorecard_flags(parser: argparse.ArgumentParser) -> None:
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--server", metavar="URL", help="ask a server, for example http://127.0.0.1:8642")
    where.add_argument("--db", metavar="FILE|URL", help="read a database; without it the one that a server would use")
    parser.add_argument("--rules", type=Path, metavar="FILE", help="with --db: rule file; without it the server's own")
    parser.add_argument("--token-file", type=Path, metavar="FILE", help="reader token (OOMWATCH_READER_TOKEN)")
    parser.add_argument("--since", metavar="TIME", default="7d", help="how far back, for example 24h (default: 7d)")
    parser.add_argument("--run", metavar="NAME", help="of this run alone")
    parser.add_argument("--json", action="store_true", help="print JSON, as the server's /api/v1/scorecard gives it")


def add_incident_flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("id", nargs="?", metavar="ID|latest", help="which one; without it all are listed")
    parser.add_argument("--incidents", type=Path, metavar="DIR", help="their folder; without it the server's own")
    parser.add_argument("--db", metavar="FILE|URL", help="the server's database, beside which they are")
    parser.add_argument("--json", action="store_true", help="print the whole report as JSON")
