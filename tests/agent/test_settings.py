"""The agent's settings: addresses people type, places they come from, and sentences for what cannot be used."""

import socket
from collections.abc import Sequence
from pathlib import Path

import pytest

from oomwatch.options import SettingError
from oomwatch_agent.settings import AgentSettings, load, permit, server_url


def _settings(*argv: str, **environ: str) -> AgentSettings:
    return load(argv, environ).settings


@pytest.mark.parametrize(
    ("typed", "address"),
    [
        ("ws://127.0.0.1:8642", "ws://127.0.0.1:8642/ws/agent"),
        ("monitor:9000", "ws://monitor:9000/ws/agent"),
        ("monitor", "ws://monitor:8642/ws/agent"),
        ("10.0.0.7:8642", "ws://10.0.0.7:8642/ws/agent"),
        ("[fd00::1]:8642", "ws://[fd00::1]:8642/ws/agent"),
        ("http://monitor:8642", "ws://monitor:8642/ws/agent"),
        ("http://monitor:8642/", "ws://monitor:8642/ws/agent"),
        ("https://monitor.example", "wss://monitor.example/ws/agent"),
        ("wss://monitor.example:444/gpu", "wss://monitor.example:444/gpu/ws/agent"),
        ("ws://monitor:8642/ws/agent", "ws://monitor:8642/ws/agent"),
        (" monitor:8642 ", "ws://monitor:8642/ws/agent"),
    ],
)
def test_an_address_may_be_typed_in_many_ways(typed: str, address: str) -> None:
    assert server_url(typed) == address
    assert _settings("--server", typed).server == address


@pytest.mark.parametrize(
    "typed", ["ws://", "ftp://monitor", "monitor:port", "monitor:99999", "monitor..example", "ws://u@monitor", "a?b=c"]
)
def test_what_is_no_address_is_answered_with_one_that_is(typed: str) -> None:
    with pytest.raises(SettingError, match=r"^flag --server: .*write for example ws://127\.0\.0\.1:8642"):
        _settings("--server", typed)


def test_without_settings_the_agent_watches_this_host_for_a_server_on_it() -> None:
    settings = _settings()
    assert settings.server == "ws://127.0.0.1:8642/ws/agent"
    assert settings.node == socket.gethostname()
    assert (settings.interval, settings.ray, settings.log, settings.log_from) == (1.0, "auto", (), "auto")


def test_logs_may_be_repeated() -> None:
    assert _settings("--log", "a.log", "--log", "/logs/*.out").log == ("a.log", "/logs/*.out")


def test_engines_may_be_found_and_named_at_once() -> None:
    assert _settings().engine_metrics == ("auto",)
    wanted = ("auto", "node7:8000", "http://127.0.0.1:30000/metrics")
    assert _settings(*(part for text in wanted for part in ("--engine-metrics", text))).engine_metrics == wanted


def test_environment_and_file_work_and_the_flag_is_strongest(tmp_path: Path) -> None:
    config = tmp_path / "agent.yaml"
    config.write_text("node: from-file\nrun: from-file\ninterval: 5s\n", encoding="utf-8")
    settings = _settings("--run", "from-flag", OOMWATCH_CONFIG=str(config), OOMWATCH_NODE="from-environment")
    assert (settings.run, settings.node, settings.interval) == ("from-flag", "from-environment", 5.0)


def test_the_token_comes_from_a_file_and_is_not_shown(tmp_path: Path) -> None:
    secret = tmp_path / "token"
    secret.write_text("s3cret\n", encoding="utf-8")
    invocation = load(["--token-file", str(secret)], {})
    assert invocation.settings.token == "s3cret"
    assert "s3cret" not in "\n".join(invocation.resolved.describe())


def test_the_settings_in_force_are_shown_with_their_origin() -> None:
    lines = load(["--node", "n1", "--interval", "500ms"], {"OOMWATCH_RUN": "r1"}).resolved.describe()
    assert "node = n1 (flag --node)" in lines
    assert "run = r1 (environment OOMWATCH_RUN)" in lines
    assert "interval = 0.5s (flag --interval)" in lines
    assert "server = ws://127.0.0.1:8642/ws/agent (default)" in lines


@pytest.mark.parametrize(
    ("argv", "sentence"),
    [
        (["--interval", "0"], r"flag --interval: the interval must be 0\.1s to 3600s"),
        (["--interval", "2h"], r"flag --interval: the interval must be 0\.1s to 3600s"),
        (["--interval", "soon"], r"flag --interval: .*no duration"),
        (["--node", ""], "flag --node: a node name has 1 to 253 characters"),
        (["--node", "n" * 254], "flag --node: a node name has 1 to 253 characters"),
        (["--run", "r" * 254], "flag --run: a run name has 1 to 253 characters"),
        (["--token", "a\nb"], "flag --token: a token consists of printable ASCII"),
        (["--simulate", "chaos"], r'flag --simulate: there is no scenario "chaos"; known are healthy, leak, .*demo'),
        (["--simulate-gpus", "0"], "flag --simulate-gpus: must be 1 to 64"),
        (["--simulate-speed", "0"], "flag --simulate-speed: must be 0.01 to 1000"),
        (["--simulate-speed", "nan"], "flag --simulate-speed: "),
        (["--log-from", "middle"], "flag --log-from: "),
        (["--log-level", "loud"], "flag --log-level: "),
        (["--log", "-", "--log", "-"], "flag --log: standard input can be followed once only"),
        (["--engine-metrics", "on"], 'flag --engine-metrics: "on" is no address of an engine'),
        (["--engine-metrics", "off", "--engine-metrics", "auto"], 'flag --engine-metrics: "off" stands alone'),
        (("--allow-acts", "reboot"), "flag --allow-acts: Invalid enum value 'reboot'"),
        (("--allow-acts", "stacks,hook"), "flag --allow-acts: hook needs --hook PATH"),
        (("--hook-limit", "2h"), "flag --hook-limit: must be 1s to 1h"),
        (("--acts-dir", "acts"), "flag --acts-dir: must be an absolute path"),
    ],
)
def test_a_setting_that_cannot_be_used_is_named_with_what_would_be_right(argv: Sequence[str], sentence: str) -> None:
    with pytest.raises(SettingError, match=sentence):
        _settings(*argv)


def test_help_names_every_setting_and_ends_with_examples(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        load(["--help"], {})
    assert ended.value.code == 0
    text = capsys.readouterr().out
    for flag in ("--server", "--token-file", "--node", "--log", "--ray", "--simulate", "--check", "--version"):
        assert flag in text
    assert "OOMWATCH_SERVER; default: ws://127.0.0.1:8642" in text
    assert text.index("examples:") > text.index("--log-level")


def test_acts_are_permitted_one_by_one_or_in_a_list_and_none_by_itself(tmp_path: Path) -> None:
    assert permit(_settings()).acts == ()
    both = ("memory_snapshot", "stacks")
    assert _settings("--allow-acts", "memory_snapshot,stacks").allow_acts == both
    assert _settings("--allow-acts", "memory_snapshot", "--allow-acts", "stacks").allow_acts == both
    assert _settings(OOMWATCH_ALLOW_ACTS="memory_snapshot, stacks").allow_acts == both
    file = tmp_path / "agent.yaml"
    file.write_text("allow_acts: [memory_snapshot, stacks]\nacts_dir: /srv/acts\n")
    allowed = permit(_settings("--config", str(file)))
    assert (allowed.acts, allowed.folder) == (both, Path("/srv/acts"))


def test_a_hook_is_a_file_that_can_be_executed(tmp_path: Path) -> None:
    hook = tmp_path / "save-checkpoint"
    hook.touch(mode=0o755)
    allowed = permit(_settings("--allow-acts", "hook", "--hook", str(hook), "--hook-limit", "2m"))
    assert (allowed.hook, allowed.hook_seconds) == (hook, 120.0)
    hook.chmod(0o644)
    for path in (hook, tmp_path / "gone", tmp_path, Path("save-checkpoint")):
        with pytest.raises(SettingError, match=r"flag --hook: .* is no absolute path of a file that can be executed"):
            _settings("--hook", str(path))


def test_check_is_asked_for_by_a_flag() -> None:
    assert not load([], {}).check
    assert load(["--check"], {}).check


LONG = "x" * 63  # as long as a part of a name may be


@pytest.mark.parametrize(
    "host",
    [
        "gpu-server",
        "a.b",
        "a.",
        "a..b",
        ".a",
        "..",
        "1.2.3.4",
        LONG,
        LONG + "x",
        LONG + "x.b",
        "b." + LONG + "x",
        "b." + LONG,
        "b\u00fccher.example",
        "\u00fc" * 70,
    ],
)
def test_a_servers_name_is_one_that_python_can_look_up(host: str) -> None:
    try:
        host.encode("idna")
    except UnicodeError:
        with pytest.raises(ValueError, match="has no usable host name"):
            server_url(host)
    else:
        assert server_url(host) == f"ws://{host}:8642/ws/agent"
