"""A person takes care of one alert and silences another, by the command line, and the server is killed meanwhile."""

import subprocess
import sys
import time
from pathlib import Path

import msgspec
import websockets.sync.client
from tests.acceptance.programs import Server, ending, until
from tests.server.house import hello, sample
from tests.server.running_server import ENVIRON

from oomwatch import wire

RULES = """
rules:
  - alert: full
    severity: warning
    when: {kind: threshold, metric: gpu_used_ratio, above: 85%}
    keep_firing_for: 1s
    summary: "GPU {gpu} of {node} is {value} full"
"""


def oomwatch(server: Server, *arguments: str) -> str:
    """What the program prints."""
    program = [sys.executable, "-m", "oomwatch", *arguments, "--server", server.url]
    done = subprocess.run(program, env=ENVIRON, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


def fill_cards(server: Server) -> None:
    """Two nodes with a full card each."""
    for node in ("gpu-07", "gpu-08"):
        url = f"ws://127.0.0.1:{server.port}/ws/agent"
        with websockets.sync.client.connect(url, proxy=None, compression=None) as agent:
            for message in (hello(node, sent_at=time.time()), sample(1, 79, time.time())):
                agent.send(wire.encode(message).decode())
            until("the message to be stored", lambda: b'"ack"' in _bytes(agent.recv(timeout=20)))


def _bytes(frame: str | bytes) -> bytes:
    return frame.encode() if isinstance(frame, str) else frame


def test_care_and_silences_outlive_a_killed_server_and_end_on_the_command_line(tmp_path: Path) -> None:
    rules = tmp_path / "alerts.yaml"
    rules.write_text(RULES, encoding="utf-8")
    server = Server(tmp_path, rules)
    with ending(server):
        fill_cards(server)
        until("both alerts", lambda: len(server.alerts(state="firing")) == 2)
        by_node = {row["labels"]["node"]: row["id"] for row in server.alerts(state="firing")}
        oomwatch(server, "alerts", "ack", by_node["gpu-07"], "--by", "lin", "--note", "on it")
        oomwatch(server, "silence", "add", 'node=~"gpu-08|gpu-09"', "--for", "1h", "--by", "mei")
        server.program.kill()
        server.start()

        table = oomwatch(server, "alerts")
        assert [line.split()[-2] for line in table.splitlines()[1:]].count("lin") == 1
        assert [line.split()[-2] for line in table.splitlines()[1:]].count("silence") == 1
        (silence,) = msgspec.json.decode(oomwatch(server, "silence", "list", "--json"))
        oomwatch(server, "silence", "end", silence["id"])
        assert "silence" not in oomwatch(server, "alerts")
        story = server.get(f"/api/v1/alerts/{by_node['gpu-08']}")["transitions"]
        assert [one["change"] for one in story if "change" in one] == ["muted", "muted"], "nothing is told twice"
