"""/metrics over HTTP: the formats that are asked for, from a server that runs."""

from pathlib import Path

from prometheus_client.openmetrics.parser import text_string_to_metric_families
from tests.server.house import hello, sample
from tests.server.running_server import AgentClient, serving, settings_in, until

OPENMETRICS = "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5"


def test_a_scrape_gets_openmetrics_packed_and_with_the_families_that_the_settings_ask_for(tmp_path: Path) -> None:
    with serving(settings_in(tmp_path, compat=("dcgm",))) as server, AgentClient(server) as agent:
        agent.greet(hello())
        agent.say(sample(1, 40))
        until("the reading", lambda: "DCGM_FI_DEV_FB_USED{" in server.get("/metrics").text)
        answer = server.get("/metrics", headers={"Accept": OPENMETRICS, "Accept-Encoding": "gzip"})
    assert answer.headers["content-type"].startswith("application/openmetrics-text; version=1.0.0")
    assert answer.headers["content-encoding"] == "gzip"
    families = {one.name: one for one in text_string_to_metric_families(answer.text)}  # type: ignore[no-untyped-call]
    assert families["oomwatch_gpu_used_ratio"].samples[0].value == 0.5
    assert families["DCGM_FI_DEV_FB_USED"].samples[0].value == 40 * 1024


def test_a_scrape_that_asks_for_nothing_gets_the_text_format_as_it_is(tmp_path: Path) -> None:
    with serving(settings_in(tmp_path)) as server:
        answer = server.get("/metrics", headers={"Accept-Encoding": "identity"})
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    assert "content-encoding" not in answer.headers
    assert "DCGM" not in answer.text
    assert "oomwatch_browsers_connected 0.0\n" in answer.text
