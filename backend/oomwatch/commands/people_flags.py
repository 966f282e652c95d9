"""What `oomwatch alerts` and `oomwatch silence` take. Light to load: every command of `oomwatch` reads it."""

import argparse

from oomwatch.commands.client_flags import add_client_flags

STATES = ("firing", "pending", "resolved", "all")

ALERTS = """\
Lists the alerts of a running server, and says who takes care of them. Without a word it lists what fires now.
docs/howto/silence-and-acknowledge.md

examples:
  oomwatch alerts
  oomwatch alerts --state all --run qwen7b
  oomwatch alerts show 5b0d2f6c1a9e4477
  oomwatch alerts ack 5b0d2f6c1a9e4477 --note "lowering the batch size"
  oomwatch alerts ack --match 'node="gpu-07"' --by lin

The server is the one of --server or OOMWATCH_SERVER, else http://127.0.0.1:8642.
Exit status: 0; 1 where the server cannot be reached or refuses, with what it says on standard error."""

SHOW = """\
Tells everything that is known of one alert: what it says and advises, its numbers, why nobody is sent word of it, who
takes care of it, and what has become of it."""

ACK = """\
Takes care of an alert, or of every alert that fires and matches: it is neither repeated nor passed on to others any
more. Its changes and its end are told all the same."""

UNACK = """\
Takes an acknowledgement back: nobody takes care of the alert any more."""

SILENCE = """\
Has certain alerts sent to nobody for a time. They stay on the page, with the reason.

A matcher is a label (alert, severity, node, gpu, run), one of = != =~ !~, and a value. All of them have to hold. A
regular expression has to match the whole value. Put a matcher into quotation marks of the shell.

examples:
  oomwatch silence preview 'node="gpu-07"' 'severity!="critical"'
  oomwatch silence add 'node="gpu-07"' 'severity!="critical"' --for 2h --note "new driver"
  oomwatch silence add 'run=~"sweep-.*"' --for 30m --preview
  oomwatch silence list
  oomwatch silence end 0f52aa3b88d1c6e2

The server is the one of --server or OOMWATCH_SERVER, else http://127.0.0.1:8642.
Exit status: 0; 1 where the server cannot be reached or refuses, with what it says on standard error."""

ADD = """\
Makes a silence, which takes effect at once. With --preview it only says what the silence would hide, and makes none."""
LIST = """\
Lists the silences in force, yet to come, and over in the last 7 days."""
END = """\
Ends a silence now, or calls off one that is yet to come. What it hid and fires still is told then."""
PREVIEW = """\
Says what a silence with these matchers would hide: alerts that fire now, and how many of those that fired in the last
day and week. Nothing is changed."""


def add_alerts_flags(parser: argparse.ArgumentParser) -> None:
    """The flags of `alerts` alone."""
    parser.add_argument("--state", choices=STATES, default="firing", help="which (default: firing)")
    parser.add_argument("--run", metavar="NAME", help="only those of this run")
    parser.add_argument("--node", metavar="NAME", help="only those of this node")
    parser.add_argument("--alert", metavar="NAME", help="only those of this rule")
    parser.add_argument("--limit", type=int, default=100, metavar="N", help="the latest N, up to 1000 (default: 100)")
    parser.add_argument("--json", action="store_true", help="print JSON, as the server's API gives it")
    add_client_flags(parser)


def add_show_flags(parser: argparse.ArgumentParser) -> None:
    """The flags of `alerts show`."""
    parser.add_argument("id", metavar="ID", help="of the alert, as `oomwatch alerts` shows it")
    _add_shared_flags(parser)


def add_ack_flags(parser: argparse.ArgumentParser) -> None:
    """The flags of `alerts ack`."""
    parser.add_argument("id", metavar="ID", nargs="?", help="of the alert, as `oomwatch alerts` shows it")
    parser.add_argument("--match", metavar="MATCHER", action="append", help="all that fire and match; may be repeated")
    parser.add_argument("--note", metavar="TEXT", help="what others should know")
    parser.add_argument("--by", metavar="NAME", help="who takes care (default: the name of the user)")
    _add_shared_flags(parser)


def add_silence_flags(parser: argparse.ArgumentParser) -> None:
    """The flags of `silence add`."""
    add_preview_flags(parser)
    parser.add_argument("--for", dest="duration", metavar="TIME", required=True, help="how long, such as 2h or 1d12h")
    parser.add_argument("--note", metavar="TEXT", help="why")
    parser.add_argument("--by", metavar="NAME", help="who says so (default: the name of the user)")
    parser.add_argument("--preview", action="store_true", help="say what it would hide, and make none")


def add_preview_flags(parser: argparse.ArgumentParser) -> None:
    """The flags of `silence preview`."""
    parser.add_argument("match", nargs="+", metavar="MATCHER", help="a condition on the alerts' labels")
    add_list_flags(parser)


def add_end_flags(parser: argparse.ArgumentParser) -> None:
    """The flags of `silence end`."""
    parser.add_argument("id", metavar="ID", help="of the silence, as `oomwatch silence list` shows it")
    add_list_flags(parser)


def add_list_flags(parser: argparse.ArgumentParser) -> None:
    """The flags of `silence list`."""
    parser.add_argument("--json", action="store_true", help="print JSON, as the server's API gives it")
    add_client_flags(parser)


def _add_shared_flags(parser: argparse.ArgumentParser) -> None:
    """Flags that `alerts` has as well: what is given before `show` counts where it is not given behind it."""
    parser.add_argument("--json", action="store_true", default=argparse.SUPPRESS, help="print JSON")
    add_client_flags(parser, default=argparse.SUPPRESS)
