"""Settings from flag, environment, file and default."""

import argparse
from pathlib import Path
from typing import Annotated

import msgspec
import pytest

from oomwatch.options import Resolved, SettingError, add_options, option, resolve
from oomwatch.units import Duration

SECRET = "not-for-eyes"


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    listen: Annotated[str, option("address to bind", metavar="HOST:PORT")] = "127.0.0.1:8642"
    interval: Annotated[Duration, option("time between samples")] = Duration(1)
    gpus: Annotated[int, option("how many")] = 8
    log: Annotated[tuple[str, ...], option("log to follow")] = ()
    rules: Annotated[Path | None, option("rule file")] = None
    verbose: Annotated[bool, option("say more")] = False
    token: Annotated[str | None, option("shared secret", secret=True)] = None


def settings(*arguments: str, environ: dict[str, str] | None = None) -> Resolved[Settings]:
    parser = argparse.ArgumentParser()
    add_options(parser, Settings)
    return resolve(Settings, parser.parse_args(arguments), environ or {})


def test_without_anything_the_defaults_count() -> None:
    assert settings().settings == Settings()
    assert set(settings().origins.values()) == {"default"}


def test_flag_beats_environment_beats_file_beats_default(tmp_path: Path) -> None:
    file = tmp_path / "agent.yaml"
    file.write_text("listen: from-file\ngpus: 1\ninterval: 3s\n", encoding="utf-8")
    environ = {"OOMWATCH_LISTEN": "from-environment", "OOMWATCH_GPUS": "2"}
    resolved = settings("--config", str(file), "--listen", "from-flag", environ=environ)
    assert resolved.settings == Settings(listen="from-flag", gpus=2, interval=Duration(3))
    assert resolved.origins["listen"] == "flag --listen"
    assert resolved.origins["gpus"] == "environment OOMWATCH_GPUS"
    assert resolved.origins["interval"] == f"file {file}"
    assert resolved.origins["verbose"] == "default"


def test_the_file_may_be_named_by_the_environment(tmp_path: Path) -> None:
    file = tmp_path / "agent.yaml"
    file.write_text("gpus: 3\n", encoding="utf-8")
    assert settings(environ={"OOMWATCH_CONFIG": str(file)}).settings.gpus == 3


def test_a_path_is_read_in_every_place_and_described_as_it_is_written(tmp_path: Path) -> None:
    file = tmp_path / "agent.yaml"
    file.write_text("rules: a/b.yaml\n", encoding="utf-8")
    for resolved in (
        settings("--rules", "a/b.yaml"),
        settings(environ={"OOMWATCH_RULES": "a/b.yaml"}),
        settings("--config", str(file)),
    ):
        assert resolved.settings.rules == Path("a/b.yaml")
        assert f"rules = a/b.yaml ({resolved.origins['rules']})" in resolved.describe()


def test_durations_flags_and_lists_are_read_in_every_place(tmp_path: Path) -> None:
    assert settings("--interval", "500ms", "--verbose", "--log", "a", "--log", "b").settings == Settings(
        interval=Duration(0.5), verbose=True, log=("a", "b")
    )
    environ = {"OOMWATCH_INTERVAL": "2s", "OOMWATCH_VERBOSE": "true", "OOMWATCH_LOG": "a, b"}
    assert settings(environ=environ).settings == Settings(interval=Duration(2), verbose=True, log=("a", "b"))
    file = tmp_path / "agent.yaml"
    file.write_text("interval: 1m\nverbose: true\nlog: [a, b]\n", encoding="utf-8")
    assert settings("--config", str(file)).settings == Settings(interval=Duration(60), verbose=True, log=("a", "b"))


def test_a_flag_that_is_on_elsewhere_can_be_switched_off() -> None:
    assert settings("--no-verbose", environ={"OOMWATCH_VERBOSE": "1"}).settings.verbose is False


def test_a_secret_may_be_in_a_file_and_is_never_shown(tmp_path: Path) -> None:
    secret = tmp_path / "token"
    secret.write_text("not-for-eyes\n", encoding="utf-8")
    for resolved in (
        settings("--token-file", str(secret)),
        settings(environ={"OOMWATCH_TOKEN_FILE": str(secret)}),
        settings("--token", SECRET),
    ):
        assert resolved.settings.token == SECRET
        assert SECRET not in "\n".join(resolved.describe())


@pytest.mark.parametrize(
    ("arguments", "environ", "told"),
    [
        (("--gpus", "many"), {}, "flag --gpus: "),
        ((), {"OOMWATCH_GPUS": "many"}, "environment OOMWATCH_GPUS: "),
        (("--interval", "often"), {}, '"often" is no duration; write for example 30s'),
        (("--token-file", "no-such-file"), {}, "flag --token-file: cannot read no-such-file"),
        (("--config", "no-such-file"), {}, "cannot read the settings file no-such-file"),
    ],
)
def test_a_wrong_value_is_told_with_its_place(arguments: tuple[str, ...], environ: dict[str, str], told: str) -> None:
    with pytest.raises(SettingError) as caught:
        settings(*arguments, environ=environ)
    assert told in str(caught.value)


@pytest.mark.parametrize(
    ("content", "told"),
    [("listne: x\n", "unknown setting listne; known are"), ("- x\n", "expected a mapping"), ("a: [\n", "cannot read")],
)
def test_a_wrong_file_is_told_with_its_name(tmp_path: Path, content: str, told: str) -> None:
    file = tmp_path / "agent.yaml"
    file.write_text(content, encoding="utf-8")
    with pytest.raises(SettingError) as caught:
        settings("--config", str(file))
    assert str(file) in str(caught.value)
    assert told in str(caught.value)


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (f"a: {SECRET}: x\n", "line 1, column 16: this is no YAML: mapping values are not allowed here"),
        (f"a: 1\ntoken: '{SECRET}\n", "line 3, column 1: this is no YAML: found unexpected end of stream"),
        ("a: \x01\n", "unacceptable character #x0001: special characters are not allowed, position 3"),
        (f"{SECRET}: " + "[" * 5000, "this is nested too deep"),
        (f"a: {SECRET}\nb: 2026-99-99\n", "a number or a date in it is none"),
        (f"a: !!int {SECRET}\n", "a number or a date in it is none"),
        (f"a: !!timestamp {SECRET}\n", "a number or a date in it is none"),
    ],
)
def test_a_file_that_is_no_yaml_is_told_by_the_place_of_its_mistake_and_not_shown(
    tmp_path: Path, content: str, told: str
) -> None:
    file = tmp_path / "agent.yaml"
    file.write_text(content, encoding="utf-8")
    with pytest.raises(SettingError) as caught:
        settings("--config", str(file))
    assert str(caught.value) == f"cannot read the settings file {file}: {told}"


def test_the_help_names_the_variable_and_the_default(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        settings("--help")
    text = " ".join(capsys.readouterr().out.split())
    assert "address to bind (OOMWATCH_LISTEN; default: 127.0.0.1:8642)" in text
    assert "time between samples (OOMWATCH_INTERVAL; default: 1s)" in text
    assert "--token-file FILE" in text
