"""`oomwatch doctor --self`, of what is reached from here: server, database, rules, port, NATS. Each is made wrong."""

import asyncio
import socket
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import msgspec
import pytest
from tests.agent.fake_server import FakeServer, welcoming
from tests.nats.server import nats_running
from tests.ports import free_port
from tests.server.running_server import serving, settings_in, until

from oomwatch.commands.installation import all as everything
from oomwatch.commands.installation import database, listening, nats, reach, rulesfile
from oomwatch.commands.installation.asked import Asked
from oomwatch.commands.installation.finding import Finding
from oomwatch.settings import Settings
from oomwatch.store.database import open_database
from oomwatch_agent.settings import AgentSettings, load


def brief(found: Iterator[Finding]) -> dict[str, str]:
    return {one.what: one.state for one in found}


@contextmanager
def refusing() -> Iterator[int]:
    """A port where nobody listens, and which no other program can take."""
    with closing(socket.socket()) as held:
        held.bind(("127.0.0.1", 0))
        yield held.getsockname()[1]


def agent(*flags: str) -> AgentSettings:
    return load(["--node", "gpu-07", *flags], {}).settings


def test_a_server_that_takes_this_agent_is_well(tmp_path: Path) -> None:
    with serving(settings_in(tmp_path, token="right")) as server:
        found = brief(reach.checks(msgspec.structs.replace(agent("--server", server.url), token="right")))
        assert server.get("/api/v1/nodes").json() == []  # it only asked
    assert found == {"name": "ok", "port": "ok", "connection": "ok", "clock": "ok", "version": "ok"}


def test_a_wrong_token_is_told_with_the_servers_own_words(tmp_path: Path) -> None:
    with serving(settings_in(tmp_path, token="right")) as server:
        found = list(reach.checks(msgspec.structs.replace(agent("--server", server.url), token="wrong")))
    assert found[-1].state == "wrong"
    assert "token" in found[-1].said


def test_a_server_whose_clock_is_an_hour_ahead_is_a_warning(tmp_path: Path) -> None:
    with serving(settings_in(tmp_path), clock=lambda: time.time() + 3600) as server:
        found = {one.what: one for one in reach.checks(agent("--server", server.url))}
    assert found["clock"].state == "warning"
    assert "ahead" in found["clock"].said


def test_a_server_of_another_version_is_a_warning() -> None:
    async def asked() -> dict[str, str]:
        server = FakeServer(welcoming())
        await server.start()
        try:
            settings = agent("--server", f"127.0.0.1:{server.port}")
            return await asyncio.to_thread(lambda: brief(reach.checks(settings)))
        finally:
            await server.stop()

    assert asyncio.run(asked())["version"] == "warning"


def test_a_name_that_nobody_knows_a_port_that_nobody_has_and_tls_where_there_is_none_are_told(tmp_path: Path) -> None:
    assert brief(reach.checks(agent("--server", "nowhere.invalid:8642"))) == {"name": "wrong"}
    with refusing() as port:
        assert brief(reach.checks(agent("--server", f"127.0.0.1:{port}"))) == {"name": "ok", "port": "wrong"}
    with serving(settings_in(tmp_path)) as server:
        found = brief(reach.checks(agent("--server", f"https{server.url.removeprefix('http')}")))
    assert found["connection"] == "wrong"


def test_a_database_is_told_as_new_sound_newer_or_damaged(tmp_path: Path) -> None:
    file = tmp_path / "oomwatch.db"
    settings = Settings(db=str(file))
    assert brief(database.checks(settings)) == {"file": "ok"}
    open_database(f"sqlite:///{file}").close()
    assert brief(database.checks(settings)) == {"schema": "ok"}
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
        connection.commit()
    assert brief(database.checks(settings)) == {"schema": "wrong"}
    file.write_bytes(b"SQLite format 3\0" + b"\xff" * 8000)
    assert brief(database.checks(settings)) == {"file": "wrong"}


def test_a_database_in_a_folder_called_as_in_an_address_is_found_and_nothing_is_made_beside_it(tmp_path: Path) -> None:
    folder = tmp_path / "seed#7"
    folder.mkdir()
    open_database(f"sqlite:///{folder}/oomwatch.db").close()
    assert brief(database.checks(Settings(db=str(folder / "oomwatch.db")))) == {"schema": "ok"}
    assert list(tmp_path.iterdir()) == [folder]


def test_a_file_that_is_no_database_of_ours_is_wrong(tmp_path: Path) -> None:
    file = tmp_path / "other.db"
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("CREATE TABLE theirs (one)")
    assert brief(database.checks(Settings(db=str(file)))) == {"file": "wrong"}


def test_a_postgresql_that_does_not_answer_is_wrong_and_its_password_is_not_shown() -> None:
    with refusing() as port:
        found = list(database.checks(Settings(db=f"postgresql://oomwatch:hush@127.0.0.1:{port}/none")))
    assert [one.state for one in found] == ["wrong"]
    assert "hush" not in str(found)


def test_a_postgresql_tells_its_schema(postgres_url: str) -> None:
    assert brief(database.checks(Settings(db=postgres_url))) == {"schema": "ok"}


def test_a_rule_file_with_a_mistake_and_a_channel_without_its_secret_are_told(tmp_path: Path) -> None:
    settings = settings_in(tmp_path)
    assert brief(rulesfile.checks(settings, {})) == {"rule file": "ok", "channels": "warning"}
    rules = tmp_path / "alerts.yaml"
    text = rules.read_text(encoding="utf-8")
    channel = "notify:\n  channels:\n    - {kind: webhook, name: ops, url_env: OPS_URL}\n"
    rules.write_text(text + channel, encoding="utf-8")
    assert brief(rulesfile.checks(settings, {}))["channel"] == "warning"
    found = list(rulesfile.checks(settings, {"OPS_URL": "https://ops.example/hush"}))
    assert brief(iter(found)) == {"rule file": "ok", "channels": "ok"}
    assert "hush" not in str(found)
    rules.write_text(text + "nonsense: 1\n", encoding="utf-8")
    assert brief(rulesfile.checks(settings, {})) == {"rule file": "wrong"}


def test_an_address_is_told_as_free_or_taken() -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as taken:
        settings = Settings(listen=f"127.0.0.1:{taken.getsockname()[1]}")
        assert brief(listening.checks(settings)) == {"listen": "wrong"}
    until("a port that nobody takes at this moment", free_address_is_told)


def free_address_is_told() -> bool:
    (found,) = listening.checks(Settings(listen=f"127.0.0.1:{free_port()}"))
    return found.state == "ok" and found.said.endswith("is free")


def test_an_address_that_a_server_of_ours_has_is_told_so_and_no_proxy_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with refusing() as proxy, serving(settings_in(tmp_path)) as server:
        for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{proxy}")
        for name in ("no_proxy", "NO_PROXY"):
            monkeypatch.delenv(name, raising=False)
        (found,) = listening.checks(Settings(listen=server.url.removeprefix("http://")))
    assert (found.state, "an oomwatch server answers" in found.said) == ("ok", True)


def test_a_nats_that_is_away_is_wrong_and_its_password_is_not_shown(tmp_path: Path) -> None:
    with nats_running(tmp_path) as running:
        there = Settings(cluster_nats=running.url)
        assert list(brief(nats.checks(there)).values()) == ["ok"]
    found = list(nats.checks(Settings(cluster_nats=running.url.replace("//", "//me:hush@"))))
    assert [one.state for one in found] == ["wrong"]
    assert "hush" not in str(found)


def test_what_answers_at_the_address_of_nats_and_is_none_is_wrong(tmp_path: Path) -> None:
    with serving(settings_in(tmp_path)) as server:
        found = list(nats.checks(Settings(cluster_nats=server.url.replace("http", "nats"))))
    assert [one.state for one in found] == ["wrong"]


def test_a_check_that_fails_by_a_defect_takes_no_other_along(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    class Broken(dict[str, str]):
        def get(self, *_: object) -> str:
            raise RuntimeError("a defect")

    monkeypatch.chdir(tmp_path)
    asked = Asked(Broken(), ("agent",), None, agent("--server", "127.0.0.1:1", "--simulate", "demo"))
    found = {(one.family, one.state) for one in everything.findings(asked)}
    assert ("schedulers", "wrong") in found
    assert {family for family, _ in found} >= {"python", "limits", "server"}
