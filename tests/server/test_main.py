"""The command line, as people use it."""

import contextlib
import os
import socket
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
import yaml
from tests.replay.make_traces import RULES, TRACES
from tests.server.notify_samples import SECTIONS
from tests.server.receiver import Answer, receiving
from tests.server.running_server import ENVIRON
from tests.server.running_server import RULES as GOOD_RULES

from oomwatch import __version__
from oomwatch.__main__ import main
from oomwatch.options import SettingError
from oomwatch.settings import (
    Address,
    Settings,
    address_of,
    check,
    database_address,
    keeps_incidents_in_database,
    rules_path,
)
from oomwatch.store.address import file_of, is_in_memory
from oomwatch.store.store import Store
from oomwatch.units import Duration


@pytest.fixture(autouse=True)
def empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


Output = pytest.CaptureFixture[str]


def test_the_version_is_printed(capsys: Output) -> None:
    assert main(["version"]) == 0
    assert capsys.readouterr().out == f"oomwatch {__version__}\n"


def test_a_good_rule_file_is_fine(capsys: Output) -> None:
    Path("mine.yaml").write_text(GOOD_RULES, encoding="utf-8")
    assert main(["check", "mine.yaml"]) == 0
    assert capsys.readouterr().out == "mine.yaml: 1 rule, 0 channels: fine\n"


def test_every_mistake_is_printed_with_its_place(capsys: Output) -> None:
    Path("mine.yaml").write_text("rules:\n  - alert: a\n  - whem: {}\n", encoding="utf-8")
    assert main(["check", "mine.yaml"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) > 1
    assert all(line.startswith("mine.yaml:") for line in lines)


def _checked(channel: str, capsys: Output) -> tuple[int, list[str]]:
    text = f"notify: {{channels: [{{kind: webhook, name: ops, {channel}}}]}}\n{GOOD_RULES}"
    Path("mine.yaml").write_text(text, encoding="utf-8")
    status = main(["check", "mine.yaml"])
    return status, capsys.readouterr().out.splitlines()


@pytest.mark.parametrize(
    ("channel", "said"),
    [
        ("url: 'http://127.0.0.1:9/', secret: short", "its secret is no base64 of at least 24 bytes"),
        ("url: 'nowhere'", "its address is no http"),
    ],
)
def test_a_secret_or_address_in_the_file_that_cannot_be_used_is_a_mistake(
    channel: str, said: str, capsys: Output
) -> None:
    status, lines = _checked(channel, capsys)
    assert status == 1
    assert len(lines) == 1
    assert lines[0].startswith(f"mine.yaml: notify channel ops: {said}")


@pytest.mark.parametrize("kind", sorted(SECTIONS))
def test_channels_of_every_kind_are_looked_at(kind: str, capsys: Output) -> None:
    section = {**SECTIONS[kind], "name": "ops"}
    file = {"notify": {"channels": [section]}, **yaml.safe_load(GOOD_RULES)}
    Path("mine.yaml").write_text(yaml.safe_dump(file), encoding="utf-8")
    assert main(["check", "mine.yaml"]) == 0
    assert capsys.readouterr().out == "mine.yaml: 1 rule, 1 channel: fine\n"


@pytest.mark.parametrize(
    ("channel", "said"),
    [
        ("url_env: NOT_SET_HERE", "the environment variable NOT_SET_HERE is not set"),
        ("url: 'http://127.0.0.1:9/', secret_file: not/here", "cannot read not/here: No such file or directory"),
    ],
)
def test_a_variable_or_file_that_is_not_here_is_noted_and_no_mistake(channel: str, said: str, capsys: Output) -> None:
    status, lines = _checked(channel, capsys)
    assert status == 0
    assert lines[0].startswith(f"mine.yaml: note: notify channel ops: {said}")
    assert lines[1] == "mine.yaml: 1 rule, 1 channel: fine"


@pytest.mark.parametrize(
    "odd", ["rules:\n  - [a]: b\n", "? [a, b]\n: c\n", "rules: " + "[" * 20_000, "!!timestamp x\n"]
)
def test_odd_yaml_is_a_mistake_with_its_place_and_no_traceback(capsys: Output, odd: str) -> None:
    Path("mine.yaml").write_text(odd, encoding="utf-8")
    assert main(["check", "mine.yaml"]) == 1
    out = capsys.readouterr().out
    assert out.startswith("mine.yaml:")
    assert "defect" not in out


def test_a_device_or_a_pipe_is_no_rule_file(capsys: Output) -> None:
    os.mkfifo("pipe")
    for path in ("/dev/zero", "/dev/stdin", "pipe", "."):
        assert main(["check", path]) == 1
        assert "cannot be read: this is no regular file" in capsys.readouterr().out


def test_without_a_file_the_rules_that_the_server_would_use_are_checked(capsys: Output) -> None:
    assert main(["check"]) == 0
    assert "alerts.yaml: " in capsys.readouterr().out


def test_a_recording_is_replayed_to_the_lines_it_said(capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    assert main(["replay", str(TRACES / "leak.jsonl"), "--rules", str(RULES)]) == 0
    assert capsysbinary.readouterr().out == (TRACES / "leak.transitions.jsonl").read_bytes()


def test_a_recording_that_cannot_be_read_is_named(capsys: Output) -> None:
    Path("trace.jsonl").write_text("no json\n", encoding="utf-8")
    assert main(["replay", "trace.jsonl", "--rules", str(RULES)]) == 1
    assert "trace.jsonl:1:" in capsys.readouterr().err


def test_a_test_message_says_what_became_of_it(capsys: Output) -> None:
    with receiving() as receiver:
        notify = f"notify:\n  channels:\n    - {{kind: webhook, name: ops, url: '{receiver.url}'}}\n"
        Path("mine.yaml").write_text(notify + GOOD_RULES, encoding="utf-8")
        assert main(["test-notify", "--rules", "mine.yaml"]) == 0
        assert capsys.readouterr().out == "ops (webhook): delivered\n"
        receiver.always(Answer(status=404))
        assert main(["test-notify", "--rules", "mine.yaml", "ops"]) == 1
        assert "404" in capsys.readouterr().out


def test_a_channel_that_is_not_there_is_named_with_those_that_are(capsys: Output) -> None:
    notify = "notify:\n  channels:\n    - {kind: webhook, name: ops, url: 'http://127.0.0.1:9/'}\n"
    Path("mine.yaml").write_text(notify + GOOD_RULES, encoding="utf-8")
    assert main(["test-notify", "--rules", "mine.yaml", "opps"]) == 2
    assert 'there is no channel "opps"; mine.yaml has ops' in capsys.readouterr().err


def test_a_file_without_channels_is_told_where_they_go(capsys: Output) -> None:
    Path("mine.yaml").write_text(GOOD_RULES, encoding="utf-8")
    assert main(["test-notify", "--rules", "mine.yaml"]) == 2
    assert "mine.yaml has no channels: add them under notify:" in capsys.readouterr().err


def test_a_port_that_is_taken_is_said_with_a_way_out(capsys: Output) -> None:
    Path("alerts.yaml").write_text(GOOD_RULES, encoding="utf-8")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert main(["serve", "--listen", f"127.0.0.1:{port}", "--db", "x.db", "--log-level", "error"]) == 2
    told = capsys.readouterr().err
    assert f"127.0.0.1:{port} is taken by another program" in told
    assert f"--listen 127.0.0.1:{port + 1}" in told


def test_a_server_with_mistakes_in_its_rules_does_not_start_and_lists_them(capsys: Output) -> None:
    Path("alerts.yaml").write_text("rules:\n  - alert: a\n", encoding="utf-8")
    assert main(["serve", "--listen", "127.0.0.1:0", "--db", "x.db", "--log-level", "error"]) == 1
    assert "alerts.yaml:2:" in capsys.readouterr().err


def test_a_server_whose_database_is_none_says_what_to_do(capsys: Output) -> None:
    Path("alerts.yaml").write_text(GOOD_RULES, encoding="utf-8")
    Path("x.db").write_bytes(b"this is a letter to my aunt, and no database at all" * 100)
    assert main(["serve", "--listen", "127.0.0.1:0", "--db", "x.db", "--log-level", "error"]) == 1
    assert "name another file" in capsys.readouterr().err


def test_help_explains_every_command() -> None:
    for command in ([], ["serve"], ["up"], ["check"], ["replay"], ["test-notify"]):
        shown = subprocess.run(
            [sys.executable, "-m", "oomwatch", *command, "--help"],
            env=ENVIRON,
            capture_output=True,
            text=True,
            check=True,
        )
        assert len(shown.stdout.splitlines()) > 5


@pytest.mark.parametrize(
    ("words", "command"),
    [
        ("nonsense", "oomwatch"),
        ("serve --nonsense", "oomwatch serve"),
        ("silence", "oomwatch silence"),
        ("silence end --nonsense", "oomwatch silence end"),
        ("alerts show --nonsense x", "oomwatch alerts show"),
        ("token create --role king lin", "oomwatch token create"),
    ],
)
def test_a_mistake_on_the_command_line_shows_how_that_command_is_used(words: str, command: str, capsys: Output) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(words.split())
    told = capsys.readouterr().err
    assert f"usage: {command} [-h]" in told
    assert f"\n{command}: error: " in told
    assert told.endswith(f"; see {command} --help\n")


def test_version_does_not_wait_for_a_web_server_to_load() -> None:
    code = "import sys, oomwatch.__main__ as m; m.main(['version']); print([x for x in sys.modules if x == 'fastapi'])"
    shown = subprocess.run([sys.executable, "-c", code], env=ENVIRON, capture_output=True, text=True, check=True)
    assert shown.stdout.endswith("[]\n")


# ---------------------------------------------------------------- settings


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("127.0.0.1:8642", Address("127.0.0.1", 8642)),
        ("8642", Address("127.0.0.1", 8642)),
        ("[::1]:80", Address("::1", 80)),
        ("0.0.0.0:0", Address("0.0.0.0", 0)),
    ],
)
def test_an_address_is_a_host_and_a_port(text: str, address: Address) -> None:
    assert address_of(Settings(listen=text)) == address


@pytest.mark.parametrize("text", ["localhost", ":", "host:port", "127.0.0.1:70000", ""])
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(SettingError, match="HOST:PORT"):
        address_of(Settings(listen=text))


def test_a_wildcard_address_is_shown_as_one_that_a_browser_can_open() -> None:
    assert Address("0.0.0.0", 8642).url == "http://127.0.0.1:8642"
    assert Address("::", 8642).url == "http://[::1]:8642"


def test_the_database_is_a_file_or_a_url() -> None:
    assert database_address(Settings(db="x.db")) == "x.db"
    assert database_address(Settings(db="/var/x.db")) == "/var/x.db"
    assert database_address(Settings(db="postgresql://db/x")) == "postgresql://db/x"
    assert database_address(Settings(), {"XDG_DATA_HOME": "/data"}) == "/data/oomwatch/oomwatch.db"


@pytest.mark.parametrize("name", ["a%20b.db", "a b.db", "a#b.db", "a?b=c.db", "数据.db", "postgres.db", "file:x.db"])
def test_a_plain_path_is_taken_as_it_is(tmp_path: Path, name: str) -> None:
    folder = tmp_path / "up%2Fdown"
    address = database_address(Settings(db=str(folder / name)))
    with contextlib.closing(Store.open(address)):
        assert {one.name.removesuffix("-wal").removesuffix("-shm") for one in folder.iterdir()} == {name}
    assert file_of(address) == folder / name
    assert not keeps_incidents_in_database(Settings(db=str(folder / name)))
    assert main(["backup", "--db", str(folder / name), str(tmp_path / "copy.db")]) == 0
    assert main(["incident", "--db", str(folder / name)]) == 0


@pytest.mark.parametrize(
    "db", ['"postgresql://u:secret@h/d"', " postgresql://u:secret@h/d", "postgre-sql://u:secret@h/d"]
)
@pytest.mark.parametrize(
    ("command", "status"),
    [(["token", "create", "x", "--role", "agent"], 1), (["backup", "copy.db"], 2), (["begin-anew"], 2)],
)
def test_a_misspelled_url_is_refused_without_its_password_and_no_file_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Output, command: list[str], status: int, db: str
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main([*command, "--db", db]) == status
    told = capsys.readouterr().err
    assert "is no database URL" in told
    assert "secret" not in told
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("command", [["token", "list"], ["token", "revoke", "x"], ["user", "list"], ["audit"]])
def test_a_command_that_looks_makes_no_database(tmp_path: Path, capsys: Output, command: list[str]) -> None:
    assert main([*command, "--db", str(tmp_path / "typo.db")]) == 1
    assert f"there is no database {tmp_path / 'typo.db'}; name one with --db" in capsys.readouterr().err
    assert not (tmp_path / "typo.db").exists()


def test_that_nothing_ran_out_of_memory_is_said(tmp_path: Path, capsys: Output) -> None:
    assert main(["incident", "--db", str(tmp_path / "x.db")]) == 0
    assert capsys.readouterr().out == f"no incidents in {tmp_path / 'incidents'}\n"


def test_a_url_stays_one(tmp_path: Path) -> None:
    address = database_address(Settings(db=f"sqlite:///{tmp_path}/x.db?timeout=3"))
    assert file_of(address) == tmp_path / "x.db"
    assert is_in_memory("sqlite://")
    assert is_in_memory(":memory:")
    assert not is_in_memory(address)


def test_the_rules_of_this_folder_come_before_the_shipped_ones() -> None:
    shipped = rules_path(Settings())
    assert shipped.name == "alerts.yaml"
    Path("alerts.yaml").write_text(GOOD_RULES, encoding="utf-8")
    assert rules_path(Settings()) == Path("alerts.yaml")
    assert rules_path(Settings(rules=Path("other.yaml"))) == Path("other.yaml")


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        (Settings(external_url="gpus.example"), "no http:// or https:// address"),
        (msgspec.structs.replace(Settings(), flush_interval=0.0), "flush_interval"),
        (msgspec.structs.replace(Settings(), flush_interval=500.0), "at most 60s"),
        (Settings(history_raw_keep=Duration(8 * 86400)), "history_10s_keep: must be at least as long as"),
        (Settings(history_10s_keep=Duration(100 * 86400)), "history_1m_keep: must be at least as long as"),
    ],
)
def test_a_setting_that_makes_no_sense_is_refused(settings: Settings, why: str) -> None:
    with pytest.raises(SettingError, match=why):
        check(settings)
