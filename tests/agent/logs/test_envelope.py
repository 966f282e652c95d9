"""What is taken off a record, and what it tells of the writer."""

import pytest

from oomwatch_agent.logs.envelope import MAX_LINE_CHARS, Record, unwrap

ESC = "\x1b"


@pytest.mark.parametrize(
    "line",
    [
        f"{ESC}[36m(WorkerDict pid=25520){ESC}[0m text",
        "^[[36m(WorkerDict pid=25520)^[[0m text",
        "[36m(WorkerDict pid=25520)[0m text",
        "#033[36m(WorkerDict pid=25520)#033[0m text",
        "�[36m(WorkerDict pid=25520)�[0m text",
        "\\u001b[36m(WorkerDict pid=25520)\\u001b[0m text",
        f"{ESC}[1;38;5;208m(WorkerDict pid=25520){ESC}[39m text",
        '{"log":"\\u001b[36m(WorkerDict pid=25520)\\u001b[0m text\\n","stream":"stderr","time":"2026-05-01T10:00:00Z"}',
        '{"level":"info","message":"(WorkerDict pid=25520) text"}',
        "2026-07-23T18:43:23.844123456Z stderr F (WorkerDict pid=25520) text",
        "Nov 29 13:50:26 node7 run[77]: (WorkerDict pid=25520) text",
        "Training Progress:  57%|█████▋    | 8/14 [00:10<00:07,  1.30s/it](WorkerDict pid=25520) text",
        "(WorkerDict pid=25520) Training:  57%|#6 | 8/14 [00:10<00:07, 233.93s/it]text",
        "233.93s/it](WorkerDict pid=25520) [2026-07-24 16:31:15,298 E 211 211] text",
    ],
)
def test_every_form_of_colour_and_collector_is_taken_off(line: str) -> None:
    assert unwrap(line) == Record(text="text", pid=25520, actor="WorkerDict")


@pytest.mark.parametrize(
    ("line", "record"),
    [
        ("plain text", Record(text="plain text")),
        ("(WorkerDict pid=7, ip=192.0.2.4) x", Record(text="x", pid=7, actor="WorkerDict", ip="192.0.2.4")),
        ("(WorkerDict pid=7, ip=fd00::1) x", Record(text="x", pid=7, actor="WorkerDict", ip="fd00::1")),
        ("(pid=7) x", Record(text="x", pid=7)),
        ("(raylet) x", Record(text="x", actor="raylet")),
        ("(raylet, ip=192.0.2.4) x", Record(text="x", actor="raylet", ip="192.0.2.4")),
        ("(VllmWorker rank=0 pid=9) x", Record(text="x", pid=9, actor="VllmWorker")),
        ("[rank15]: x", Record(text="x", rank=15)),
        ("[default0]:[rank3]: x", Record(text="x", rank=3)),
        (
            "(vLLMHttpServer pid=8, ip=192.0.2.4) (EngineCore_DP0 pid=9) ERROR 01-22 09:42:00 [core.py:58] x",
            Record(text="x", pid=9, actor="EngineCore_DP0", ip="192.0.2.4"),
        ),
        (
            "(WorkerDict pid=7) x [repeated 7x across cluster]",
            Record(text="x", pid=7, actor="WorkerDict", repeated=7),
        ),
        (
            "(pid=7) x [repeated 12x across cluster] (Ray deduplicates logs by default.)",
            Record(text="x", pid=7, repeated=12),
        ),
        ("DEBUG:verl.workers.fsdp_workers:x", Record(text="x")),
        ("DEBUG:2026-07-23 18:43:23,844:x", Record(text="x")),
        ("INFO 01-22 09:42:00 executor_base.py:211] x", Record(text="x")),
        ("[2026-05-01 10:00:00 DP0 TP1] x", Record(text="x")),
        ("[2026-05-01 10:00:00,123][verl.trainer][INFO] - x", Record(text="x")),
        ("2026-05-01 10:00:00,123 - verl.trainer - INFO - x", Record(text="x")),
        ("2026-05-01 10:00:00,123\tWARNING worker.py:85 -- x", Record(text="x")),
        ("(raylet) [2026-05-01 10:00:00,1 E 12 12] (raylet) node.cc:30: x", Record(text="x", actor="raylet")),
        ("[8812.104] x", Record(text="x")),
        ("3: (WorkerDict pid=7) x", Record(text="x", pid=7, actor="WorkerDict")),
        ("[1,0]<stderr>: x", Record(text="x")),
        ("[pod/trainer-0/main] x", Record(text="x")),
        ("2026-05-01 10:00:00.123 | DEBUG    | verl.workers:run:12 - x", Record(text="x")),
        ("INFO 01-22 09:42:00.123 [v1/worker/gpu_worker.py:131] x", Record(text="x")),
        # Not envelopes
        ("(a remark) x", Record(text="(a remark) x")),
        ("[5] x", Record(text="[5] x")),
        ("{'a': 1}", Record(text="{'a': 1}")),
        ('{"log": 3}', Record(text='{"log": 3}')),
        ('{"log": "x"}', Record(text='{"log": "x"}')),
        ('{"message": broken', Record(text='{"message": broken')),
        ("", Record(text="")),
    ],
)
def test_envelopes_tell_who_wrote_the_record(line: str, record: Record) -> None:
    assert unwrap(line) == record


@pytest.mark.parametrize(
    "line",
    [
        '{"log":"x\\n","stream":"stdout","time":"2026-05-01T10:00:00Z"}',  # Docker
        '{"level":"info","ts":1796000000.12,"msg":"x"}',  # Go's zap
        '{"asctime":"2026-05-01 10:00:00,123","levelname":"ERROR","message":"x"}',  # Python's
        '{"@timestamp":"2026-05-01T10:00:00Z","message":"x"}',  # Elastic's
        '{"severity":"ERROR","message":"x"}',  # Google's
        '{"__REALTIME_TIMESTAMP":"1796000000123456","MESSAGE":"x"}',  # the journal's
        '{"time":1796000000,"message":"x"}',
        '{"@timestamp":"2026-05-01T10:00:00Z","log":{"offset":7},"message":"x","input":{"type":"filestream"}}',
    ],
)
def test_what_a_log_shipper_wrote_is_taken_out_of_its_json(line: str) -> None:
    assert unwrap(line).text == "x"


@pytest.mark.parametrize(
    "fields",
    [
        '"prompt": "Why?"',
        '"response": "Because."',
        '"output": "y", "timestamp": "2026-05-01T10:00:00Z"',
        '"reward": 1.0, "level": "info"',
        '"messages": [], "stream": "stdout"',
        '"level": "Level 5"',
        '"level": 5',
        '"time": 3.5',
        '"time": true',
        '"date": "yesterday"',
        '"id": 7',
    ],
)
def test_a_record_of_samples_is_no_log_record(fields: str) -> None:
    line = f'{{{fields}, "message": "x"}}'
    assert unwrap(line) == Record(text=line)


def test_the_records_own_indentation_stays() -> None:
    assert unwrap("(TaskRunner pid=1)  'trainer': {").text == " 'trainer': {"


def test_a_name_that_is_free_text_does_not_leave() -> None:
    assert unwrap("(a<b>&c pid=7) x") == Record(text="x", pid=7)


def test_a_long_line_is_cut() -> None:
    assert len(unwrap("x" * (2 * MAX_LINE_CHARS)).text) == MAX_LINE_CHARS
