"""What `oomwatch export` takes. Light to load: every command of `oomwatch` reads it."""

import argparse
from pathlib import Path

WHATS = ("gpus", "hosts", "events", "transitions", "trace")

EXPORT = """\
Writes what a server has stored into files: for a notebook, for a colleague, or to keep for longer than the server does.
It reads the database, also while the server runs; nothing is changed, and an hour at a time is in memory.

  gpus         readings of every GPU: a row a reading, or with --every a row each ten seconds or minute
  hosts        the same of every host
  events       steps, out-of-memory messages, configurations and the like; `body` is JSON
  transitions  every change of every alert
  trace        readings and events as a recording that oomwatch replay and oomwatch backtest read

Columns are named with their units (used_bytes, power_watts; a ratio of 1 is 100 %). Times are UTC. What was not read
is empty in CSV and null in Parquet, never 0. With --every there are the least, the greatest and the mean of each column
(used_bytes_min, ...) and `readings`, how many they are of.

Every reading is kept for a day, ten seconds together for a week, minutes for 90 days (settings history_raw_keep,
history_10s_keep, history_1m_keep): for older times say --every. Where something is no longer kept so fine, it is said.

examples:
  oomwatch export gpus --last 1h --node gpu-07 --columns used_bytes,power_watts > readings.csv
      one node's last hour
  oomwatch export gpus hosts events transitions --run qwen7b --last 7d --every 10s --format parquet --output qwen7b/
      everything of a run (needs: pip install "oomwatch[parquet]")
  oomwatch export trace --from 2026-11-30T01:00Z --to 2026-11-30T03:00Z --output night/
      what happened last night, for oomwatch replay night/trace.jsonl --rules new.yaml

Exit status: 0 where it was written; 1 where the database cannot be read or a file not written."""


def add_export_flags(parser: argparse.ArgumentParser) -> None:
    """The flags of the command."""
    parser.add_argument("what", nargs="+", choices=WHATS, metavar="WHAT", help=f"one or more of {', '.join(WHATS)}")
    parser.add_argument("--db", metavar="FILE|URL", help="database; without it the one that a server would use")
    parser.add_argument(
        "--output", "-o", type=Path, metavar="FOLDER",
        help="where a file of each goes; without it one of them to standard output, as CSV or a trace",
    )  # fmt: skip
    parser.add_argument("--format", choices=("csv", "parquet"), default="csv", help="of the tables (default: csv)")
    parser.add_argument("--force", action="store_true", help="write over files that are there already")
    parser.add_argument("--last", metavar="TIME", help="how far back, for example 12h (default: 24h)")
    parser.add_argument("--from", dest="start", metavar="MOMENT", help="ISO 8601, UTC where it says nothing, or Unix")
    parser.add_argument("--to", dest="end", metavar="MOMENT", help="the same (default: now)")
    parser.add_argument("--node", action="append", default=[], metavar="NAME", help="of this node; may be repeated")
    parser.add_argument("--gpu", action="append", default=[], metavar="LABEL", help="this GPU of those nodes alone")
    parser.add_argument("--run", metavar="NAME", help="of the nodes of this run, and of its own events and alerts")
    parser.add_argument("--every", choices=("10s", "1m"), help="least, greatest and mean of so long, not every reading")
    parser.add_argument("--columns", metavar="NAMES", help="of gpus and hosts these alone, with commas between")
