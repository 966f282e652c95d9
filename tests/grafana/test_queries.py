"""Every query of every dashboard, asked of a real Prometheus that scrapes a real server of simulated runs, has data."""

import re
from collections.abc import Iterator, Mapping

import pytest
from tests.acceptance.programs import ROOT, Server, agent, ending
from tests.grafana.dashboards import (
    DASHBOARDS,
    Asked,
    Variable,
    filled_in,
    metrics_of,
    queries,
    variables,
)
from tests.ports import free_port
from tests.prometheus.servers import Prometheus, prometheus, scraping, until
from tests.server.receiver import receiving

pytestmark = pytest.mark.acceptance
EACH_QUERY = pytest.mark.parametrize("asked", queries(), ids=str)
# A step takes three seconds. What only a run in trouble has, a forecast and alerts, every card of these two has: both
# leak, run out of memory within the minute, and are started again.
SIMULATED = ("--simulate", "leak", "--simulate-gpus", "4", "--simulate-speed", "8", "--interval", "0.25")
NODES = ("node-a", "node-b")
# The shipped rules, the first one at once; a channel that works beside one that does not; and a run that is muted.
MORE_RULES = """
overrides:
  - {{alert: gpu_memory_high, match: {{}}, set: {{for: 0s}}}}
notify:
  group_interval: 1s
  heartbeat: {{url: "{works}/alive", method: POST}}
  maintenance:
    - {{name: forever, from: "2020-01-01T00:00:00Z", to: "2120-01-01T00:00:00Z", match: ['run="run of node-b"']}}
  channels:
    - {{kind: webhook, name: works, url: "{works}"}}
    - {{kind: webhook, name: fails, url: "http://127.0.0.1:{nobody}/"}}
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server that hears of two nodes with a run each."""
    folder = tmp_path_factory.mktemp("watched")
    rules = folder / "alerts.yaml"
    with receiving() as receiver:
        more = MORE_RULES.format(works=receiver.url, nobody=free_port())
        rules.write_text((ROOT / "alerts.yaml").read_text(encoding="utf-8") + more, encoding="utf-8")
        watching = Server(folder, rules, "--flush-interval", "0.2s")
        agents = [agent(folder, watching, *SIMULATED, "--run", f"run of {node}", node=node) for node in NODES]
        with ending(watching, *agents):
            yield watching


@pytest.fixture(scope="module")
def real(server: Server) -> Iterator[Prometheus]:
    with prometheus(scraping(server.url)) as scraper:
        yield scraper


@pytest.fixture(scope="module")
def known(server: Server) -> set[str]:
    """Names of all metrics that the server has, whether it has a value for them or not."""
    page = server.get("/metrics", raw=True).decode()
    told = re.findall(r"^# TYPE (\w+) (\w+)$", page, flags=re.MULTILINE)
    ends = {"histogram": ("_bucket", "_sum", "_count"), "summary": ("", "_sum", "_count")}
    return {name + end for name, kind in told for end in ends.get(kind, ("",))}


def values_of(real: Prometheus, variable: Variable, chosen: Mapping[str, str]) -> list[str]:
    """What Grafana would offer, sorted."""
    series = filled_in(variable.series, chosen)
    look = f"group by ({variable.label}) ({series})"
    return sorted({one.labels.get(variable.label, "") for one in real.wait_for(look)})


def choices(real: Prometheus, uid: str) -> list[dict[str, str]]:
    """Values for a dashboard's variables: the first of each, and the last; where several may be chosen also all."""
    found = []
    for pick in (0, -1):
        one: dict[str, str] = {}
        for variable in variables(uid):
            one[variable.name] = values_of(real, variable, one)[pick]
        found.append(one)
    everything = {variable.name: ".*" for variable in variables(uid) if variable.several}
    return [*found, {**found[0], **everything}]


@EACH_QUERY
def test_a_query_names_only_metrics_that_the_server_has(asked: Asked, known: set[str]) -> None:
    named = metrics_of(asked.expression)
    assert named
    assert named - known == set()


@EACH_QUERY
def test_a_query_returns_data(asked: Asked, real: Prometheus) -> None:
    for chosen in choices(real, asked.dashboard):
        expression = filled_in(asked.expression, chosen)
        found = real.wait_for(expression, seconds=45)
        # What Prometheus itself attaches would make a new curve of each restart on another address.
        assert asked.expression == "oomwatch_build_info" or not any("job" in one.labels for one in found)


@pytest.mark.parametrize("uid", DASHBOARDS)
def test_every_variable_offers_what_there_is_and_nothing_empty(uid: str, real: Prometheus) -> None:
    offered = {"node": list(NODES), "gpu": ["0", "1", "2", "3"], "run": [f"run of {node}" for node in NODES]}
    for variable in variables(uid):
        until(f"all of {variable}", lambda v=variable: values_of(real, v, {"node": NODES[0]}) == offered[v.name])  # type: ignore[misc]


def test_a_name_that_the_server_does_not_have_would_be_seen(known: set[str]) -> None:
    asked = metrics_of('max(oomwatch_gpu_memory_used_bytes) / max(oomwatch_gpu_memory_wished_bytes{node="a"})')
    assert asked - known == {"oomwatch_gpu_memory_wished_bytes"}
