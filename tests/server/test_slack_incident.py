"""An incident from the first full card to its end, as a Slack channel sees it: a real server, a stand-in for Slack."""

import time
from pathlib import Path

import yaml
from tests.server.house import hello, sample
from tests.server.running_server import RULES, AgentClient, RunningServer, serving, settings_in, until
from tests.server.slack import CHANNEL, TOKEN, Slack, slack


def write(folder: Path, service: Slack) -> None:
    (folder / "token").write_text(TOKEN, encoding="utf-8")
    channel = {"kind": "slack_bot", "name": "team", "channel": CHANNEL, "api_url": service.api_url}
    section = {"group_interval": "0s", "channels": [{**channel, "token_file": f"{folder}/token"}]}
    notify = yaml.safe_dump({"notify": section})
    (folder / "alerts.yaml").write_text(notify + RULES, encoding="utf-8")


def acknowledge(server: RunningServer) -> None:
    [alert] = server.get("/api/v1/alerts?state=firing").json()
    answer = server.ask("POST", f"/api/v1/alerts/{alert['id']}/acknowledge", json={"by": "ann"})
    assert answer.is_success, answer.text


def test_an_incident_is_one_message_with_its_story_in_the_thread(tmp_path: Path) -> None:
    with slack() as service:
        write(tmp_path, service)
        with serving(settings_in(tmp_path)) as server, AgentClient(server) as agent:
            at = time.time()
            agent.greet(hello(sent_at=at, run="qwen7b"))
            agent.say(*(sample(n + 1, 40, at - 20 + n) for n in range(20)))
            agent.hear_ack_of(20)  # stored, so that there is something to draw
            agent.say(sample(21, 79, at))
            until("the message", lambda: service.messages)
            until("the picture", lambda: service.files)
            acknowledge(server)
            until("the acknowledgement", lambda: [one for one in service.messages[1:] if "ann" in one["text"]])
            agent.say(*(sample(n + 22, 10, at + 1 + n) for n in range(4)))
            until("the end", lambda: [one for one in service.messages[1:] if "Resolved" in one["text"]])
        [main] = service.main()
        thread = [one["text"] for one in service.thread(main["ts"])]
        [file] = service.files
    assert main["text"].startswith("✅ Resolved: full on GPU 0 of gpu-07 (run qwen7b)")
    assert thread[0] == "Acknowledged by ann"
    assert thread[-1].startswith("✅ Resolved: full on GPU 0")
    assert file["thread_ts"] == main["ts"]
    assert file["content"].startswith(b"\x89PNG")


def test_a_server_that_was_stopped_goes_on_in_the_same_message(tmp_path: Path) -> None:
    with slack() as service:
        write(tmp_path, service)
        at = time.time()
        with serving(settings_in(tmp_path)) as server, AgentClient(server) as agent:
            agent.greet(hello(sent_at=at))
            agent.say(sample(1, 79, at))
            until("the message", lambda: service.messages)
        with serving(settings_in(tmp_path)) as server, AgentClient(server) as agent:
            agent.greet(hello(sent_at=time.time(), session="s2"))
            agent.say(*(sample(n + 1, 10, time.time() + n) for n in range(4)))
            until("the end", lambda: [one for one in service.messages[1:] if "Resolved" in one["text"]])
        [main] = service.main()
    assert main["text"].startswith("✅ Resolved: full on GPU 0")
