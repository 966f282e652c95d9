"""The webhook body is Alertmanager's version 4, field by field, and its signature is that of Standard Webhooks."""

import base64
import hashlib
import hmac
from typing import Any

import msgspec
from tests.server.notify_samples import LEAK, LOOK, RESTART, START, channel_notice, notice, transition

from oomwatch import wire
from oomwatch.notify.channels.webhook import body, signature_headers
from oomwatch.notify.notice import Notice
from oomwatch.notify.secret import Secret
from oomwatch.notify.words import Frame


def compose(*news: wire.Transition, frame: Frame | None = None) -> Any:
    return decoded(notice(news), frame)


def decoded(one: Notice, frame: Frame | None = None) -> Any:
    return msgspec.json.decode(msgspec.json.encode(body(one, "ops", frame or Frame())))


def test_the_body_of_a_firing_message_is_whole() -> None:
    one = transition(3, facts={"used_bytes": 72, "phase": "rollout"})
    assert compose(one, frame=Frame(external_url="https://oom.example")) == {
        "version": "4",
        "groupKey": '{}:{alertname="gpu_memory_high", severity="warning", run="qwen7b"}',
        "truncatedAlerts": 0,
        "status": "firing",
        "receiver": "ops",
        "groupLabels": {"alertname": "gpu_memory_high", "severity": "warning", "run": "qwen7b"},
        "commonLabels": {
            "alertname": "gpu_memory_high",
            "severity": "warning",
            "node": "gpu-07",
            "gpu": "3",
            "run": "qwen7b",
        },
        "commonAnnotations": ANNOTATIONS,
        "externalURL": "https://oom.example",
        "alerts": [
            {
                "status": "firing",
                "labels": {
                    "alertname": "gpu_memory_high",
                    "severity": "warning",
                    "node": "gpu-07",
                    "gpu": "3",
                    "run": "qwen7b",
                },
                "annotations": ANNOTATIONS,
                "startsAt": "2023-11-14T22:13:20.000Z",
                "endsAt": "0001-01-01T00:00:00Z",
                "generatorURL": f"https://oom.example/#/alerts?id={one.id}",
                "fingerprint": one.id,
            }
        ],
    }


ANNOTATIONS = {
    "summary": "GPU 3 of gpu-07 is nearly full",
    "description": "The peak of every step comes closer to the limit.",
    "advice": "Lower gpu_memory_utilization.\nUse smaller micro batches.",
    "value": "0.9",
    "limit": "0.85",
    "unit": "ratio",
    "used_bytes": "72",
    "phase": "rollout",
}


def test_a_resolved_alert_keeps_its_identity_and_start_and_says_when_and_why_it_ended() -> None:
    fired = compose(transition(3))["alerts"][0]
    document = compose(transition(3, state="resolved", at=START + 720.5, reason="recovered", value=0.4))
    [ended] = document["alerts"]
    assert document["status"] == ended["status"] == "resolved"
    for field in ("labels", "startsAt", "fingerprint"):
        assert ended[field] == fired[field]
    assert ended["endsAt"] == "2023-11-14T22:25:20.500Z"
    assert ended["annotations"]["reason"] == "recovered"


def test_what_was_done_before_the_end_is_told_with_it_and_where_the_files_are() -> None:
    acts = (
        wire.Act(act="memory_snapshot", at=START, node="gpu-07", ok=True, detail="91 s of history", path="/srv/acts/x"),
        wire.Act(act="reboot", at=START, node="gpu-07", ok=False),
    )
    ended = msgspec.structs.replace(transition(3, state="resolved", at=START + 720.5), acts=acts)
    assert compose(ended)["alerts"][0]["annotations"]["acts"].split("\n") == [
        "Memory snapshot: done on gpu-07 - 91 s of history - /srv/acts/x",
        "reboot: not done on gpu-07",
    ]


def test_common_labels_and_annotations_are_what_all_alerts_share() -> None:
    document = compose(transition(0, value=0.9), transition(1, value=0.95))
    assert "gpu" not in document["commonLabels"]
    assert document["commonLabels"]["node"] == "gpu-07"
    assert "value" not in document["commonAnnotations"]
    assert document["commonAnnotations"]["limit"] == "0.85"
    assert [alert["labels"]["gpu"] for alert in document["alerts"]] == ["0", "1"]


def test_figures_are_annotations_and_never_labels() -> None:
    labels = [compose(transition(3, value=value))["alerts"][0]["labels"] for value in (0.9, 0.95)]
    assert labels[0] == labels[1]


def test_annotations_are_in_the_language_of_the_configuration() -> None:
    annotations = compose(transition(3), frame=Frame(language="zh"))["commonAnnotations"]
    assert annotations["summary"] == "gpu-07 的 GPU 3 显存即将用尽"


def test_simulated_alerts_say_so() -> None:
    annotations = compose(transition(3, simulated=True))["commonAnnotations"]
    assert annotations["simulated"] == "true"
    assert annotations["summary"].startswith("DEMO (simulated data): ")


def test_without_a_page_address_links_are_empty() -> None:
    document = compose(transition(3))
    assert (document["externalURL"], document["alerts"][0]["generatorURL"]) == ("", "")


def test_the_signature_is_the_published_example_of_standard_webhooks() -> None:
    key, content = Secret("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"), b'{"test": 2432232314}'
    headers = signature_headers([key], "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330.9, content)
    assert headers == {
        "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
        "webhook-timestamp": "1614265330",
        "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
    }


def test_two_keys_give_two_signatures() -> None:
    keys = [base64.b64encode(bytes([number] * 32)).decode() for number in (1, 2)]
    signature = signature_headers([Secret(key) for key in keys], "msg_1", 5.0, b"{}")["webhook-signature"]
    expected = [hmac.new(base64.b64decode(key), b"msg_1.5.{}", hashlib.sha256).digest() for key in keys]
    assert signature.split() == [f"v1,{base64.b64encode(digest).decode()}" for digest in expected]


def test_a_repeated_message_has_the_same_id_and_another_has_another() -> None:
    both = notice([transition(0), transition(1)]).id
    assert both == notice([transition(1), transition(0)]).id
    assert both != notice([transition(0)]).id


def test_the_cause_and_what_to_change_are_annotations() -> None:
    told = compose(transition(causes=(LEAK,), remedies=(RESTART, LOOK)))["alerts"][0]["annotations"]
    assert told["cause"] == "A leak (all phases gained 9 GiB; torch allocated 8 GiB more)"
    assert told["remedies"] == "Start again from a checkpoint.\nFind what is kept."
    assert told["overrides"] == "trainer.save_freq=20"


def test_a_failed_channel_is_an_alert_of_its_own() -> None:
    document = decoded(channel_notice())
    assert document["status"] == "firing"
    assert document["commonLabels"] == {
        "alertname": "oomwatch_channel_failed",
        "channel": "team",
        "severity": "critical",
    }
    [alert] = document["alerts"]
    assert alert["annotations"]["summary"] == "Notification channel team does not deliver"
    assert "What it said last: no_service" in alert["annotations"]["description"]
    assert (alert["startsAt"], alert["endsAt"]) == ("2023-11-14T22:23:20.000Z", "0001-01-01T00:00:00Z")
    over = decoded(channel_notice(state="resolved"))["alerts"][0]
    assert (over["status"], over["labels"], over["fingerprint"]) == ("resolved", alert["labels"], alert["fingerprint"])
    assert over["endsAt"] == "2023-11-14T22:28:20.000Z"


def test_verdict_and_who_takes_care_are_annotations() -> None:
    care = wire.Acknowledgement(by="ann", at=START)
    outcome = wire.Outcome(verdict="happened", at=START, lead_seconds=720.0)
    told = compose(transition(acknowledged=care, outcome=outcome))["alerts"][0]["annotations"]
    assert told["acknowledged_by"] == "ann"
    assert told["outcome"] == "it happened, 12 min after the alert"
