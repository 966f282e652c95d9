"""`oomwatch doctor --self`, of the machine: each thing that can be wrong is made wrong."""

import argparse
import json
import os
import re
import resource
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.agent.programs import Program
from tests.faults.confined import without_root_rights
from tests.server.running_server import ENVIRON

from oomwatch import __version__
from oomwatch.__main__ import main
from oomwatch.commands.doctor_flags import FOR_A_CONFIGURATION, FOR_ITSELF, add_doctor_flags
from oomwatch.commands.installation import all as everything
from oomwatch.commands.installation import cards, folders, limits, python, rights, schedulers
from oomwatch.commands.installation.asked import Asked, asked
from oomwatch.commands.installation.finding import Finding
from oomwatch.options import SettingError
from oomwatch.settings import Settings
from oomwatch_agent.cards import makers
from oomwatch_agent.settings import AgentSettings

NOBODY = 65534


def brief(found: Iterator[Finding]) -> dict[str, str]:
    return {one.what: one.state for one in found}


def of(found: Iterator[Finding], what: str) -> Finding:
    return next(one for one in found if one.what == what)


def installed(folder: Path, *lines: str, python_wanted: str = ">=3.10", version: str = "0.1.0") -> None:
    """A distribution called oomwatch that says this of itself."""
    made = folder / f"oomwatch-{version}.dist-info"
    made.mkdir(parents=True)
    needs = "".join(f"Requires-Dist: {line}\n" for line in lines)
    text = f"Metadata-Version: 2.1\nName: oomwatch\nVersion: {version}\nRequires-Python: {python_wanted}\n{needs}"
    (made / "METADATA").write_text(text, encoding="utf-8")


def test_this_installation_has_the_packages_that_it_says_it_needs() -> None:
    assert {one.state for one in python.checks()} <= {"ok"}


def test_packages_that_are_missing_or_too_old_are_named_with_the_command_that_brings_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed(tmp_path, "msgspec>=99.1", "nowhere-to-be-found>=2", "psutil>=1", python_wanted=">=3.99", version="7.0")
    monkeypatch.syspath_prepend(str(tmp_path))
    found = list(python.checks())
    states = {
        "Python": "wrong",
        "oomwatch": "wrong",
        "msgspec": "wrong",
        "nowhere-to-be-found": "wrong",
        "psutil": "ok",
    }
    assert brief(iter(found)) == states
    assert of(iter(found), "msgspec").remedy == 'pip install "msgspec>=99.1"'


def test_an_extra_that_is_there_in_part_is_a_warning_and_one_that_is_not_there_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed(tmp_path, 'psutil>=1; extra == "half"', "absent; extra == 'half'", "absent; extra == 'none'")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert {what: state for what, state in brief(python.checks()).items() if "extra" in what} == {
        "extra half": "warning",
        "extra none": "ok",
    }


def test_an_extra_that_what_runs_here_needs_is_wrong_where_it_is_missing_or_there_in_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed(tmp_path, "psutil>=1; extra == 'half'", "absent; extra == 'half'", "absent; extra == 'none'")
    monkeypatch.syspath_prepend(str(tmp_path))
    found = list(python.checks({"half", "none"}))
    states = brief(iter(found))
    assert (states["extra half"], states["extra none"]) == ("wrong", "wrong")
    assert of(iter(found), "extra none").remedy == 'pip install "oomwatch[none]"'


def test_a_server_without_its_packages_is_told_so_once_and_looked_at_no_further(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed(tmp_path, "absent; extra == 'server'", version=__version__)
    monkeypatch.syspath_prepend(str(tmp_path))
    found = list(everything.findings(Asked({}, ("server",), Settings(db=str(tmp_path / "db")), None)))
    assert of(iter(found), "extra server").remedy == 'pip install "oomwatch[server]"'
    assert [one.what for one in found if one.family == "python" and one.state != "ok"] == ["extra server"]
    assert not {one.family for one in found} & {"folders", "database", "rules", "address"}


def test_a_postgresql_without_its_driver_is_told_so_and_not_tried(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed(tmp_path, "absent; extra == 'postgres'", version=__version__)
    monkeypatch.syspath_prepend(str(tmp_path))
    settings = Settings(db="postgresql://nobody@nowhere.invalid/oomwatch", listen="127.0.0.1:0", incidents=tmp_path)
    families = {one.family: one for one in everything.findings(Asked({}, ("server",), settings, None))}
    assert "database" not in families
    assert "address" in families
    assert of(python.checks({"postgres"}), "extra postgres").remedy == 'pip install "oomwatch[postgres]"'


def test_a_folder_that_cannot_be_written_to_is_wrong(tmp_path: Path) -> None:
    assert brief(folders.folder("database", tmp_path / "made/later")) == {"database": "ok"}
    (found,) = folders.folder("database", Path("/proc/oomwatch"))
    assert (found.state, "/proc cannot be written to" in found.said) == ("wrong", True)
    (tmp_path / "file").touch()
    assert brief(folders.folder("database", tmp_path / "file")) == {"database": "wrong"}


@pytest.mark.parametrize(
    ("free_bytes", "state"),
    [
        (folders.NONE_LEFT_BYTES - 1, "wrong"),
        (folders.NONE_LEFT_BYTES, "warning"),
        (folders.SCARCE_BYTES - 1, "warning"),
        (folders.SCARCE_BYTES, "ok"),
    ],
)
def test_a_disk_without_room_is_wrong_and_one_with_little_a_warning(
    tmp_path: Path, free_bytes: int, state: str
) -> None:
    assert brief(folders.folder("database", tmp_path, lambda _: free_bytes)) == {"database": state}


def test_the_room_that_is_left_is_that_of_the_disk(tmp_path: Path) -> None:
    (found,) = folders.folder("database", tmp_path)
    assert re.search(r"\d+\.\d GiB free$", found.said)


def test_the_folder_of_a_database_whose_address_is_a_url_is_looked_at(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    settings = Settings(db=f"sqlite+pysqlite:///{tmp_path}/file/oomwatch.db", incidents=tmp_path)
    assert brief(folders.checks(settings))["database"] == "wrong"


def test_a_database_that_is_no_file_needs_no_folder(tmp_path: Path) -> None:
    in_memory = ("sqlite://", "sqlite:///:memory:", "sqlite:///file:some?mode=memory&uri=true")
    for address in (*in_memory, "postgresql://db.example/oomwatch"):
        assert "database" not in brief(folders.checks(Settings(db=address, incidents=tmp_path)))


def test_a_simulation_is_no_watching() -> None:
    assert brief(cards.checks(AgentSettings(simulate="demo"))) == {"simulation": "warning"}


@pytest.mark.skipif(makers.any_is_here(), reason="this machine has accelerators of its own")
def test_a_machine_without_cards_is_told_what_it_lacks_and_that_its_memory_is_watched() -> None:
    found = list(cards.checks(AgentSettings()))
    assert brief(iter(found)) == {"nvml": "warning", "host memory": "ok"}
    assert of(iter(found), "nvml").remedy == f"{cards.REMEDY}; {cards.ONLY_MEMORY}"


def test_a_log_that_is_missing_is_a_warning_and_one_that_is_there_is_fine(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text("line\n", encoding="utf-8")
    settings = AgentSettings(log=(str(tmp_path / "*.log"), str(tmp_path / "none.txt")))
    found = brief(rights.checks(settings))
    assert found[f"log {tmp_path / 'a.log'}"] == "ok"
    assert found[f"log {tmp_path / 'none.txt'}"] == "warning"


def seen_without_rights(code: str) -> dict[str, str]:
    """State by what was looked at, of findings that this code calls `found`, made without root's rights."""
    told = f"import json\n{code}\nprint(json.dumps({{one.what: one.state for one in found}}))"
    command = [*without_root_rights(), sys.executable, "-c", told]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, env=ENVIRON)
    assert ended.returncode == 0, ended.stderr
    states: dict[str, str] = json.loads(ended.stdout)
    return states


def test_a_folder_below_one_that_is_closed_to_us_is_wrong_and_no_defect(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can make what belongs to others")
    closed = tmp_path / "closed"
    (closed / "within").mkdir(parents=True)
    closed.chmod(0o700)
    os.chown(closed, NOBODY, NOBODY)
    code = (
        "from pathlib import Path\nfrom oomwatch.commands.installation import folders\n"
        f"found = folders.folder('database', Path({str(closed / 'within')!r}))"
    )
    assert seen_without_rights(code) == {"database": "wrong"}


def test_a_user_who_may_not_look_at_others_or_open_a_card_is_told_so(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can make what belongs to others")
    card, log, environ = tmp_path / "dev/nvidia0", tmp_path / "train.log", tmp_path / "proc/77/environ"
    drawing = tmp_path / "dev/dri/renderD128"
    for path in (card, log, environ, drawing):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch(mode=0o000)
        os.chown(path.parent if path is environ else path, NOBODY, NOBODY)
    code = (
        "from pathlib import Path\nfrom oomwatch.commands.installation import rights\n"
        "from oomwatch_agent.settings import AgentSettings\n"
        f"found = list(rights.checks(AgentSettings(log=({str(log)!r},)), Path({str(tmp_path)!r})))"
    )
    told = {"/proc": "warning", str(card): "wrong", f"log {log}": "wrong"}
    assert seen_without_rights(code) == told  # NVIDIA's cards have a file for drawing too, which nobody reads them by
    (tmp_path / "dev/kfd").touch()
    assert seen_without_rights(code) == {**told, str(drawing): "wrong"}


def test_few_open_files_are_a_warning_with_the_command_that_allows_more() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (limits.FILES_FOR_AGENT - 1, hard))
    try:
        found = of(limits.checks(["agent"]), "open files")
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert (found.state, "ulimit -n" in (found.remedy or "")) == ("warning", True)


def test_a_service_that_has_failed_is_wrong(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "run/systemd/system").mkdir(parents=True)
    systemctl = Program(tmp_path, "systemctl")
    systemctl.script(
        'case "$*" in *server*) echo LoadState=not-found;;\n'
        '*) printf "LoadState=loaded\\nActiveState=failed\\nSubState=failed\\nResult=exit-code\\n";; esac'
    )
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    found = brief(limits.checks(["server", "agent"], tmp_path))
    assert (found["oomwatch-server"], found["oomwatch-agent"]) == ("ok", "wrong")
    assert "oomwatch-agent" not in brief(limits.checks(["server"], tmp_path))  # it is not to run here


def test_a_job_of_slurm_and_no_raylet_are_told(tmp_path: Path) -> None:
    found = {one.what: one.said for one in schedulers.checks({"SLURM_JOB_ID": "4711"}, proc=tmp_path)}
    assert found["Slurm"] == "this is run in job 4711"
    assert "no raylet runs here" in found["Ray"]


def test_it_says_which_remedy_belongs_to_what_and_ends_with_1(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    settings = tmp_path / "server.yaml"
    settings.write_text("listen: nowhere\n", encoding="utf-8")
    assert main(["doctor", "--self", "--role", "server", "--config", str(settings)]) == 1
    lines = capsys.readouterr().out.splitlines()
    place = next(number for number, line in enumerate(lines) if line.startswith("WRONG    settings: server"))
    assert "nowhere" in lines[place]
    assert lines[place + 1].strip().startswith("-> ")
    assert lines[-1].startswith("1 of ")


def flags(*given: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    add_doctor_flags(parser)
    return parser.parse_args(["--self", *given])


def test_the_file_that_the_environment_names_is_read_as_the_program_reads_it(tmp_path: Path) -> None:
    server, agent = tmp_path / "server.yaml", tmp_path / "agent.yaml"
    server.write_text("listen: 127.0.0.1:1234\n", encoding="utf-8")
    agent.write_text("node: gpu-07\n", encoding="utf-8")
    of_server, of_agent = {"OOMWATCH_CONFIG": str(server)}, {"OOMWATCH_CONFIG": str(agent)}
    for found in (
        asked(flags("--role", "server"), of_server),
        asked(flags("--role", "both", "--agent-config", str(agent)), of_server),
        asked(flags("--role", "both", "--config", str(server)), of_agent),
    ):
        assert found.mistakes == ()
        assert found.server is not None
        assert found.server.listen == "127.0.0.1:1234"
        assert found.agent is None or found.agent.node == "gpu-07"
    alone = asked(flags("--role", "agent"), of_agent).agent
    assert alone is not None
    assert alone.node == "gpu-07"


@pytest.mark.parametrize("role", ["both", "auto"])
def test_a_file_of_the_environment_that_may_be_either_programs_is_asked_about(role: str) -> None:
    with pytest.raises(SettingError, match=r"OOMWATCH_CONFIG.*--config.*--agent-config.*--role"):
        asked(flags("--role", role), {"OOMWATCH_CONFIG": "/etc/oomwatch/server.yaml"})


def test_json_has_every_finding(capsys: pytest.CaptureFixture[str]) -> None:
    main(["doctor", "--self", "--role", "agent", "--server", "127.0.0.1:1", "--json"])
    found = json.loads(capsys.readouterr().out)
    assert {one["family"] for one in found} >= {"python", "settings", "GPUs", "rights", "server", "limits"}
    assert all(one["state"] in ("ok", "warning", "wrong") and one["said"] for one in found)
    assert all(one["state"] == "ok" or one["remedy"] for one in found)


def test_it_takes_no_configuration_of_a_training(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--self", "train.sh"]) == 2
    assert "train.sh" in capsys.readouterr().err


def test_a_flag_for_the_other_patient_is_refused_by_its_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["doctor", "--self", "--gpu", "H100", "--gpus", "8", "--all-settings", "--role", "agent"]) == 2
    assert "drop --gpu --gpus --all-settings\n" in capsys.readouterr().err
    configuration = tmp_path / "train.yaml"
    configuration.write_text("trainer: {nnodes: 1}\n", encoding="utf-8")
    assert main(["doctor", "--config", str(configuration)]) == 2
    assert "--config: only with --self" in capsys.readouterr().err


def test_every_flag_is_known_to_be_for_the_one_patient_or_the_other() -> None:
    told = {*FOR_A_CONFIGURATION, *FOR_ITSELF}
    assert set(vars(flags())) - told == {"itself", "words", "json", "language", "server"}
    assert not set(FOR_A_CONFIGURATION) & set(FOR_ITSELF)


def test_who_asks_for_another_language_than_it_speaks_is_told_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--self", "--language", "zh"]) == 2
    assert "--language" in capsys.readouterr().err
