"""Records that a terminal broke into rows."""

import textwrap

import pytest

from oomwatch import wire
from oomwatch_agent.logs.reader import LineReader, Recognised
from oomwatch_agent.logs.scan import Chunk

GIB = 1024**3
MEMORY = (
    "(WorkerDict pid=7) DEBUG:verl.workers.engine_workers:After offload model to cpu, memory allocated (GB): 2.01, "
    "memory reserved (GB): 41.27, device memory used/total (GB): 60.41/79.15"
)
STEP = "(TaskRunner pid=9) step:12 - actor/lr:1e-06 - " + " - ".join(
    f"timing_s/{name}:{seconds}" for name, seconds in
    {"gen": 31.4159, "reward": 0.4, "old_log_prob": 8.41, "ref": 7.93, "update_actor": 44.17, "step": 95.25}.items()
)  # fmt: skip
OOM = (
    "(WorkerDict pid=7) torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.32 GiB. GPU 0 has a total "
    "capacity of 79.15 GiB of which 412.75 MiB is free. Including non-PyTorch memory, this process has 78.74 GiB "
    "memory in use. Of the allocated memory 71.02 GiB is allocated by PyTorch, and 5.11 GiB is reserved by PyTorch."
)
NEXT = "(WorkerDict pid=8) All went well so far."


def read(text: str) -> list[Recognised]:
    reader = LineReader()
    return [*reader.read(Chunk(text.encode(), 1)), *reader.end()]


def hard_wrapped(record: str, width: int) -> str:
    return "".join(record[at : at + width] + "\n" for at in range(0, len(record), width))


@pytest.mark.parametrize("width", [77, 80, 93, 101, 120, 133, 200])
@pytest.mark.parametrize("record", [MEMORY, STEP, OOM])
def test_a_record_is_the_same_whole_and_broken(record: str, width: int) -> None:
    (whole,) = read(record + "\n")
    (broken,) = read(f"{hard_wrapped(record, width)}{NEXT}\n")
    assert broken == whole


def test_a_break_in_a_number_is_mended_once_the_width_is_known() -> None:
    width = next(at for at in range(60, 200) if MEMORY[at - 2 : at] == " 4" and MEMORY[at : at + 4] == "1.27")
    found = read("".join(hard_wrapped(record, width) for record in (STEP, OOM, MEMORY)) + NEXT + "\n")
    memory = [one.body for one in found if isinstance(one.body, wire.TorchMemory)]
    assert [body.reserved_bytes for body in memory] == [round(41.27 * GIB)]


def test_a_space_that_was_lost_at_a_rows_end_is_put_back() -> None:
    rows = [row.rstrip() for row in hard_wrapped(OOM, 80).splitlines()]
    (found,) = read("\n".join([*rows, NEXT, ""]))
    (whole,) = read(OOM + "\n")
    assert found == whole


@pytest.mark.parametrize(
    "following",
    [
        "5 apples and 3 pears, and nothing else of interest in this line at all, says the model.",
        "a short row",
        "",
        "INFO 01-22 09:42:00 [core.py:58] Available KV cache memory: 64.27 GiB",
    ],
)
def test_what_follows_a_whole_record_is_no_part_of_it(following: str) -> None:
    (alone,) = read(OOM + "\n")
    assert read(f"{OOM}\n{following}\n")[0] == alone


def test_two_records_of_one_length_stay_two() -> None:
    line = "[after update] Allocated: 41.20 GB, Reserved: 55.01 GB"
    assert [one.line for one in read(f"{line}\n{line}\n")] == [1, 2]


def test_a_row_that_waits_for_the_next_is_told_when_none_comes() -> None:
    reader = LineReader()
    assert list(reader.read(Chunk(OOM.encode() + b"\n", 1))) == []
    assert len(list(reader.flush())) == 1
    assert list(reader.flush()) == []


def test_a_folded_paragraph_about_an_error_is_none() -> None:
    prose = f"A message such as {OOM} means that the card is full."
    assert read("\n".join(textwrap.wrap(prose, 200)) + "\n") == []
