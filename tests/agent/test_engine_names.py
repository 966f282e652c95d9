"""From metrics pages, in the words of several versions, to one sample an engine."""

from pathlib import Path

import pytest

from oomwatch import wire
from oomwatch_agent.engines.exposition import parse
from oomwatch_agent.engines.names import WANTED, samples

FIXTURES = Path(__file__).parent / "fixtures"


def _samples(page: str) -> tuple[wire.EngineSample, ...]:
    return samples(parse(page, WANTED), "127.0.0.1:8000")


def _sample(page: str) -> wire.EngineSample:
    (sample,) = _samples(page)
    return sample


@pytest.mark.parametrize(
    ("page", "expected"),
    [
        (
            "vllm_0.6_v0.prom",
            wire.EngineSample(
                engine="vllm",
                address="127.0.0.1:8000",
                model="Qwen/Qwen2.5-7B-Instruct",
                kv_used_ratio=0.4375,
                requests_running=12,
                requests_waiting=3,
                preemptions_total=7,
            ),
        ),
        (
            "vllm_0.10_dp2.prom",
            wire.EngineSample(
                engine="vllm",
                address="127.0.0.1:8000",
                model="Qwen/Qwen3-0.6B",
                kv_used_ratio=0.91,
                requests_running=256,
                requests_waiting=44,
                preemptions_total=31,
            ),
        ),
        (
            "sglang_0.4.prom",
            wire.EngineSample(
                engine="sglang",
                address="127.0.0.1:8000",
                model="meta-llama/Llama-3.1-8B-Instruct",
                kv_used_ratio=0.28,
                requests_running=162,
                requests_waiting=2826,
            ),
        ),
        (
            "sglang_0.5_dp2_all_ranks.prom",
            wire.EngineSample(
                engine="sglang",
                address="127.0.0.1:8000",
                model="Qwen/Qwen3-8B",
                kv_used_ratio=0.97,
                requests_running=150,
                requests_waiting=5,
                preemptions_total=48,
            ),
        ),
    ],
)
def test_each_versions_page_gives_one_sample(page: str, expected: wire.EngineSample) -> None:
    assert _sample((FIXTURES / page).read_text()) == expected


def test_a_page_of_something_else_gives_none() -> None:
    assert _samples("# TYPE up gauge\nup 1\nprocess_resident_memory_bytes 1e9\n") == ()


def test_a_gateway_before_both_engines_gives_both() -> None:
    page = 'vllm:num_requests_running{engine="0"} 1\nsglang:num_running_reqs{tp_rank="0"} 2\n'
    assert [sample.engine for sample in _samples(page)] == ["vllm", "sglang"]


def test_what_a_page_lacks_is_none_and_not_zero() -> None:
    sample = _sample("vllm:num_requests_running 0\n")
    assert sample == wire.EngineSample(engine="vllm", address="127.0.0.1:8000", requests_running=0)


def test_requests_that_are_listed_by_priority_too_are_counted_once() -> None:
    lines = (f'sglang:num_queue_reqs{{priority="{priority}"}} {count}' for priority, count in (("", 7), (0, 4), (1, 3)))
    assert _sample("\n".join(lines)).requests_waiting == 7


def test_the_older_gauge_of_retractions_is_no_total() -> None:
    assert _sample("sglang:token_usage 0.5\nsglang:num_retracted_reqs 9\n").preemptions_total is None


def test_a_cache_that_is_named_twice_is_read_by_its_newer_name() -> None:
    assert _sample("vllm:gpu_cache_usage_perc 0.1\nvllm:kv_cache_usage_perc 0.2\n").kv_used_ratio == 0.2


@pytest.mark.parametrize("value", ["-1", "1e300"])
def test_a_figure_that_cannot_be_is_none(value: str) -> None:
    sample = _sample(f"vllm:num_requests_waiting {value}\nvllm:kv_cache_usage_perc {value}\n")
    assert (sample.requests_waiting, sample.kv_used_ratio) == (None, None)
