"""What a reader remembers from line to line."""

import time

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oomwatch import wire
from oomwatch_agent.logs.context import PhaseMemory
from oomwatch_agent.logs.envelope import MAX_LINE_CHARS
from oomwatch_agent.logs.reader import LineReader, Recognised
from oomwatch_agent.logs.scan import Chunk
from oomwatch_agent.logs.splitter import LineSplitter
from oomwatch_agent.logs.table import PATTERNS
from oomwatch_agent.logs.trainers import TRAINERS

OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.32 GiB."
TRACEBACK_OF_91 = "ray::WorkerDict.train() (pid=91, ip=192.0.2.2, actor_id=9d, repr=<W>)"


TRACEBACK = ("Traceback (most recent call last):", '  File "w.py", line 1, in run')
FAILURES = [
    OOM,
    "RuntimeError: CUDA error: out of memory",
    "Memory cgroup out of memory: Killed process 4127 (python3) total-vm:331200kB, anon-rss:2048kB",
    "slurmstepd: error: Detected 1 oom_kill event in StepId=1813.0.",
    "      Reason:       OOMKilled",
    "command terminated with exit code 137",
    "NVRM: Xid (PCI:0000:3b:00): 79, pid='<unknown>', GPU has fallen off the bus.",
    "OSError: [Errno 28] No space left on device",
    "ncclSystemError: System call (e.g. socket, malloc) or external library call failed or device error.",
]


def read(*lines: str, reader: LineReader | None = None) -> list[Recognised]:
    reader = reader or LineReader()
    return [found for number, line in enumerate(lines, 1) for found in reader.feed(line, number)]


def memory_line(head: str) -> str:
    return f"{head}, memory allocated (GB): 2.01, memory reserved (GB): 4.01"


def ooms(found: list[Recognised]) -> list[tuple[int | None, str | None]]:
    """Process and phase of every device OOM."""
    return [(one.pid, one.body.phase) for one in found if isinstance(one.body, wire.DeviceOom)]


def test_an_error_without_prefix_belongs_to_the_process_of_its_traceback() -> None:
    (one,) = read(
        f"ray.exceptions.RayTaskError(OutOfMemoryError): {TRACEBACK_OF_91}", '  File "w.py", line 1, in f', OOM
    )
    assert (one.pid, one.actor, one.ip, one.line) == (91, "WorkerDict", "192.0.2.2", 3)


def test_the_tracebacks_process_is_right_even_where_another_printed_it() -> None:
    prefix = "(TaskRunner pid=40) "
    assert ooms(read(prefix + f"Unhandled error: {TRACEBACK_OF_91}", prefix + OOM)) == [(91, None)]


def test_tracebacks_of_two_processes_do_not_mix() -> None:
    found = read(f"(TaskRunner pid=40) {TRACEBACK_OF_91}", f"(WorkerDict pid=55) {OOM}", f"(TaskRunner pid=40) {OOM}")
    assert ooms(found) == [(55, None), (91, None)]


def test_an_ordinary_record_ends_the_traceback() -> None:
    found = read(TRACEBACK_OF_91, memory_line("After lunch"), OOM)
    assert ooms(found) == [(None, None)]


def test_one_error_printed_three_times_is_one_event() -> None:
    assert len(ooms(read(TRACEBACK_OF_91, OOM, "During handling", OOM, TRACEBACK_OF_91, OOM))) == 1


def test_the_same_words_from_another_process_are_another_event() -> None:
    assert ooms(read(f"(WorkerDict pid=1) {OOM}", f"(WorkerDict pid=2) {OOM}")) == [(1, None), (2, None)]


def test_an_error_long_after_the_first_is_news() -> None:
    assert len(ooms(read(OOM, *["nothing"] * 2001, OOM))) == 2


def test_the_phase_of_an_error_is_that_of_the_last_memory_line() -> None:
    found = read(f"(WorkerDict pid=1) {memory_line('After resume kv_cache')}", f"(WorkerDict pid=1) {OOM}")
    assert ooms(found) == [(1, "rollout")]


def test_ranks_that_print_nothing_are_in_the_phase_of_rank_0() -> None:
    found = read(f"(WorkerDict pid=1) {memory_line('Before update policy')}", f"(WorkerDict pid=2) {OOM}")
    assert ooms(found) == [(2, "update_actor")]


def test_a_point_that_several_phases_pass_tells_no_phase() -> None:
    found = read(memory_line("After resume kv_cache"), memory_line("After load_fsdp_model_to_gpu"), OOM)
    assert ooms(found) == [(None, None)]


def test_the_phase_ends_with_the_step() -> None:
    found = read(memory_line("After resume kv_cache"), "step:1 - timing_s/gen:3.0", OOM)
    assert ooms(found) == [(None, None)]


def test_the_failed_method_tells_the_phase_better_than_memory_lines() -> None:
    method = TRACEBACK_OF_91.replace("train", "actor_rollout_update_actor")
    assert ooms(read(memory_line("After resume kv_cache"), method, OOM)) == [(91, "update_actor")]


def test_the_outermost_function_of_a_traceback_tells_the_phase() -> None:
    frames = ['  File "a.py", line 1, in compute_ref_log_prob', '  File "a.py", line 2, in compute_log_prob']
    assert ooms(read("Traceback (most recent call last):", *frames, OOM)) == [(None, "ref")]


def test_logs_of_one_run_share_what_phase_it_is_in() -> None:
    phases = PhaseMemory()
    read(memory_line("After resume kv_cache"), reader=LineReader(pid=1, phases=phases))
    assert ooms(read(OOM, reader=LineReader(pid=2, phases=phases))) == [(2, "rollout")]


def test_a_workers_own_file_names_job_and_actor() -> None:
    reader = LineReader(pid=25520)
    found = read(":job_id:01000000", ":actor_name:WorkerDict", memory_line("x"), reader=reader)
    assert reader.job == "01000000"
    assert [(one.pid, one.actor) for one in found] == [(25520, "WorkerDict")]


def test_the_run_is_named_by_the_trainer_section_of_the_printed_configuration() -> None:
    prefix = "(TaskRunner pid=7) "
    reader = LineReader()
    read(
        prefix + "{'actor_rollout_ref': {'actor': {'checkpoint': 1,",
        prefix + "                       'project_name': '${oc.select:trainer.project_name,null}',",
        prefix + " 'reward': {'experiment_name': 'not_this', 'project_name': 'nor_this'},",
        prefix + " 'trainer': {'balance_batch': True,",
        prefix + "             'experiment_name': 'qwen7b_grpo',",
        reader=reader,
    )
    assert reader.run is None
    (one,) = read(prefix + "             'project_name': 'demo',", "step:1 - timing_s/gen:3.0", reader=reader)
    assert one.run == reader.run == "demo/qwen7b_grpo"


def test_a_second_configuration_in_the_log_is_a_new_run() -> None:
    reader = LineReader()
    for name in ("first", "second"):
        read(f" 'trainer': {{'experiment_name': '{name}',", "             'project_name': 'demo',", reader=reader)
    assert reader.run == "demo/second"


def test_a_sample_silences_its_own_process_only() -> None:
    found = read(f"(TaskRunner pid=7) [prompt] {OOM}", f"(TaskRunner pid=7) {OOM}", f"(WorkerDict pid=8) {OOM}")
    assert ooms(found) == [(8, None)]


def test_after_a_sample_the_process_is_heard_again() -> None:
    prefix = "(TaskRunner pid=7) "
    failed = [prefix + line for line in ("[response] x", OOM, "[score] 1.0", *TRACEBACK, OOM)]
    assert ooms(read(*failed)) == [(7, None)]


@pytest.mark.parametrize("failure", FAILURES)
@pytest.mark.parametrize("actor", ["TaskRunner", "TaskRunnerV1", "main_task", "Runner", "NaiveRewardManager"])
def test_what_prints_samples_is_not_believed_to_have_failed_without_a_traceback(actor: str, failure: str) -> None:
    reader = LineReader()
    assert read(f"({actor} pid=7) {failure}", reader=reader) == []
    assert "passed over: 1 line with an error" in next(reader.reasons())


@pytest.mark.parametrize("failure", FAILURES)
def test_what_prints_no_samples_is_believed_without_one(failure: str) -> None:
    for writer in (
        "(WorkerDict pid=7) ",
        "(vLLMHttpServer pid=8) (EngineCore_DP0 pid=9) ",
        "(RewardModelWorker pid=3) ",
        "",
    ):
        assert len(read(writer + failure)) == 1


def test_an_error_of_the_driver_with_its_traceback_is_believed_whoever_prints_in_between() -> None:
    prefix = "(TaskRunner pid=7) "
    others = ["(WorkerDict pid=8)   more words"] * 250
    assert ooms(read(*(prefix + line for line in TRACEBACK), *others, prefix + OOM)) == [(7, None)]


def test_a_traceback_of_long_ago_or_of_another_process_does_not_make_text_an_error() -> None:
    prefix = "(TaskRunner pid=7) "
    assert ooms(read(*(prefix + line for line in TRACEBACK), *["words"] * 301, prefix + OOM)) == []
    assert ooms(read(*(f"(WorkerDict pid=8) {line}" for line in TRACEBACK), prefix + OOM)) == []
    assert ooms(read(*(prefix + line for line in TRACEBACK), prefix + "step:1 - timing_s/gen:3.0", prefix + OOM)) == []


def test_the_drivers_own_file_is_told_by_its_first_lines_and_its_standard_error_is_believed() -> None:
    lines = (":job_id:01000000", ":actor_name:TaskRunner", OOM)
    assert ooms(read(*lines, reader=LineReader(pid=25521))) == []
    assert ooms(read(*lines, reader=LineReader(pid=25521, errors_only=True))) == [(25521, None)]


def test_a_sample_without_an_end_does_not_silence_for_good() -> None:
    assert len(ooms(read("[response] x", *["words"] * 5001, OOM))) == 1


def test_what_ray_folded_is_counted() -> None:
    (one,) = read("(WorkerDict pid=7) Available KV cache memory: 64.27 GiB [repeated 7x across cluster]")
    assert one.repeated == 7


def test_an_origin_is_what_the_line_said_and_a_base_name() -> None:
    (one,) = read("(WorkerDict pid=7, ip=192.0.2.4) [rank3]: Available KV cache memory: 64.27 GiB")
    expected = wire.Origin(source="driver.log", line=1, pid=7, actor="WorkerDict", ip="192.0.2.4", rank=3)
    assert one.origin("driver.log") == expected


@pytest.mark.parametrize(
    "head",
    [
        "",
        "(a pid=1) ",
        "step:1 - ",
        f"{OOM} ",
        "Memory on the node ",
        '  File "',
        "MA 1 GB Max_MA ",
        '{"step": 1, "data": {',
        "{'loss': 1, 'epoch': ",
        "perf 1: {'perf/step_time': 1, ",
        "✨ Global step 1: {'",
        "  • ",
        "torch.distributed.DistBackendError: NCCL error in: ",
        "The object store is using /tmp instead of /dev/shm because ",
        "A avail mem=",
        "a-0 0/1 OOMKilled 0 ",
        "Killed process 1 (a), UID 0, total-vm:1kB",
        "[Sun Nov 29 13:50:26 2026] ",
        "<3>1 2026-11-29T13:50:26Z ",
        "2026-11-29T13:50:26Z ",
        '{"time":"2026-05-01","message":"',
    ],
)
def test_a_hostile_line_costs_no_more_than_a_blink(head: str) -> None:
    fills = (
        "0",
        "1%|",
        "a:b - ",
        "ray::a.b",
        "1 GB ",
        "reserved ",
        "(a pid=1) ",
        "[rank1]: ",
        ".",
        " \t",
        "it [",
        "File ",
    )
    ends = ("memory", "}", " eserved 137 it/s ray:: ", '", line Memory on the node Killed process % full')
    begun = time.process_time()
    for line in (head + fill * (MAX_LINE_CHARS // len(fill)) + end for fill in fills for end in ends):
        read(line)
        read(line[:MAX_LINE_CHARS])
    # 72 lines of 64 KiB: 4.7 MB. A pattern that backtracks takes hours.
    assert time.process_time() - begun < 10


@given(st.binary(max_size=300))
def test_any_bytes_are_read_without_an_error(content: bytes) -> None:
    read(*content.decode("utf-8", "replace").split("\n"))


_PIECES = st.one_of(
    st.binary(max_size=60),
    st.sampled_from(
        [b"\n", b"\r", b"\0", b"\x1b[36m", b"(a pid=1) ", b"Step 5\n", b"{'actor_rollout_ref': {", b"\xff"]
    ),
    st.sampled_from([pattern.example.encode() for pattern in PATTERNS]),
    st.sampled_from([line.encode() + b"\n" for trainer in TRAINERS for line in trainer.example]),
)


@given(st.lists(_PIECES, max_size=30), st.integers(1, 200))
def test_any_log_is_read_in_any_blocks_without_an_error(pieces: list[bytes], block_bytes: int) -> None:
    content, reader, splitter = b"".join(pieces), LineReader(), LineSplitter()
    found: list[Recognised] = []
    for at in range(0, len(content), block_bytes):
        found += reader.read(splitter.feed(content[at : at + block_bytes]))
        found += reader.flush()
    for one in [*found, *reader.read(splitter.flush()), *reader.end()]:
        event = wire.Event(seq=1, at=1.0, body=one.body, run=one.run, origin=one.origin("x.log"))
        assert msgspec.json.decode(msgspec.json.encode(event), type=wire.Event) == event


@pytest.mark.parametrize("row", [b"x" * 80, b"Step 5", b"memory " * 11, b"  key: 1", b"{'actor_rollout_ref': {'a': ["])
def test_rows_that_never_end_a_record_cost_no_more_than_others(row: bytes) -> None:
    lines = 20_000
    begun = time.process_time()
    reader = LineReader()
    for _ in range(10):
        list(reader.read(Chunk((row + b"\n") * (lines // 10), 1)))
    assert time.process_time() - begun < 20  # a second or so where nobody else works


@given(
    st.sampled_from([pattern.example for pattern in PATTERNS]),
    st.lists(st.tuples(st.integers(0, 400), st.sampled_from("0123456789.-e:/()[]{} '\"\x1b�x%|")), max_size=12),
)
def test_a_damaged_line_gives_nothing_or_what_the_wire_takes(example: str, changes: list[tuple[int, str]]) -> None:
    letters = list(example)
    for at, letter in changes:
        letters[at % len(letters)] = letter
    for one in read("".join(letters)):
        event = wire.Event(seq=1, at=1.0, body=one.body, run=one.run, origin=one.origin("x.log"))
        assert msgspec.json.decode(msgspec.json.encode(event), type=wire.Event) == event


@given(st.sampled_from([pattern.example for pattern in PATTERNS]), st.from_regex(r"[0-9]{1,400}", fullmatch=True))
def test_absurd_numbers_never_break_the_wire(example: str, number: str) -> None:
    for one in read(*(example.replace(digits, number, 1) for digits in "123456789")):
        event = wire.Event(seq=1, at=1.0, body=one.body, origin=one.origin("x.log"))
        assert msgspec.json.decode(msgspec.json.encode(event), type=wire.Event) == event
