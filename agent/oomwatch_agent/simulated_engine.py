"""What the rollout engines of a simulated run tell on their metrics pages: one vLLM server a GPU."""

import math

from oomwatch import wire
from oomwatch_agent.scenario import MAX_RESPONSE_TOKENS, SEQUENCES_PER_STEP, Moment

MODEL = "simulated-8b"
_FIRST_PORT = 8100
_EMPTY_RATIO, _FULL_RATIO = 0.12, 0.98  # of the KV cache: the prompts alone; where vLLM begins to preempt
_TOKENS_THAT_FILL = 0.75 * MAX_RESPONSE_TOKENS  # the mean response with which every sequence at once fills the cache
_SEQUENCES_AT_ONCE = 256  # vLLM's max_num_seqs


class EngineServer:
    """One server: its counters go on until the run's life ends."""

    def __init__(self, gpu: int, servers: int, run: str) -> None:
        self._who = wire.EngineSample(engine="vllm", address=f"127.0.0.1:{_FIRST_PORT + gpu}", model=MODEL, run=run)
        self._sequences = SEQUENCES_PER_STEP // servers
        self._preemptions = 0
        self._preempted_in: float | None = None  # start of the moment whose preemptions are counted

    def see(self, moment: Moment, when: float) -> wire.EngineSample:
        """The page at a time within `moment`."""
        wanted_ratio, unfinished = _rollout(moment, when) if moment.phase == "gen" else (0.0, 0.0)
        if wanted_ratio > _FULL_RATIO and moment.start != self._preempted_in:
            self._preempted_in = moment.start
            self._preemptions += math.ceil(self._sequences * (wanted_ratio - _FULL_RATIO))
        left = math.ceil(self._sequences * unfinished)
        running = min(left, _SEQUENCES_AT_ONCE)
        return wire.EngineSample(
            engine=self._who.engine,
            address=self._who.address,
            model=self._who.model,
            run=self._who.run,
            kv_used_ratio=round(min(_FULL_RATIO, wanted_ratio), 3),
            requests_running=running,
            requests_waiting=left - running,
            preemptions_total=self._preemptions,
        )


def _rollout(moment: Moment, when: float) -> tuple[float, float]:
    """How much of the KV cache the sequences want, and the share of them that is not finished.

    Sequences grow together; the first end after half of the rollout, the longest at its end.
    """
    passed = min(1.0, max(0.0, (when - moment.start) / moment.seconds))
    unfinished = min(1.0, 2.0 * (1.0 - passed))
    per_sequence = _EMPTY_RATIO + (1 - _EMPTY_RATIO) * passed * 2 * moment.tokens / _TOKENS_THAT_FILL
    return per_sequence * unfinished, unfinished
