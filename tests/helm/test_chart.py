"""The Helm chart, as Helm itself renders it, holds together, with Kubernetes and with the programs that it starts."""

import argparse
import base64
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml
from tests.helm.cases import CASES, EVERYTHING, NAMELESS, SERVER_ALONE, SEVERAL, TLS
from tests.helm.helm import CHART, NAME, NAMESPACE, ROOT, Helm, Object, RefusedError, Rendered

from oomwatch import __version__
from oomwatch.options import add_options, resolve
from oomwatch.rulefile import parse_rules
from oomwatch.settings import Settings, address_of, check
from oomwatch_agent.settings import AgentSettings, load

EACH_CASE = pytest.mark.parametrize("case", CASES)
# The oldest that the chart admits, and the newest whose schemas are known.
KUBERNETES = ("1.25", "1.37")
FOREIGN = {"ServiceMonitor"}  # of operators: Kubernetes itself has no schema of it
MADE_BY_OTHERS = {"pg", "nats", "oomwatch-tls", "my-tokens", "slack", "page-tls"}
WITHOUT_MEMORY_LIMIT_MIB = 50  # what the agent itself may take, tests/agent/test_agent_main.py


def _containers(rendered: Rendered) -> Iterator[tuple[str, Object, Object]]:
    for component, pod in rendered.pods.items():
        (container,) = pod["containers"]
        yield component, pod, container


def _references(found: Any) -> Iterator[tuple[str, str]]:
    """Kind and name of every ConfigMap and Secret that an object asks for."""
    if isinstance(found, dict):
        for key, value in found.items():
            if key in {"secretKeyRef", "configMap", "credentials"} and isinstance(value, dict):
                yield "ConfigMap" if key == "configMap" else "Secret", value["name"]
            elif key == "secretName":
                yield "Secret", value
            else:
                yield from _references(value)
    elif isinstance(found, list):
        for one in found:
            yield from _references(one)


@EACH_CASE
def test_helm_has_nothing_to_say_against_it(helm: Helm, case: str) -> None:
    assert helm.lint(CASES[case]) == []


@pytest.mark.parametrize("version", KUBERNETES)
@EACH_CASE
def test_kubernetes_knows_every_field(helm: Helm, case: str, version: str) -> None:
    objects = [one for one in helm.render(CASES[case]).objects if one["kind"] not in FOREIGN]
    assert len(objects) > 5
    for one in objects:
        kubernetes_validate.validate(one, version, strict=True)


def test_it_is_of_this_version_and_needs_the_oldest_kubernetes_that_it_was_tried_with() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text(encoding="utf-8"))
    assert chart["appVersion"] == __version__
    assert chart["kubeVersion"] == f">={KUBERNETES[0]}.0-0"


def test_every_value_stands_in_values_yaml_and_in_the_schema() -> None:
    values = yaml.safe_load((CHART / "values.yaml").read_text(encoding="utf-8"))
    schema = json.loads((CHART / "values.schema.json").read_text(encoding="utf-8"))
    _compare(values, {**schema, "properties": {k: v for k, v in schema["properties"].items() if k != "global"}}, "")


def _compare(values: dict[str, Any], schema: dict[str, Any], place: str) -> None:
    if schema.get("additionalProperties") is not False:
        return
    assert values.keys() == schema["properties"].keys(), place
    for name, inner in schema["properties"].items():
        if inner.get("type") == "object":
            _compare(values[name], inner, f"{place}.{name}")


def test_every_value_is_used_by_a_template() -> None:
    values = yaml.safe_load((CHART / "values.yaml").read_text(encoding="utf-8"))
    text = "".join(path.read_text(encoding="utf-8") for path in sorted((CHART / "templates").iterdir()))
    for top, inner in values.items():
        for name in inner if isinstance(inner, dict) and top != "commonLabels" else ():
            assert re.search(rf"\.Values\.{top}\.{name}\b", text), f"{top}.{name}"


@EACH_CASE
def test_the_programs_take_the_settings_that_they_are_given(helm: Helm, case: str, tmp_path: Path) -> None:
    rendered = helm.render(CASES[case])
    file = tmp_path / "settings.yaml"
    file.write_text(rendered.settings("server"), encoding="utf-8")
    settings = _server_settings(file, {"OOMWATCH_DB": "postgresql://db/oomwatch"} if case == "several" else {})
    check(settings)
    assert address_of(settings).host == "0.0.0.0"
    if "agent" in rendered.pods:
        file.write_text(rendered.settings("agent"), encoding="utf-8")
        assert load(["--config", str(file)], {}).settings.server.endswith("/ws/agent")


def _server_settings(file: Path, environ: dict[str, str]) -> Settings:
    parser = argparse.ArgumentParser()
    add_options(parser, Settings)
    return resolve(Settings, parser.parse_args(["--config", str(file)]), environ).settings


@EACH_CASE
def test_every_variable_is_known_to_its_program(helm: Helm, case: str) -> None:
    known: dict[str, set[str]] = {}
    for component, kind in (("server", Settings), ("agent", AgentSettings)):
        names = {f"OOMWATCH_{field.upper()}" for field in kind.__struct_fields__}
        known[component] = names | {f"OOMWATCH_{name.upper()}_FILE" for name in _secret(kind)}
    for component, _, container in _containers(helm.render(CASES[case])):
        variables = {one["name"] for one in container["env"] if one["name"].startswith("OOMWATCH_")}
        assert variables
        assert variables - known[component] == set()


def _secret(kind: type[Settings] | type[AgentSettings]) -> set[str]:
    hints = kind.__annotations__
    return {name for name, hint in hints.items() if "secret=True" in str(hint) or "secret': True" in str(hint)}


def test_what_is_secret_cannot_be_written_into_settings(helm: Helm) -> None:
    for component, kind in (("server", Settings), ("agent", AgentSettings)):
        secrets = _secret(kind)
        assert "token" in secrets
        for name in sorted(secrets):
            with pytest.raises(RefusedError, match=f"'/{component}/settings/{name}'"):
                helm.render({component: {"settings": {name: "hush"}}})


def test_no_token_stands_anywhere_but_in_its_secret(helm: Helm) -> None:
    rendered = helm.render({})
    secret = rendered.one("Secret", "tokens")
    tokens = [base64.b64decode(text).decode() for text in secret["data"].values()]
    assert len(set(tokens)) == 3
    assert all(re.fullmatch(r"\w{48}", token) for token in tokens)
    rest = json.dumps([one for one in rendered.objects if one is not secret]) + rendered.notes
    assert [token for token in tokens if token in rest or base64.b64encode(token.encode()).decode() in rest] == []


def test_secrets_of_others_come_as_references(helm: Helm) -> None:
    environ = {one["name"]: one for one in helm.render(SEVERAL).pods["server"]["containers"][0]["env"]}
    assert environ["OOMWATCH_DB"]["valueFrom"] == {"secretKeyRef": {"name": "pg", "key": "url"}}
    assert environ["OOMWATCH_CLUSTER_NATS"]["valueFrom"] == {"secretKeyRef": {"name": "nats", "key": "url"}}


@EACH_CASE
def test_the_arguments_are_words_that_the_programs_know_and_no_secrets(helm: Helm, case: str) -> None:
    args = {component: container["args"] for component, _, container in _containers(helm.render(CASES[case]))}
    file = "/etc/oomwatch/settings/settings.yaml"
    assert args.pop("agent", ["--config", file]) == ["--config", file]
    assert args == {"server": ["serve", "--config", file]}


@EACH_CASE
def test_everything_that_is_asked_for_is_there(helm: Helm, case: str) -> None:
    rendered = helm.render(CASES[case])
    made = {(one["kind"], one["metadata"]["name"]) for one in rendered.objects}
    others = {("Secret", name) for name in MADE_BY_OTHERS}
    asked = set(_references(rendered.objects))
    assert asked
    assert asked - made - others == set()
    accounts = {("ServiceAccount", pod["serviceAccountName"]) for pod in rendered.pods.values()}
    assert accounts - made == set()


@EACH_CASE
def test_every_mount_has_a_volume_and_every_volume_a_mount(helm: Helm, case: str) -> None:
    rendered = helm.render(CASES[case])
    claims = rendered.one("StatefulSet", "server")["spec"].get("volumeClaimTemplates", [])
    claimed = {"server": {one["metadata"]["name"] for one in claims}}
    for component, pod, container in _containers(rendered):
        volumes = [one["name"] for one in pod["volumes"]] + sorted(claimed.get(component, set()))
        assert sorted(volumes) == sorted(one["name"] for one in container["volumeMounts"])


@EACH_CASE
def test_everybody_means_the_same_port(helm: Helm, case: str) -> None:
    rendered = helm.render(CASES[case])
    (container,) = rendered.pods["server"]["containers"]
    port = CASES[case].get("server", {}).get("service", {}).get("port", 8642)
    assert container["ports"] == [{"name": "http", "containerPort": port}]
    assert yaml.safe_load(rendered.settings("server"))["listen"] == f"0.0.0.0:{port}"
    for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
        assert container[probe]["httpGet"]["port"] == "http"
    for service in rendered.of_kind("Service"):
        assert service["spec"]["ports"] == [{"name": "http", "port": port, "targetPort": "http"}]
    if "agent" in rendered.pods:
        address = yaml.safe_load(rendered.settings("agent"))["server"]
        assert address.endswith(f"://{NAME}.{NAMESPACE}.svc:{port}")
    for policy in rendered.of_kind("NetworkPolicy"):
        for rule in policy["spec"].get("ingress", ()):
            assert rule["ports"] == [{"protocol": "TCP", "port": port}]


@EACH_CASE
def test_selectors_choose_the_servers_pods_or_the_agents_and_never_both(helm: Helm, case: str) -> None:
    rendered = helm.render(CASES[case])
    labels = {}
    for kind in ("StatefulSet", "DaemonSet"):
        for owner in rendered.of_kind(kind):
            pod = owner["spec"]["template"]["metadata"]["labels"]
            assert owner["spec"]["selector"]["matchLabels"].items() <= pod.items()
            labels[pod["app.kubernetes.io/component"]] = pod.items()
    for service in rendered.of_kind("Service"):
        chosen = [name for name, pod in labels.items() if service["spec"]["selector"].items() <= pod]
        assert chosen == ["server"]


@EACH_CASE
def test_the_server_is_restricted_as_the_pod_security_standard_says(helm: Helm, case: str) -> None:
    pod = helm.render(CASES[case]).pods["server"]
    (container,) = pod["containers"]
    assert not {"hostPID", "hostNetwork", "hostIPC"} & pod.keys()
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    kinds = {key for volume in pod["volumes"] for key in volume if key != "name"}
    assert kinds <= {"configMap", "emptyDir", "secret"}


@EACH_CASE
def test_no_pod_may_ask_kubernetes_and_each_has_bounds(helm: Helm, case: str) -> None:
    rendered = helm.render(CASES[case])
    assert all(one["automountServiceAccountToken"] is False for one in rendered.of_kind("ServiceAccount"))
    for _, pod, container in _containers(rendered):
        assert pod["automountServiceAccountToken"] is False
        assert container["securityContext"]["readOnlyRootFilesystem"] is True
        assert {"requests", "limits"} <= container["resources"].keys()
        assert "memory" in container["resources"]["limits"]


def test_the_agent_sees_the_nodes_processes_and_cards_and_may_change_nothing(helm: Helm) -> None:
    pod = helm.render({}).pods["agent"]
    (container,) = pod["containers"]
    assert (pod["hostPID"], pod["runtimeClassName"]) == (True, "nvidia")
    assert container["securityContext"]["capabilities"] == {"drop": ["ALL"], "add": ["SYS_PTRACE", "DAC_READ_SEARCH"]}
    assert container["securityContext"]["allowPrivilegeEscalation"] is False
    written = {one["mountPath"] for one in container["volumeMounts"] if not one.get("readOnly")}
    assert written == {"/tmp", "/run/oomwatch"}  # noqa: S108 - a volume of its own
    limit = container["resources"]["limits"]["memory"]
    assert int(limit.removesuffix("Mi")) > 2 * WITHOUT_MEMORY_LIMIT_MIB


def test_a_nameless_agent_is_nobody_and_has_no_probes(helm: Helm) -> None:
    rendered = helm.render(NAMELESS)
    pod = rendered.pods["agent"]
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["containers"][0]["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    assert "runtimeClassName" not in pod
    assert yaml.safe_load(rendered.settings("agent"))["probe"] == "off"
    assert [one["name"] for one in pod["volumes"] if "hostPath" in one] == ["shm"]


@pytest.mark.parametrize("values", [{}, NAMELESS], ids=["root", "nameless"])
def test_an_agent_is_told_the_size_of_the_nodes_shared_memory_and_not_of_its_own(
    helm: Helm, values: dict[str, Any]
) -> None:
    pod = helm.render(values).pods["agent"]
    (container,) = pod["containers"]
    assert {"name": "shm", "hostPath": {"path": "/dev/shm", "type": "Directory"}} in pod["volumes"]  # noqa: S108 - of the node
    assert {"name": "shm", "mountPath": "/dev/shm", "readOnly": True} in container["volumeMounts"]  # noqa: S108


def test_folders_with_logs_are_mounted_where_they_are_and_for_reading(helm: Helm) -> None:
    (container,) = helm.render(EVERYTHING).pods["agent"]["containers"]
    mounts = {one["mountPath"]: one.get("readOnly") for one in container["volumeMounts"]}
    assert {mounts["/tmp/ray"], mounts["/mnt/logs"]} == {True}  # noqa: S108 - Ray's place


def test_a_host_that_gives_its_driver_is_asked_by_the_library_itself(helm: Helm) -> None:
    (container,) = helm.render(EVERYTHING).pods["agent"]["containers"]
    folder = next(one["value"] for one in container["env"] if one["name"] == "LD_LIBRARY_PATH")
    assert f"{folder}/libnvidia-ml.so.1" in {one["mountPath"] for one in container["volumeMounts"]}
    assert container["securityContext"]["privileged"] is True


def test_the_rules_are_those_that_are_shipped_or_ones_own(helm: Helm) -> None:
    shipped = (ROOT / "alerts.yaml").read_text(encoding="utf-8").strip()
    assert helm.render({}).one("ConfigMap", "rules")["data"]["alerts.yaml"] == shipped
    own = shipped.replace("# ", "# my ", 1) + "\n"
    text = helm.render({"rules": own}).one("ConfigMap", "rules")["data"]["alerts.yaml"]
    assert text == own.strip()
    assert parse_rules(shipped).rules.rules


def test_one_server_keeps_its_data_and_several_share_theirs(helm: Helm) -> None:
    alone, several = helm.render({}), helm.render(SEVERAL)
    (claim,) = alone.one("StatefulSet", "server")["spec"]["volumeClaimTemplates"]
    folder = next(
        one["mountPath"] for one in alone.pods["server"]["containers"][0]["volumeMounts"] if one["name"] == "data"
    )
    assert claim["metadata"]["name"] == "data"
    assert yaml.safe_load(alone.settings("server"))["db"].startswith(f"{folder}/")
    assert "volumeClaimTemplates" not in several.one("StatefulSet", "server")["spec"]
    assert "db" not in yaml.safe_load(several.settings("server"))


def test_of_several_servers_one_that_is_not_well_is_left_and_not_all_go_down_at_once(helm: Helm) -> None:
    alone, several = helm.render({}), helm.render(SEVERAL)
    (container,) = several.pods["server"]["containers"]
    assert container["readinessProbe"]["httpGet"]["path"] == "/readyz"
    assert alone.pods["server"]["containers"][0]["readinessProbe"]["httpGet"]["path"] == "/healthz"
    assert several.one("PodDisruptionBudget", "server")["spec"]["maxUnavailable"] == 1
    assert alone.of_kind("PodDisruptionBudget") == []
    assert "podAntiAffinity" in several.pods["server"]["affinity"]
    replica = next(one for one in container["env"] if one["name"] == "OOMWATCH_CLUSTER_REPLICA")
    assert replica["valueFrom"]["fieldRef"]["fieldPath"] == "metadata.name"


def test_with_tls_everybody_speaks_it_and_the_agents_verify(helm: Helm) -> None:
    rendered = helm.render({**TLS, "serviceMonitor": {"enabled": True}})
    (container,) = rendered.pods["server"]["containers"]
    settings, agents = (yaml.safe_load(rendered.settings(name)) for name in ("server", "agent"))
    assert {container[probe]["httpGet"]["scheme"] for probe in ("startupProbe", "livenessProbe")} == {"HTTPS"}
    mounted = {one["name"]: one["mountPath"] for one in container["volumeMounts"]}
    assert {settings["tls_cert"], settings["tls_key"]} == {f"{mounted['tls']}/tls.crt", f"{mounted['tls']}/tls.key"}
    assert agents["server"].startswith("wss://")
    assert agents["tls_ca"] == "/etc/oomwatch/ca/ca.crt"
    (endpoint,) = rendered.one("ServiceMonitor", "")["spec"]["endpoints"]
    assert (endpoint["scheme"], endpoint["tlsConfig"]["serverName"]) == ("https", f"{NAME}.{NAMESPACE}.svc")
    assert "https://127.0.0.1:8443" in rendered.notes


def test_prometheus_is_pointed_at_the_servers_service_with_the_readers_token(helm: Helm) -> None:
    rendered = helm.render({"serviceMonitor": {"enabled": True}})
    monitor = rendered.one("ServiceMonitor", "")["spec"]
    chosen = [
        one["metadata"]["name"]
        for one in rendered.of_kind("Service")
        if monitor["selector"]["matchLabels"].items() <= one["metadata"]["labels"].items()
    ]
    assert chosen == [NAME]  # and not the one that names pods, else each would be scraped twice
    (endpoint,) = monitor["endpoints"]
    assert endpoint["authorization"]["credentials"] == {"name": f"{NAME}-tokens", "key": "reader-token"}


def test_a_network_policy_lets_in_the_agents_and_whom_it_names(helm: Helm) -> None:
    policy = helm.render(EVERYTHING).one("NetworkPolicy", "server")["spec"]
    (rule,) = policy["ingress"]
    agents, others = rule["from"]
    assert agents["podSelector"]["matchLabels"]["app.kubernetes.io/component"] == "agent"
    assert others == EVERYTHING["networkPolicy"]["from"][0]
    names, rest = policy["egress"]
    assert {one["port"] for one in names["ports"]} == {53}
    assert rest["to"] == EVERYTHING["networkPolicy"]["to"]


def test_what_is_switched_off_is_not_there(helm: Helm) -> None:
    kinds = {one["kind"] for one in helm.render(SERVER_ALONE).objects}
    assert kinds == {"ConfigMap", "Secret", "Service", "ServiceAccount", "StatefulSet"}


@pytest.mark.parametrize(
    ("values", "why"),
    [
        ({"server": {"replicas": 2}}, "name its secret in server.database.existingSecret"),
        ({"server": {"replicas": 2, "database": {"existingSecret": "pg"}}}, "server.nats.existingSecret"),
        ({"server": {"nats": {"existingSecret": "nats"}}}, "server.nats: is of use with PostgreSQL alone"),
        ({"sever": {}}, "sever"),
        ({"agent": {"nvidia": {"mode": "magic"}}}, "mode"),
        ({"server": {"service": {"port": 80}}}, "port"),
        ({"server": {"image": {"digest": "latest"}}}, "digest"),
        ({"agent": {"logFolders": ["logs"]}}, "logFolders"),
    ],
)
def test_a_mistake_is_refused_with_its_place(helm: Helm, values: dict[str, Any], why: str) -> None:
    with pytest.raises(RefusedError, match=re.escape(why)):
        helm.render(values)


def test_the_notes_say_where_the_page_is_and_how_to_come_in(helm: Helm) -> None:
    notes = helm.render({}).notes
    assert f"get secret {NAME}-tokens -o jsonpath='{{.data.operator-token}}'" in notes
    assert f"port-forward service/{NAME} 8642" in notes
    assert "https://oomwatch.example" in helm.render(EVERYTHING).notes
    assert "3 servers act as one" in helm.render(SEVERAL).notes
