"""Which metrics pages this node's engines have: from real processes, and from a /proc written by hand."""

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.ports import free_port

from oomwatch_agent.engines.fetch import Endpoint
from oomwatch_agent.engines.find import VERL_FILE, Finder, Server, engine_of, verl_targets

DEADLINE_SECONDS = 20.0

# A program that listens at two ports, as an engine does, and tells which.
LISTENER = """
import socket, sys
sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(2)]
asked = sys.argv[1:]
if "--port" in asked:
    sockets[0].close()
    sockets[0] = socket.create_server((asked[asked.index("--host") + 1], int(asked[asked.index("--port") + 1])))
print(*(each.getsockname()[1] for each in sockets), flush=True)
sys.stdin.read()
"""


@pytest.fixture
def started() -> Iterator[list["subprocess.Popen[str]"]]:
    """Processes that are ended when the test is over."""
    processes: list[subprocess.Popen[str]] = []
    yield processes
    for process in processes:
        process.communicate("")
        assert process.wait(DEADLINE_SECONDS) == 0


def _start(started: list["subprocess.Popen[str]"], script: Path, *arguments: str) -> tuple[int, list[int]]:
    """Its process id and the ports that it listens at."""
    script.write_text(LISTENER)
    process = subprocess.Popen(
        [sys.executable, str(script), *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    started.append(process)
    assert process.stdout is not None
    return process.pid, [int(port) for port in process.stdout.readline().split()]


# ------------------------------------------------------------ real processes


@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0"])
def test_a_server_is_found_at_the_port_that_it_was_told(
    started: list["subprocess.Popen[str]"], tmp_path: Path, host: str
) -> None:
    port = str(free_port())
    pid, _ = _start(started, tmp_path / "vllm", "serve", "some/model", "--host", host, "--port", port)
    assert Server(Endpoint("127.0.0.1", int(port)), pid) in Finder().find()


def test_no_other_port_of_a_server_is_asked(started: list["subprocess.Popen[str]"], tmp_path: Path) -> None:
    port = str(free_port())
    pid, ports = _start(started, tmp_path / "vllm", "serve", "--host", "127.0.0.1", "--port", port)
    assert len(ports) == 2
    assert [server.place.port for server in Finder().find() if server.pid == pid] == [int(port)]


def test_a_server_of_which_no_port_is_known_is_left_alone(
    started: list["subprocess.Popen[str]"], tmp_path: Path
) -> None:
    pid, _ = _start(started, tmp_path / "sglang", "serve")  # listens at two ports, neither of them the default
    assert pid not in [server.pid for server in Finder().find()]


def test_another_program_is_left_alone(started: list["subprocess.Popen[str]"], tmp_path: Path) -> None:
    port = str(free_port())
    pid, _ = _start(started, tmp_path / "serve.py", "--host", "127.0.0.1", "--port", port)
    assert pid not in [server.pid for server in Finder().find()]


# ------------------------------------------------------------ what verl wrote


def _prometheus_file(root: Path, *targets: str) -> None:
    (root / VERL_FILE).parent.mkdir(parents=True)
    listed = "".join(f"    - {target}\n" for target in targets)
    (root / VERL_FILE).write_text(
        "global:\n  scrape_interval: 10s\nscrape_configs:\n- file_sd_configs:\n  - files:\n    - sd.json\n"
        f"  job_name: ray\n- job_name: rollout\n  static_configs:\n  - targets:\n{listed}"
    )


def _listening(root: Path, *sockets: str) -> None:
    """/proc/net/tcp with these local addresses, in the kernel's hexadecimal, listening; inodes from 500 on."""
    (root / "proc/net").mkdir(parents=True)
    for table, length in (("tcp", 8), ("tcp6", 32)):
        rows = [
            f"   {number}: {local} {'0' * length}:0000 0A 00000000:00000000 00:00000000 00000000  1000  0 {inode} 1"
            for number, (inode, local) in enumerate(enumerate(sockets, 500))
            if len(local.partition(":")[0]) == length
        ]
        (root / "proc/net" / table).write_text("\n".join(["  sl  local_address rem_address   st", *rows, ""]))


def test_verls_servers_on_this_node_are_found_and_those_of_other_nodes_are_not(tmp_path: Path) -> None:
    _prometheus_file(tmp_path, "127.0.0.1:8000", "198.51.100.7:8000", "127.0.0.1:9", '"[::1]:30000"')
    _listening(tmp_path, "00000000:1F40", "00000000000000000000000001000000:7530")
    assert Finder(tmp_path).find() == (Server(Endpoint("127.0.0.1", 8000)), Server(Endpoint("::1", 30000)))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "rollout",
        "job_name: rollout: [",
        "scrape_configs: rollout",
        "scrape_configs: [rollout, {job_name: rollout}]",
        "scrape_configs: [{job_name: rollout, static_configs: [{targets: [a, ':1', 'h:x', 'h:70000', {}]}]}]",
        "scrape_configs: [{job_name: other, static_configs: [{targets: ['h:1']}]}] # rollout",
    ],
)
def test_another_prometheus_configuration_names_no_server(text: str) -> None:
    assert verl_targets(text) == []


def test_a_configuration_that_is_no_file_is_not_read(tmp_path: Path) -> None:
    (tmp_path / VERL_FILE).parent.mkdir(parents=True)
    os.mkfifo(tmp_path / VERL_FILE)
    _listening(tmp_path, "00000000:1F40")
    thread = threading.Thread(target=Finder(tmp_path).find, daemon=True)
    thread.start()
    thread.join(DEADLINE_SECONDS)
    assert not thread.is_alive()


# ------------------------------------------------------------ a /proc written by hand


def _process(root: Path, pid: int, *arguments: str, short_name: str = "python3", inodes: tuple[int, ...] = ()) -> None:
    folder = root / "proc" / str(pid)
    (folder / "fd").mkdir(parents=True)
    (folder / "comm").write_text(short_name + "\n")
    (folder / "cmdline").write_text("".join(argument + "\0" for argument in arguments))
    (folder / "fd/0").symlink_to("/dev/null")
    for inode in inodes:
        (folder / f"fd/{inode}").symlink_to(f"socket:[{inode}]")


def test_a_server_without_a_port_listens_at_its_engines_default(tmp_path: Path) -> None:
    _listening(tmp_path, "00000000:7530", "0100007F:9999")
    _process(tmp_path, 9, "python3", "-m", "sglang.launch_server", inodes=(500, 501), short_name="pt_main_thread")
    assert Finder(tmp_path).find() == (Server(Endpoint("127.0.0.1", 30000), 9),)


def test_a_server_whose_file_says_the_port_is_known_by_its_only_socket(tmp_path: Path) -> None:
    _listening(tmp_path, "0100007F:2328")
    _process(tmp_path, 9, "/usr/bin/vllm", "serve", "--config", "x.yaml", short_name="vllm", inodes=(500, 777))
    assert Finder(tmp_path).find() == (Server(Endpoint("127.0.0.1", 9000), 9),)


def test_a_port_that_another_process_holds_is_not_the_servers(tmp_path: Path) -> None:
    _listening(tmp_path, "0100007F:1F40")
    _process(tmp_path, 9, "vllm", "serve", "--port", "8000", short_name="vllm")
    _process(tmp_path, 10, "nginx", short_name="nginx", inodes=(500,))
    assert Finder(tmp_path).find() == ()


@pytest.mark.parametrize(
    ("local", "host"),
    [
        ("0200A8C0:1F40", "192.168.0.2"),
        ("00000000000000000000000000000000:1F40", "::1"),
        ("0000000000000000FFFF00000200A8C0:1F40", "192.168.0.2"),
    ],
)
def test_a_server_is_asked_at_the_address_that_it_is_bound_to(tmp_path: Path, local: str, host: str) -> None:
    _listening(tmp_path, local)
    _process(tmp_path, 9, "vllm", "serve", short_name="vllm", inodes=(500,))
    assert Finder(tmp_path).find() == (Server(Endpoint(host, 8000), 9),)


def test_a_machine_without_these_files_has_no_servers(tmp_path: Path) -> None:
    (tmp_path / "proc/9").mkdir(parents=True)
    assert Finder(tmp_path).find() == ()


@pytest.mark.parametrize(
    ("line", "engine"),
    [
        ("/usr/bin/python3 /usr/local/bin/vllm serve m --port 1", "vllm"),
        ("vllm serve m", "vllm"),
        ("python -m vllm.entrypoints.openai.api_server --model m", "vllm"),
        ("python -u -m sglang.launch_server --model-path m", "sglang"),
        ("/opt/bin/sglang serve --model-path m", "sglang"),
        ("vllm bench serve", None),
        ("python -m vllm.collect_env", None),
        ("python train.py", None),
        ("VLLM::EngineCore", None),
        ("", None),
    ],
)
def test_a_command_line_tells_whether_it_starts_a_server(line: str, engine: str | None) -> None:
    assert engine_of(line.split(" ")) == engine


def test_looking_takes_little_time_on_a_node_with_many_processes(tmp_path: Path) -> None:
    _listening(tmp_path)
    for pid in range(1, 1001):
        _process(tmp_path, pid, "sleep", "1", short_name="sleep")
    finder = Finder(tmp_path)
    started_at = time.process_time()
    finder.find()
    assert time.process_time() - started_at < 1.0
