"""The harness for real Prometheus and Alertmanager does what its users rely on."""

import os
import urllib.error
from pathlib import Path

import pytest
from tests.prometheus.servers import alertmanager, need, prometheus, promtool, scraping, until
from tests.server.receiver import receiving

ALWAYS = '{"groups": [{"name": "g", "rules": [{"alert": "Always", "expr": "vector(1)", "labels": {"a": "b"}}]}]}'
NOBODY = '{"route": {"receiver": "nobody"}, "receivers": [{"name": "nobody"}]}'


def _is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_prometheus_scrapes_evaluates_and_tells_alertmanager_who_tells_the_receiver() -> None:
    with receiving() as receiver:
        hook = f'"webhook_configs": [{{"url": "{receiver.url}/hook"}}]'
        route = f'{{"route": {{"receiver": "r", "group_wait": "0s"}}, "receivers": [{{"name": "r", {hook}}}]}}'
        with alertmanager(route) as manager:
            config = scraping(manager.url, alertmanagers=[manager.url], rule_files=["rules.yml"])
            with prometheus(config, files={"rules.yml": ALWAYS}) as real:
                assert real.wait_for("up == 1")[0].labels["job"] == "oomwatch"
                assert "alertmanager_build_info" in real.metric_names()
                assert real.query("1 + 1")[0].value == 2
                assert until("the alert", real.alerts)[0]["labels"] == {"alertname": "Always", "a": "b"}
                assert manager.wait_for_alerts(1)[0]["labels"] == {"alertname": "Always", "a": "b"}
                assert receiver.wait_for(1, 20)[0].json()["alerts"][0]["status"] == "firing"


def test_a_server_is_gone_with_its_folder_when_its_test_ends() -> None:
    with alertmanager(NOBODY) as manager:
        assert _is_running(manager.pid)
    assert not _is_running(manager.pid)
    assert not manager.folder.exists()
    with pytest.raises(urllib.error.URLError):
        manager.alerts()


def test_a_server_that_refuses_its_configuration_says_so_at_once() -> None:
    with pytest.raises(AssertionError, match="undefined receiver"), alertmanager('{"route": {"receiver": "x"}}'):
        pytest.fail("it took the configuration")


def test_a_query_that_prometheus_refuses_fails_with_its_reason() -> None:
    with prometheus(scraping()) as real, pytest.raises(AssertionError, match="parse error"):
        real.query("sum(")


def test_promtool_says_what_is_wrong_with_a_file(tmp_path: Path) -> None:
    rules = tmp_path / "rules.yml"
    rules.write_text(ALWAYS)
    assert promtool("check", "rules", "rules.yml", folder=rules.parent).returncode == 0
    rules.write_text(ALWAYS.replace("vector(1)", "vector("))
    assert promtool("check", "rules", "rules.yml", folder=rules.parent).returncode != 0


@pytest.mark.parametrize(("ci", "ending"), [("", pytest.skip.Exception), ("true", pytest.fail.Exception)])
def test_a_missing_program_skips_its_test_and_fails_it_in_ci(
    ci: str, ending: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CI", ci)
    monkeypatch.setenv("PATH", "")
    with pytest.raises(ending, match="promtool is missing; to get it: apt-get install prometheus"):
        need("promtool")
