"""What the commands that run the server look like. Nothing heavy is loaded for it."""

import argparse

from oomwatch.options import add_options
from oomwatch.settings import Settings

SERVE = """\
Runs the server: it takes what agents send, judges it by the rules, keeps it, and shows and tells it.

examples:
  oomwatch serve
      on this machine only, at http://127.0.0.1:8642
  oomwatch serve --listen 0.0.0.0:8642 --token-file /etc/oomwatch/token --reader-token-file /etc/oomwatch/reader-token
      for a cluster; agents need the one token, browsers the other ("oomwatch token" makes more)
  oomwatch serve --db postgresql+psycopg://oomwatch@db/oomwatch
      with a PostgreSQL database instead of a file

A changed rule file is taken over within seconds (or at once: kill -HUP). A flag is stronger than the environment, which
is stronger than the file of --config."""

UP = """\
Runs the server and an agent on this machine, and stops both on Ctrl-C. Without a GPU the agent simulates a training run
on a node called "demo", so that there is something to see; it is marked as simulated everywhere."""


def add_serve_flags(parser: argparse.ArgumentParser) -> None:
    """The flags of `serve`."""
    add_options(parser, Settings)


def add_up_flags(parser: argparse.ArgumentParser) -> None:
    """The flags of `up`."""
    for flag, metavar, text in _UP_FLAGS:
        parser.add_argument(flag, metavar=metavar, help=text)
    parser.add_argument(
        "--rules-editable", action="store_true", help="let rules be changed on the page (serve: the same)"
    )


_UP_FLAGS = (
    ("--listen", "HOST:PORT", "address of the server (default: 127.0.0.1:8642)"),
    ("--db", "FILE|URL", "database (default: a file in the user's data folder)"),
    ("--rules", "FILE", "rule file (default: ./alerts.yaml, else the one that is shipped)"),
    ("--log", "FILE", "training log for the agent to follow"),
    ("--ray", "auto|off|DIR", "Ray session for the agent to look for"),
    ("--run", "NAME", "name of the training run, where its logs do not tell"),
    ("--node", "NAME", "name of this node (default: the host's)"),
    ("--simulate", "SCENARIO", "simulate a node instead of reading this one"),
)
