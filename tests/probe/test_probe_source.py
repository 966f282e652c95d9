"""The agent's side of the probe: who is told of, for how long, and that no process can harm it by what it sends."""

import json
import os
import random
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oomwatch import wire
from oomwatch_agent.probe.receiver import MAX_SENDERS, Datagram, Place, ProbeSocket, _set_mode, listen, usual_places
from oomwatch_agent.probe.report import MAX_DATAGRAM_BYTES, decode
from oomwatch_agent.probe.source import ProbeSource
from oomwatch_agent.source import Identity, KnownBy, Reading, SourceMissingError

GIB = 1024**3
DEADLINE_SECONDS = 60.0
SENDER = """
import socket, sys
socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).sendto(sys.argv[2].encode(), sys.argv[1])
"""


class FakeClock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "probe.sock"


@pytest.fixture
def source(path: Path, clock: FakeClock) -> Iterator[ProbeSource]:
    opened = ProbeSource(str(path), clock=clock)
    opened.open()
    yield opened
    opened.close()


def _report(**more: Any) -> dict[str, Any]:
    devices = [{"index": 0, "uuid": "aaaa-0", "reserved_bytes": 3 * GIB, "allocated_bytes": GIB}]
    return {"v": 1, "pid": 4242, "started_at": 1.0, "door": "verl.plugins", "devices": devices, **more}


def _send(path: Path, content: bytes | dict[str, Any]) -> None:
    """As this process."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
        sender.sendto(content if isinstance(content, bytes) else json.dumps(content).encode(), str(path))


def _until(source: ProbeSource, condition: Callable[[Reading], bool]) -> Reading:
    deadline = time.monotonic() + DEADLINE_SECONDS
    while time.monotonic() < deadline:
        reading = source.read(slow=False)
        if condition(reading):
            return reading
        time.sleep(0.005)
    raise AssertionError(f"it never came to that: {reading}")


def _heard(source: ProbeSource) -> Reading:
    return _until(source, lambda reading: bool(reading.torch))


def _detail(facts: wire.NodeFacts | None) -> str:
    assert facts is not None
    return facts.sources[0].detail or ""


# ---------------------------------------------------------------- who is told of


def test_the_kernel_says_who_sent_it(source: ProbeSource, path: Path) -> None:
    """In a container a process has another number than outside: the agent goes by its own numbering."""
    _send(path, _report(pid=4242, rank=1, role="actor", run="qwen"))
    reading = _heard(source)
    assert reading.torch == (
        wire.TorchSample(
            pid=os.getpid(),
            gpu="aaaa-0",
            run="qwen",
            rank=1,
            role="actor",
            reserved_bytes=3 * GIB,
            allocated_bytes=GIB,
        ),
    )
    (found,) = reading.found
    assert found.origin == wire.Origin(source="probe", pid=os.getpid(), rank=1)


def test_nobody_can_speak_for_another(source: ProbeSource, path: Path) -> None:
    for pid in (1, 2, 3):
        _send(path, _report(pid=pid))
    assert {sample.pid for sample in _heard(source).torch} == {os.getpid()}


def test_a_newer_probe_may_say_more(source: ProbeSource, path: Path) -> None:
    report = _report(colour="blue")
    report["devices"][0]["pool"] = {"a": 1}
    _send(path, report)
    assert _heard(source).torch[0].reserved_bytes == 3 * GIB


def test_the_latest_message_counts(source: ProbeSource, path: Path) -> None:
    for reserved in (1, 2, 3):
        _send(path, _report(devices=[{"index": 0, "reserved_bytes": reserved}]))
    _until(source, lambda reading: [sample.reserved_bytes for sample in reading.torch] == [3])


def test_what_is_known_is_given_at_every_read_until_news_come(source: ProbeSource, path: Path) -> None:
    _send(path, _report())
    first = _heard(source)
    again = source.read(slow=False)
    assert again.torch == first.torch
    assert again.found == ()


def test_a_process_that_uses_no_gpu_yet_is_introduced_when_it_does(source: ProbeSource, path: Path) -> None:
    _send(path, _report(devices=[]))
    reading = _until(source, lambda reading: reading.facts is not None)
    assert (reading.found, _detail(reading.facts)) == ((), "1 process, 0 GPUs")
    _send(path, _report())
    (found,) = _heard(source).found
    assert found.body == wire.Probe(door="verl.plugins", gpus=("aaaa-0",))


def test_a_silent_process_leaves_after_ten_seconds(source: ProbeSource, path: Path, clock: FakeClock) -> None:
    _send(path, _report())
    _heard(source)
    clock.now += 9.9
    assert source.read(slow=False).torch, "this process lives"
    clock.now += 0.2
    reading = source.read(slow=False)
    assert reading.torch == ()
    assert "no process that uses CUDA has the probe inside" in _detail(reading.facts)


def test_a_dead_process_leaves_sooner(source: ProbeSource, path: Path, clock: FakeClock) -> None:
    subprocess.run([sys.executable, "-c", SENDER, str(path), json.dumps(_report())], check=True)
    _heard(source)
    clock.now += 3.0
    assert source.read(slow=False).torch == ()


def test_the_source_says_how_many_it_hears(source: ProbeSource, path: Path) -> None:
    devices = [{"index": index, "uuid": f"aaaa-{index}", "reserved_bytes": 1} for index in range(8)]
    _send(path, _report(devices=devices))
    facts = _heard(source).facts
    assert facts is not None
    assert facts.sources == (wire.SourceFacts(name="probe", state="ok", detail="1 process, 8 GPUs"),)
    assert source.read(slow=False).facts is None, "nothing has changed"


def test_a_run_that_a_person_gave_the_process_is_told_as_such(path: Path) -> None:
    source = ProbeSource(str(path))
    source.open()
    _send(path, _report(rank=3, role="actor", run="mine"))
    reading = _heard(source)
    told = Identity(pid=os.getpid(), run="mine", run_by=KnownBy.PERSON, rank=3, role="actor")
    assert reading.identities == (told,)
    assert [found.run_by for found in reading.found] == [KnownBy.PERSON]
    assert source.read(slow=True).identities == (told,)
    source.close()


def test_a_run_that_the_process_does_not_name_is_read_from_its_environment(path: Path) -> None:
    code = SENDER + "sys.stdin.read()"
    source = ProbeSource(str(path))
    source.open()
    environ = {**os.environ, "SLURM_JOB_NAME": "grpo", "SLURM_JOB_ID": "17"}
    program = [sys.executable, "-c", code, str(path), json.dumps(_report())]
    with subprocess.Popen(program, env=environ, stdin=subprocess.PIPE) as sender:
        reading = _heard(source)
        assert [sample.run for sample in reading.torch] == [found.run for found in reading.found] == ["grpo-17"]
        assert reading.identities == (Identity(pid=sender.pid, run="grpo-17", run_by=KnownBy.BATCH_JOB),)
        sender.communicate()
    source.close()


@pytest.mark.parametrize(
    ("uuid", "visible", "name"),
    [
        ("aaaa-0", "3", "aaaa-0"),
        (None, "3,5", "5"),
        (None, " GPU-x , MIG-y ", "MIG-y"),
        (None, "3", None),
        (None, None, None),
        (None, "", None),
    ],
)
def test_a_device_is_named_by_what_the_process_was_given(
    uuid: str | None, visible: str | None, name: str | None
) -> None:
    content = json.dumps(_report(devices=[{"index": 1, "uuid": uuid}], visible_devices=visible))
    assert decode(content.encode()).gpu_names() == (name,)


# ---------------------------------------------------------------- what processes may send


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\x00" * 100,
        b"[]",
        b"null",
        b'{"v": 1}',
        b"[" * 10_000,
        json.dumps(_report(v=2)).encode(),
        json.dumps(_report(pid=-1)).encode(),
        json.dumps(_report(pid=True)).encode(),
        json.dumps(_report(run="")).encode(),
        json.dumps(_report(run="a\nb")).encode(),
        json.dumps(_report(role="x" * 201)).encode(),
        json.dumps(_report(door="\x1b[31m")).encode(),
        json.dumps(_report(rank=-1)).encode(),
        json.dumps(_report(rank=2**60)).encode(),
        json.dumps(_report(started_at="now")).encode(),
        json.dumps(_report(devices=[{"index": 0, "reserved_bytes": -1}])).encode(),
        json.dumps(_report(devices=[{"index": 0, "reserved_bytes": 1.5}])).encode(),
        json.dumps(_report(devices=[{"index": 0, "reserved_bytes": 2**53 + 1}])).encode(),
        json.dumps(_report(devices=[{"index": 0}] * 65)).encode(),
        json.dumps(_report(run="\ud800")).encode(),
        b'{"v":1,"pid":1,"started_at":NaN,"door":"x"}',
        b'{"v":1,"pid":1,"started_at":1e999,"door":"x"}',
    ],
)
def test_what_no_probe_says_is_refused_and_told(source: ProbeSource, path: Path, content: bytes) -> None:
    _send(path, content)
    reading = _until(source, lambda reading: reading.facts is not None)
    assert reading.torch == ()
    assert "something that is no probe sends to it" in _detail(reading.facts)


def test_a_refusal_is_told_for_a_minute(source: ProbeSource, path: Path, clock: FakeClock) -> None:
    _send(path, b"?")
    _until(source, lambda reading: reading.facts is not None)
    clock.now += 61.0
    assert "no probe sends" not in _detail(source.read(slow=False).facts)


@given(st.binary(max_size=2000))
def test_any_bytes_are_read_or_refused(content: bytes) -> None:
    _read_or_refused(content)


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
_FIELDS = [
    "v",
    "pid",
    "started_at",
    "door",
    "devices",
    "rank",
    "role",
    "run",
    "visible_devices",
    "errors",
    "torch_version",
]


@given(st.dictionaries(st.sampled_from(_FIELDS), _JSON, max_size=4))
def test_any_values_in_a_report_are_read_or_refused(changed: dict[str, Any]) -> None:
    _read_or_refused(json.dumps({**_report(), **changed}).encode())


@given(st.dictionaries(st.sampled_from(["index", "uuid", "reserved_bytes", "ooms_total"]), _JSON, max_size=3))
def test_any_values_in_a_device_are_read_or_refused(changed: dict[str, Any]) -> None:
    _read_or_refused(json.dumps(_report(devices=[{"index": 0, **changed}], visible_devices="0,1")).encode())


def _read_or_refused(content: bytes) -> None:
    """What is read can be sent on, and read by the server."""
    try:
        report = decode(content)
    except ValueError:
        return
    samples = tuple(
        wire.TorchSample(pid=report.pid, gpu=name, role=report.role, run=report.run) for name in report.gpu_names()
    )
    sent = msgspec.json.encode(wire.Sample(seq=1, at=1.0, torch=samples))
    assert msgspec.json.decode(sent, type=wire.Sample).torch == samples


def test_damaged_messages_among_good_ones_do_no_harm(source: ProbeSource, path: Path) -> None:
    """A hundred datagrams with bytes exchanged, and the good one that follows is heard."""
    dice = random.Random(7)
    for _ in range(100):
        content = bytearray(json.dumps(_report()).encode())
        for _ in range(dice.randint(1, 8)):
            content[dice.randrange(len(content))] = dice.randrange(256)
        _send(path, bytes(content))
        source.read(slow=False)
    _send(path, _report(devices=[{"index": 0, "reserved_bytes": 77}]))
    _until(source, lambda reading: [sample.reserved_bytes for sample in reading.torch] == [77])


def test_a_datagram_that_is_too_large_is_dropped(source: ProbeSource, path: Path) -> None:
    _send(path, json.dumps(_report(padding="x" * MAX_DATAGRAM_BYTES)).encode())
    _send(path, _report())
    _heard(source)


def test_of_a_flood_one_message_is_kept(source: ProbeSource, path: Path) -> None:
    """However much one process sends, a read of the source looks at one message of it."""
    content = json.dumps(_report()).encode()
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
        sender.connect(str(path))
        for _ in range(100):
            sender.send(content)
    assert source._socket is not None
    assert len(source._socket.take()) <= 1


def test_more_processes_than_any_node_has_are_not_kept(path: Path) -> None:
    """Senders that the kernel cannot number are told apart by what they send: of them, too, there is a most."""
    listening = ProbeSocket(path, for_everybody=False)
    for number in range(MAX_SENDERS + 50):
        listening._keep(Datagram(str(number).encode(), None))
    assert len(listening.take()) == MAX_SENDERS
    listening.close()


# ---------------------------------------------------------------- the socket


def test_the_socket_is_gone_when_the_source_is_closed(path: Path) -> None:
    source = ProbeSource(str(path))
    source.open()
    assert stat.S_ISSOCK(path.stat().st_mode)
    source.close()
    assert not path.exists()
    source.close()


def test_what_a_killed_agent_left_behind_is_replaced(path: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as killed:
        killed.bind(str(path))
    assert path.exists()
    source = ProbeSource(str(path))
    source.open()
    _send(path, _report())
    _heard(source)
    source.close()


def test_two_agents_do_not_fight_for_a_socket(source: ProbeSource, path: Path) -> None:
    second = ProbeSource(str(path))
    with pytest.raises(SourceMissingError, match=r"another agent listens there.*--probe PATH"):
        second.open()
    second.close()
    _send(path, _report())
    _heard(source)


def test_a_file_in_the_way_is_left_alone_and_told(path: Path) -> None:
    path.write_text("mine")
    source = ProbeSource(str(path))
    with pytest.raises(SourceMissingError, match="no socket"):
        source.open()
    source.close()
    assert path.read_text() == "mine"


def test_a_path_that_is_too_long_is_told(tmp_path: Path) -> None:
    with pytest.raises(SourceMissingError, match="107 bytes"):
        ProbeSource(str(tmp_path / ("x" * 120))).open()


def test_a_socket_that_somebody_removed_is_made_again(source: ProbeSource, path: Path) -> None:
    path.unlink()
    source.read(slow=True)
    _send(path, _report())
    _heard(source)


def test_a_socket_of_somebody_else_in_its_place_is_not_removed(path: Path) -> None:
    source = ProbeSource(str(path))
    source.open()
    path.unlink()
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as other:
        other.bind(str(path))
        source.close()
        assert path.exists()


def test_a_named_socket_is_for_everybody_and_its_folder_is_made(tmp_path: Path) -> None:
    path = tmp_path / "a/b/probe.sock"
    source = ProbeSource(str(path))
    source.open()
    assert stat.S_IMODE(path.stat().st_mode) == 0o666
    source.close()


def test_the_mode_of_what_was_put_in_its_place_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "secret").touch(mode=0o600)
    (tmp_path / "link").symlink_to(tmp_path / "secret")
    for place in ("link", "secret"):
        with pytest.raises(OSError, match="something else"):
            _set_mode(tmp_path / place, 0o666)
    assert stat.S_IMODE((tmp_path / "secret").stat().st_mode) == 0o600


def test_a_users_own_socket_is_for_nobody_else(tmp_path: Path) -> None:
    own = Place(tmp_path / "own/probe.sock", for_everybody=False)
    listening = listen([own], os.geteuid())
    assert stat.S_IMODE(own.path.parent.stat().st_mode) == 0o700
    assert stat.S_IMODE(own.path.stat().st_mode) == 0o600
    listening.close()


def test_the_next_place_is_taken_where_the_better_one_cannot_be(tmp_path: Path) -> None:
    """A container may have no /run that can be written."""
    (tmp_path / "file").touch()
    places = [Place(tmp_path / "file/probe.sock", for_everybody=True), Place(tmp_path / "own/probe.sock", False)]
    listening = listen(places, os.geteuid())
    assert listening.path == places[1].path
    listening.close()


def test_an_agent_of_root_listens_for_everybody_and_any_other_for_itself() -> None:
    assert usual_places(0)[0] == Place(Path("/run/oomwatch/probe.sock"), for_everybody=True)
    assert usual_places(1000) == [Place(Path("/tmp/oomwatch-1000/probe.sock"), for_everybody=False)]  # noqa: S108


def test_a_folder_that_another_user_made_is_not_used(tmp_path: Path) -> None:
    """In /tmp anybody can make the folder of somebody else's agent before that agent does."""
    (tmp_path / "taken").mkdir()
    with pytest.raises(OSError, match="is no folder of user"):
        listen([Place(tmp_path / "taken/probe.sock", for_everybody=False)], os.geteuid() + 1)


def test_a_link_in_the_place_of_the_folder_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match="is no folder of user"):
        listen([Place(tmp_path / "link/probe.sock", for_everybody=False)], os.geteuid())
