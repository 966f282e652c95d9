"""Values that people set, by what they want."""

from typing import Any

SEVERAL: dict[str, Any] = {
    "server": {"replicas": 3, "database": {"existingSecret": "pg"}, "nats": {"existingSecret": "nats"}}
}
TLS: dict[str, Any] = {"server": {"tls": {"existingSecret": "oomwatch-tls"}, "service": {"port": 8443}}}
EVERYTHING: dict[str, Any] = {
    "commonLabels": {"team": "ml"},
    "imagePullSecrets": [{"name": "pull"}],
    "tokens": {"existingSecret": "my-tokens"},
    "server": {
        "image": {"digest": "sha256:" + "0" * 64},
        "settings": {"history_keep": "14d", "external_url": "https://oomwatch.example", "log_level": "debug"},
        "persistence": {"storageClass": "fast", "annotations": {"a": "b"}},
        "service": {"annotations": {"a": "b"}, "type": "LoadBalancer"},
        "ingress": {"enabled": True, "className": "nginx", "annotations": {"a": "b"}, "tlsSecret": "page-tls"},
        "trustedProxies": ["10.0.0.0/8"],
        "extraEnv": [{"name": "SLACK", "valueFrom": {"secretKeyRef": {"name": "slack", "key": "url"}}}],
        "extraVolumes": [{"name": "more", "emptyDir": {}}],
        "extraVolumeMounts": [{"name": "more", "mountPath": "/more"}],
        "priorityClassName": "high",
        "nodeSelector": {"disk": "ssd"},
        "tolerations": [{"operator": "Exists"}],
        "affinity": {"nodeAffinity": {}},
        "podAnnotations": {"a": "b"},
    },
    "agent": {
        "settings": {"interval": "2s", "log": ["/mnt/logs/*/driver.log"]},
        "nvidia": {"mode": "hostPath"},
        "logFolders": ["/tmp/ray", "/mnt/logs"],  # noqa: S108 - Ray's place
        "hostNetwork": True,
        "affinity": {"nodeAffinity": {}},
        "extraEnv": [{"name": "TZ", "value": "UTC"}],
        "podAnnotations": {"a": "b"},
    },
    "serviceMonitor": {"enabled": True, "labels": {"release": "prometheus"}},
    "networkPolicy": {
        "from": [{"namespaceSelector": {"matchLabels": {"name": "ingress"}}}],
        "to": [{"ipBlock": {"cidr": "10.1.0.0/16"}}],
    },
}
NAMELESS: dict[str, Any] = {"agent": {"identifyProcesses": False, "nvidia": {"mode": "none"}}}
SERVER_ALONE: dict[str, Any] = {"agent": {"enabled": False}, "networkPolicy": {"enabled": False}}

CASES: dict[str, dict[str, Any]] = {
    "plain": {},
    "several": SEVERAL,
    "tls": TLS,
    "everything": EVERYTHING,
    "nameless": NAMELESS,
    "server alone": SERVER_ALONE,
}
