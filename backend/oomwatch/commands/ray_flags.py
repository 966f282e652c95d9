"""What `oomwatch ray` looks like. Nothing heavy is loaded for it."""

import argparse

RAY = """\
Watches every node of a running Ray cluster: one agent on each, started from here, and kept until it is stopped."""

START = """\
Starts an agent on every node of a running Ray cluster. The agents outlive this command and the trainings; one that dies
is started again, and a node that joins later gets one too. They take no CPU and no GPU of the cluster's.

Where the nodes have this version of oomwatch it is used there; else its code is sent to them by Ray, and what it needs
is installed there by Ray's own pip (--code). The token goes to the agents by a pipe: it is on no command line, in no
environment and in none of Ray's logs.

What stands behind -- is handed to each agent (oomwatch-agent --help).

examples:
  oomwatch ray start --server http://monitor:8642 --token-file token
  oomwatch ray start --address 10.0.0.1:6379 --server https://oomwatch.example --token-file token -- --interval 0.5

Exit status: 0 where every node has an agent; 1 where one has none yet, or agents are kept already; 2 where a flag
or Ray cannot be used. docs/howto/ray.md"""

STATUS = """\
Says of each node of a Ray cluster whether an agent runs there, and where one does not, what it said last.
Exit status 1 where a node has none."""

STOP = """\
Ends the agents that "oomwatch ray start" has started, and what keeps them."""


def add_cluster_flags(parser: argparse.ArgumentParser) -> None:
    """Which cluster: of all three."""
    parser.add_argument(
        "--address",
        metavar="auto|HOST:PORT|ray://...",
        default="auto",
        help="the cluster; auto is the one that this machine is a node of (default: auto)",
    )


def add_start_flags(parser: argparse.ArgumentParser) -> None:
    """The flags of `ray start`."""
    add_cluster_flags(parser)
    parser.add_argument("--server", metavar="URL", required=True, help="oomwatch's server, as the nodes reach it")
    parser.add_argument("--token-file", metavar="FILE", help="file with the token for agents, on this machine")
    parser.add_argument(
        "--name-by",
        choices=("host", "id"),
        default="host",
        help="call nodes by the host's name, or by that and Ray's id where hosts share a name (default: host)",
    )
    parser.add_argument(
        "--code",
        choices=("auto", "installed", "ship"),
        default="auto",
        help="use what is installed on the nodes, or ship this version; auto ships where it is not on all (default)",
    )
    parser.add_argument("--wait", metavar="TIME", default="60s", help="how long to wait for the agents (default: 60s)")
    parser.add_argument("words", nargs="*", metavar="-- AGENT-FLAG", help="flags for each agent")


def add_status_flags(parser: argparse.ArgumentParser) -> None:
    """The flags of `ray status`."""
    add_cluster_flags(parser)
    parser.add_argument("--json", action="store_true", help="print it as JSON, with the agents' last lines")
