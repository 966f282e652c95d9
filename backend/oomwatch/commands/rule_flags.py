"""What `oomwatch rules`, `check` and `test-notify` take. Light to load: every command of `oomwatch` reads it."""

import argparse
from pathlib import Path

from oomwatch.wire import SEVERITIES

RULES = """\
What rules there are, what a changed file would have said, and switching single ones on and off; and all of them for
Prometheus."""

CHECK = """\
Reads a rule file as the server would, and lists every mistake with its line and column. Exit status 1 where there
are any. Variables and files that channels name and that are not here are noted: the server may run elsewhere."""

TEST_NOTIFY = """\
Sends a harmless message to every channel of the rule file (or to one), and says what became of it. Exit status 1 where
one was not delivered."""

TRY = """\
Says what a changed rule file would have done with the last 24 hours of the database, rule by rule, beside the rules in
force: how often it would have fired, which alerts are new and which gone, and how many of them came before a failure.
Nothing is changed and nobody is told. docs/howto/change-rules.md

examples:
  oomwatch rules try new.yaml
  oomwatch rules try new.yaml --run qwen7b --hours 6
  oomwatch rules try new.yaml --server http://monitor:8642

Exit status: 0 where it was tried, whatever came out; 1 where the file has mistakes or there is nothing to try it on."""

EXPORT = """\
Writes the rules of alerts.yaml as a rule file for Prometheus, whose alerts fire on what this server exports at
/metrics, and rules that watch oomwatch itself. See docs/howto/prometheus-rules.md.

examples:
  oomwatch rules export > oomwatch.rules.yml && promtool check rules oomwatch.rules.yml
  oomwatch rules export --keep-firing-for /etc/prometheus/rules/oomwatch.yml

Exit status: 0 where the file was written; 1 where the rules have mistakes or it cannot be written."""


LIST = """\
Lists the rules of a file (--rules), or those in force on a running server (--server) with how many alerts of each fire
now. Without either it reads the file that the server would use here."""

SHOW = """\
Tells everything of one rule: conditions, times, words, overrides."""

SWITCH = """\
Switches a rule {what}, in the file itself: its text is edited in place, comments and layout stay. With --run or --node
it does so for these alone, by an entry under overrides:. A running server takes the file over within seconds. With
--server the server is asked to do it, which it does when it was started with --rules-editable.

examples:
  oomwatch rules {name} gpu_memory_high
  oomwatch rules {name} host_memory_high --severity warning --node gpu-07
  oomwatch rules {name} memory_forecast --run "qwen*" --server http://monitor:8642"""


def add_check_flags(parser: argparse.ArgumentParser) -> None:
    """The flags of `check`."""
    parser.add_argument("file", type=Path, nargs="?", help="rule file; without it the one that the server would use")


def add_test_notify_flags(parser: argparse.ArgumentParser) -> None:
    """The flags of `test-notify`."""
    parser.add_argument("--rules", type=Path, metavar="FILE", help="rule file; without it the one the server would use")
    parser.add_argument("channel", nargs="?", help="name of the channel; without it all")


def add_list_flags(parser: argparse.ArgumentParser) -> None:
    """The flags of `rules list`."""
    parser.add_argument("--rules", type=Path, metavar="FILE", help="rule file; without it the one the server would use")
    parser.add_argument("--json", action="store_true", help="print JSON, as the server's /api/v1/rules/all gives it")


def add_show_flags(parser: argparse.ArgumentParser) -> None:
    """The flags of `rules show`."""
    _add_name(parser)
    add_list_flags(parser)


def add_switch_flags(parser: argparse.ArgumentParser) -> None:
    """The flags of `rules enable` and `rules disable`."""
    _add_name(parser)
    parser.add_argument("--run", metavar="NAME", help="for this run alone; a shell pattern, as in overrides:")
    parser.add_argument("--node", metavar="NAME", help="for this node alone; likewise")
    parser.add_argument("--rules", type=Path, metavar="FILE", help="rule file; without it the one the server would use")


def _add_name(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="the rule's name, for example gpu_memory_high")
    parser.add_argument("--severity", choices=SEVERITIES, help="at this severity alone; without it at all")


def add_try_flags(parser: argparse.ArgumentParser) -> None:
    """The flags of `rules try`."""
    parser.add_argument("file", metavar="FILE", help="the changed rule file; - reads standard input")
    parser.add_argument(
        "--against", type=Path, metavar="FILE",
        help="rules to compare with; without it those that the server would use",
    )  # fmt: skip
    parser.add_argument("--alone", action="store_true", help="compare with nothing")
    parser.add_argument("--db", metavar="FILE|URL", help="the server's database (OOMWATCH_DB)")
    parser.add_argument("--hours", type=float, default=24.0, metavar="N", help="how far back (default: 24)")
    parser.add_argument("--run", metavar="NAME", help="this run alone")
    parser.add_argument("--node", metavar="NAME", help="this node alone")
    parser.add_argument("--all", action="store_true", help="judge rules that are the same in both files too")
    parser.add_argument("--budget", default="60s", metavar="TIME", help="how long it may take (default: 60s)")
    parser.add_argument("--json", action="store_true", help="print JSON, as the server's /api/v1/rules/try gives it")


def add_export_flags(parser: argparse.ArgumentParser) -> None:
    """The flags of `rules export`."""
    parser.add_argument("file", type=Path, nargs="?", metavar="FILE", help="file to write; without it standard output")
    parser.add_argument("--rules", type=Path, metavar="FILE", help="rule file; without it the one the server would use")
    parser.add_argument(
        "--keep-firing-for", action="store_true", help="with keep_firing_for, which Prometheus knows from 2.42 on"
    )
