"""The command line of oomwatch: every command with its flags, and the module that does it.

What is loaded here is loaded by every command, so it is light: flags and texts.
"""

import argparse
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import NamedTuple, NoReturn

from oomwatch import __version__
from oomwatch.commands import (
    access_flags,
    doctor_flags,
    export_flags,
    flags,
    people_flags,
    program_flags,
    ray_flags,
    report_flags,
    rule_flags,
)
from oomwatch.commands.client_flags import add_client_flags

_DESCRIPTION = """\
Warns before a GPU or host runs out of memory in reinforcement-learning post-training of LLMs, and says what to change.

Start with "oomwatch up": it runs the server and an agent on this machine, and says where the dashboard is.
For a cluster, run "oomwatch serve" on one machine and "oomwatch-agent --server HOST:8642" on every GPU node."""


class _Parser(argparse.ArgumentParser):
    """Says of itself where more is said; the parsers of its commands are such ones too."""

    def error(self, message: str) -> NoReturn:
        super().error(f"{message}; see {self.prog} --help")


def command_line() -> argparse.ArgumentParser:
    """Every command with its flags."""
    parser: argparse.ArgumentParser = _Parser(
        prog="oomwatch", description=_DESCRIPTION, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--version", action="version", version=f"oomwatch {__version__}")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    up = _command(
        commands, "up", "run the server and an agent on this machine", program_flags.UP, _loaded("oomwatch.up")
    )
    program_flags.add_up_flags(up)
    serve = _command(commands, "serve", "run the server", program_flags.SERVE, _loaded("oomwatch.serve"))
    program_flags.add_serve_flags(serve)
    check = _command(commands, "check", "look for mistakes in a rule file", rule_flags.CHECK, _later("rule_check"))
    rule_flags.add_check_flags(check)
    _add_trying(commands)
    _add_rules(commands)
    _add_people(commands)
    _add_access(commands)
    test = _command(
        commands, "test-notify", "send a test message to the channels", rule_flags.TEST_NOTIFY, _later("notify_trial")
    )
    rule_flags.add_test_notify_flags(test)
    _add_reports(commands)
    exported = _command(
        commands, "export", "write what is stored into files", export_flags.EXPORT, _later("export.command")
    )
    export_flags.add_export_flags(exported)
    _add_doctor(commands)
    _group(
        commands,
        _Group("ray", "watch every node of a Ray cluster", ray_flags.RAY, "ray.command"),
        (
            ("start", "start an agent on each", ray_flags.START, ray_flags.add_start_flags),
            ("status", "say where agents run", ray_flags.STATUS, ray_flags.add_status_flags),
            ("stop", "end them", ray_flags.STOP, ray_flags.add_cluster_flags),
        ),
    )
    _command(commands, "version", "print the version", "Prints the version.", _version)
    return parser


def _add_people(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """The commands by which people say what they take care of, and what they know of."""
    told = _command(commands, "alerts", "list alerts, and take care of them", people_flags.ALERTS, _later("alerts"))
    people_flags.add_alerts_flags(told)
    alerts = told.add_subparsers(title="what else to do", metavar="[show|ack|unack]")
    for name, summary, text, add_flags in (
        ("show", "tell everything of one", people_flags.SHOW, people_flags.add_show_flags),
        ("ack", "take care of one, or of all that match", people_flags.ACK, people_flags.add_ack_flags),
        ("unack", "take an acknowledgement back", people_flags.UNACK, people_flags.add_show_flags),
    ):
        add_flags(_command(alerts, name, summary, text, _later("alerts", f"run_{name}")))
    _group(
        commands,
        _Group("silence", "have alerts sent to nobody for a time", people_flags.SILENCE, "silence"),
        (
            ("add", "make a silence", people_flags.ADD, people_flags.add_silence_flags),
            ("list", "list them", people_flags.LIST, people_flags.add_list_flags),
            ("end", "end one", people_flags.END, people_flags.add_end_flags),
            ("preview", "say what one would hide", people_flags.PREVIEW, people_flags.add_preview_flags),
        ),
    )


class _Group(NamedTuple):
    """A command that is nothing without a word more; each word is a function run_WORD of a module of commands/."""

    name: str
    summary: str
    text: str
    module: str


_Word = tuple[str, str, str, Callable[[argparse.ArgumentParser], None]]


def _group(
    commands: "argparse._SubParsersAction[argparse.ArgumentParser]", group: _Group, words: Sequence[_Word]
) -> None:
    parser = commands.add_parser(
        group.name, help=group.summary, description=group.text, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    known = parser.add_subparsers(title="what to do", required=True, metavar="WHAT")
    for name, summary, text, add_flags in words:
        add_flags(_command(known, name, summary, text, _later(group.module, f"run_{name}")))


def _add_access(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """The commands that say who may do what, and tell what was done."""
    _group(
        commands,
        _Group("token", "make and revoke tokens of agents and people", access_flags.TOKENS, "access"),
        (
            ("create", "make one", access_flags.CREATE, access_flags.add_create_flags),
            ("list", "list them", access_flags.LIST, access_flags.add_list_flags),
            ("rotate", "make another in place of one", access_flags.ROTATE, access_flags.add_rotate_flags),
            ("revoke", "make one useless", access_flags.REVOKE, access_flags.add_revoke_flags),
        ),
    )
    _group(
        commands,
        _Group("user", "say who signs in by name", access_flags.USERS, "users"),
        (
            ("add", "make one", access_flags.USER_ADD, access_flags.add_user_add_flags),
            ("list", "list them", access_flags.USER_LIST, access_flags.add_list_flags),
            ("remove", "remove one", access_flags.USER_REMOVE, access_flags.add_user_name),
            ("password", "change a password", access_flags.USER_PASSWORD, access_flags.add_user_password_flags),
        ),
    )
    told = _command(commands, "audit", "list what people did", access_flags.AUDIT, _later("access", "run_audit"))
    access_flags.add_audit_flags(told)
    backup = _command(commands, "backup", "copy the database", access_flags.BACKUP, _later("backup"))
    access_flags.add_backup_flags(backup)
    anew = _command(commands, "begin-anew", "give a damaged database up", access_flags.BEGIN_ANEW, _later("anew"))
    access_flags.add_begin_anew_flags(anew)


def _add_reports(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """The commands that tell of the past."""
    card = _command(
        commands, "scorecard", "say how good the warnings were", report_flags.SCORECARD, _later("scorecard")
    )
    report_flags.add_scorecard_flags(card)
    told = _command(commands, "incident", "tell what ran out of memory", report_flags.INCIDENT, _later("incident"))
    report_flags.add_incident_flags(told)
    stored = _command(commands, "storage", "say how large the database is", report_flags.STORAGE, _later("storage"))
    people_flags.add_list_flags(stored)


def _add_doctor(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """The commands for a training that is yet to be started."""
    doctor = _command(
        commands,
        "doctor",
        "say whether a configuration fits, and what to set",
        doctor_flags.DOCTOR,
        _doctor,
    )
    doctor_flags.add_doctor_flags(doctor)
    template = _command(
        commands, "template", "print a configuration to begin with", doctor_flags.TEMPLATE, _later("doctor.template")
    )
    doctor_flags.add_template_flags(template)


def _doctor(options: argparse.Namespace) -> int:
    """Two patients: a training's configuration, and our own installation."""
    return _later("installation.command" if options.itself else "doctor.check")(options)


def _add_trying(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """The commands that try rules."""
    flags.add_record_flags(_command(commands, "record", "write a run into a trace", flags.RECORD, _record))
    replay = _command(
        commands, "replay", "say what rules make of a trace", flags.REPLAY, _later("record", "run_replay")
    )
    flags.add_replay_flags(replay)
    backtest = _command(commands, "backtest", "try rules on runs that are over", flags.BACKTEST, _later("backtest"))
    flags.add_backtest_flags(backtest)
    test = _command(commands, "test", "test rules", flags.TEST, _later("rule_tests"))
    tests = test.add_subparsers(title="what to test", required=True, metavar="WHAT")
    flags.add_rule_test_flags(_command(tests, "rules", "run rule tests", flags.RULE_TESTS, _later("rule_tests")))


def _add_rules(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """The commands that show and change rules."""
    group = commands.add_parser("rules", help="show, try and switch rules", description=rule_flags.RULES)
    rules = group.add_subparsers(title="what to do", required=True, metavar="WHAT")
    listed = _command(rules, "list", "list them", rule_flags.LIST, _later("rules", "run_list"))
    rule_flags.add_list_flags(listed)
    shown = _command(rules, "show", "tell everything of one", rule_flags.SHOW, _later("rules", "run_show"))
    rule_flags.add_show_flags(shown)
    for name, what in (("enable", "on"), ("disable", "off")):
        text = rule_flags.SWITCH.format(name=name, what=what)
        switch = _command(rules, name, f"switch one {what}", text, _later("rules", f"run_{name}"))
        rule_flags.add_switch_flags(switch)
        add_client_flags(switch)
    tried = _command(rules, "try", "what a changed file would have done", rule_flags.TRY, _later("rules_try"))
    rule_flags.add_try_flags(tried)
    exported = _command(rules, "export", "write the rules for Prometheus", rule_flags.EXPORT, _later("rules_export"))
    rule_flags.add_export_flags(exported)
    for command in (listed, shown, tried):
        add_client_flags(command)


def _record(options: argparse.Namespace) -> int:
    """Inputs into a trace; without any, what a server is given while it runs."""
    if options.inputs:
        return _later("record", "run_record")(options)
    config = ["--config", options.config] if options.config else []
    return _loaded("oomwatch.serve")(command_line().parse_args(["serve", "--record", str(options.trace), *config]))


def _version(_: argparse.Namespace) -> int:
    print(f"oomwatch {__version__}")
    return 0


def _later(module: str, name: str = "run") -> Callable[[argparse.Namespace], int]:
    """A function of a module of commands/, which is loaded when it is called."""
    return _loaded(f"oomwatch.commands.{module}", name)


def _loaded(module: str, name: str = "run") -> Callable[[argparse.Namespace], int]:
    """A function of a module that is loaded when it is called: `check` does not wait for a web server to load."""

    def run(options: argparse.Namespace) -> int:
        status: int = getattr(import_module(module), name)(options)
        return status

    return run


def _command(
    commands: "argparse._SubParsersAction[argparse.ArgumentParser]",
    name: str,
    summary: str,
    text: str,
    run: Callable[[argparse.Namespace], int],
) -> argparse.ArgumentParser:
    parser = commands.add_parser(
        name, help=summary, description=text, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.set_defaults(run_command=run, its_parser=parser)
    return parser
