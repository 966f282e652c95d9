"""What the commands of the config doctor look like. Nothing heavy is loaded for it."""

import argparse
from collections.abc import Collection

from oomwatch.commands.client_flags import add_client_flags

DOCTOR = """\
Reads a training's configuration before it is started, and says what it means: what verl would refuse, which values have
no effect because others win, what each GPU works on, where its memory peaks, whether that fits, and what to set.

FILE is a YAML file, a launch script, a log with the configuration that verl printed, or a run's folder (with .hydra in
it); "-" is standard input. Overrides stand behind it as for verl: key=value, +key=value, ~key. Nothing is run, nothing
in it is evaluated, and nothing leaves this machine.

examples:
  oomwatch doctor --gpu H100 train.sh
  oomwatch doctor --gpu A100-40GB --model Qwen/Qwen2.5-7B ppo.yaml actor_rollout_ref.rollout.n=8
  oomwatch doctor --gpu H200 --gpus 8 --nodes 4 --verl 0.8 outputs/2026-11-30/12-00-00
  oomwatch doctor --gpu here --model ./models/ours/config.json - < train.sh
  oomwatch doctor --gpu H100 --json train.sh > report.json       in the checks of a repository of trainings
  oomwatch doctor --server http://monitor:8642 --run qwen7b_grpo --gpu H100

With --self it looks at this installation of oomwatch instead: Python and packages, GPUs, rights, folders, settings,
rules and channels, the database, and the way from an agent to its server; what is wrong is told with its remedy.

  oomwatch doctor --self
  oomwatch doctor --self --role agent --server https://oomwatch.example --token-file /etc/oomwatch/agent-token
  oomwatch doctor --self --role server --config /etc/oomwatch/server.yaml

Exit status: 0 where nothing speaks against starting it; 1 where verl would refuse it or it would not fit; 2 where it
cannot be read, or the command line cannot be used. Of --self: 0, with warnings or without; 1 where something is wrong.
docs/howto/check-a-configuration.md, docs/howto/check-an-installation.md"""


TEMPLATE = """\
Prints a configuration to begin with, in verl's own settings: the scenarios of two articles on memory with verl, with
what they claim and what is estimated for them. Without a name it lists them.

examples:
  oomwatch template
  oomwatch template T2
  oomwatch template M2 --format script > train.sh
  oomwatch template T3 --verl 0.8 --format overrides

Exit status: 0; 2 where there is no such template, or none for that version."""


def add_doctor_flags(parser: argparse.ArgumentParser) -> None:
    """The flags of `doctor`."""
    parser.add_argument("words", nargs="*", metavar="FILE|FOLDER|-|OVERRIDE", help="what to read, then overrides")
    parser.add_argument("--json", action="store_true", help="print the report as JSON (docs/reference/doctor.md)")
    for flag, metavar, text in _FLAGS:
        parser.add_argument(flag, metavar=metavar, help=text)
    parser.add_argument("--gpus", type=int, metavar="N", help="GPUs of a node, whatever the configuration says")
    parser.add_argument("--nodes", type=int, metavar="N", help="nodes, whatever the configuration says")
    parser.add_argument("--mean-length", type=int, metavar="TOKENS", help="of prompt and response together, if known")
    parser.add_argument(
        "--language", choices=("en", "zh"), default="en", help="of the sentences; --self speaks English (default: en)"
    )
    parser.add_argument("--all-settings", action="store_true", help="with --json: verl's defaults among the settings")
    add_client_flags(parser)
    parser.add_argument("--run", metavar="NAME", help="with --server: the run whose configuration to look at")
    installation = parser.add_argument_group(
        "with --self", "--server is then the one that this machine's agent sends to"
    )
    installation.add_argument(
        "--self", action="store_true", dest="itself", help="look at this installation of oomwatch"
    )
    for flag, metavar, text in _OF_ITSELF:
        installation.add_argument(flag, metavar=metavar, help=text)
    installation.add_argument(
        "--role",
        choices=("auto", "agent", "server", "both"),
        help="what is to run here; auto is an agent, and a server where its packages are installed (default: auto)",
    )


def given_of(options: argparse.Namespace, names: Collection[str]) -> list[str]:
    """The flags among these that the command line has."""
    given = (name for name in names if getattr(options, name) is not None and getattr(options, name) is not False)
    return [f"--{name.replace('_', '-')}" for name in given]


# Whom each flag is for, by its name in the options: a training's configuration, or --self.
FOR_A_CONFIGURATION = (
    *("verl", "gpu", "model", "critic_model", "host_memory", "gpus", "nodes", "mean_length", "all_settings"),
    *("reader_token", "reader_token_file", "run"),
)
FOR_ITSELF = ("config", "agent_config", "token_file", "role")
_OF_ITSELF = (
    ("--config", "FILE", "settings of the server, as for oomwatch serve"),
    ("--agent-config", "FILE", "settings of the agent, as for oomwatch-agent --config (OOMWATCH_CONFIG)"),
    ("--token-file", "FILE", "file with the agent's token"),
)
_FLAGS = (
    ("--verl", "VERSION", "verl's version, such as 0.9.1; without it told by the settings, else the newest"),
    ("--gpu", "NAME", 'the card ("H100", "NVIDIA A100-SXM4-40GB"), its memory ("79GiB"), or "here"'),
    ("--model", "NAME", "the actor's model, or the path of its config.json; without it the configuration's"),
    ("--critic-model", "NAME", "the critic's model, or its config.json; without it the actor's"),
    ("--host-memory", "SIZE", "that the run may take of a node, such as 1000GiB"),
)


def add_template_flags(parser: argparse.ArgumentParser) -> None:
    """The flags of `template`."""
    parser.add_argument("name", nargs="?", metavar="NAME", help="T1, T2, T3, M1, M2 or M3; without it they are listed")
    parser.add_argument("--verl", metavar="VERSION", help="verl's version (default: the newest known)")
    parser.add_argument(
        "--format", choices=("yaml", "overrides", "script"), default="yaml", help="how to print it (default: yaml)"
    )
    parser.add_argument("--language", choices=("en", "zh"), default="en", help="of the comments (default: en)")
