"""Whether a step's sequences can be dealt to ranks and cut into batches: verl comes upon these in the first step."""

from collections.abc import Iterator
from typing import NamedTuple

from oomwatch.plan.batches import CRITICS, has_critic, is_dynamic, learning, length_of, phases_of, tokens_key
from oomwatch.plan.groups import Groups, engine_ways, gpus_of, groups_of
from oomwatch.plan.nearest import divisors, nearest
from oomwatch.plan.padding import filled, multiple_of, pads
from oomwatch.plan.phasekeys import PHASES
from oomwatch.plan.problem import Problem, error, warning
from oomwatch.plan.reader import Reader
from oomwatch.plan.settings import ACTOR, CRITIC, ROLLOUT

PROMPTS, N = "data.train_batch_size", f"{ROLLOUT}.n"


class Deal(NamedTuple):
    """So many are dealt evenly to so many."""

    check: str
    dealt: int
    parts: int | None
    says: str


def step_divides(here: Reader) -> Iterator[Problem]:
    """What the driver asks of the whole: that all GPUs get the same, in micro batches where Megatron cuts them."""
    prompts, n, gpus = here.number(PROMPTS), here.number(N), gpus_of(here).value
    if not prompts or not n or not gpus or (here.since("0.6.0") and here.is_on(f"{ACTOR}.use_dynamic_bsz")):
        return
    least = gpus
    if here.strategy == "megatron":
        least = (groups_of(here).ranks.value or 0) * (here.number(f"{ACTOR}.ppo_micro_batch_size_per_gpu") or 0)
    if least and prompts * n % least:
        says = f"real_train_batch_size ({prompts * n}) must be divisible by minimal possible batch size ({least})"
        yield _uneven("step_divides", prompts, n, least, says)


def step_holds_mini_batch(here: Reader) -> Iterator[Problem]:
    """A mini batch is a part of a step."""
    prompts = here.number(PROMPTS)
    for section in (ACTOR, *([CRITIC] if has_critic(here) else [])):
        mini = here.number(f"{section}.ppo_mini_batch_size")
        if not prompts or not mini or prompts >= mini or here.is_on(f"{section}.use_dynamic_bsz"):
            continue
        name = f"{'actor' if section == ACTOR else 'critic'}.ppo_mini_batch_size"
        says = f"train_batch_size ({prompts}) must be >= {name} ({mini})" if here.since("0.6.0") else None
        key = f"{section}.ppo_mini_batch_size"
        yield error(key, "step_holds_mini_batch", says, (prompts,), prompts=prompts, mini=mini)


def deals_are_even(here: Reader) -> Iterator[Problem]:
    prompts, n = here.number(PROMPTS), here.number(N)
    if not prompts or not n or pads(here):
        return
    seen = set()
    for deal in _deals(here, prompts, n):
        if deal.parts and deal.dealt % deal.parts and (deal.check, deal.parts) not in seen:
            seen.add((deal.check, deal.parts))
            each = n if deal.dealt == prompts * n else 1
            yield _uneven(deal.check, prompts, each, deal.parts, deal.says)


def step_is_filled(here: Reader) -> Iterator[Problem]:
    """What the newest trainer adds is computed with, and teaches nothing."""
    prompts, n = here.figure(PROMPTS), here.figure(N)
    sequences = (prompts * n).value
    whole = filled(here, learning(here), prompts * n).value
    if not sequences or not whole or whole == sequences or not prompts.value or not n.value:
        return
    multiple, each = multiple_of(here, learning(here)), n.value
    valid = nearest(prompts.value, lambda one: one * each % multiple == 0)
    numbers = {"prompts": prompts.value, "n": each, "sequences": sequences, "filled": whole, "multiple": multiple}
    yield warning(PROMPTS, "step_is_filled", None, valid, **numbers)


def _deals(here: Reader, prompts: int, n: int) -> Iterator[Deal]:
    """In the order of a step: to who generates, by length, to the actor's ranks and to the critic's."""
    gpus, count = gpus_of(here).value, prompts * n
    yield from _to_generate(here, prompts, count, gpus)
    ranks = groups_of(here).ranks.value
    if here.is_on("trainer.balance_batch"):
        yield _by_length(count, ranks if here.since("0.7.0") else gpus)
    of_all = here.strategy != "megatron" and not here.since("0.6.0")
    yield _to_ranks(here, count, gpus if of_all else ranks)
    if has_critic(here) and not of_all:
        yield _to_ranks(here, count, groups_of(here, CRITIC).ranks.value)


def _to_generate(here: Reader, prompts: int, count: int, gpus: int | None) -> Iterator[Deal]:
    """To agents' workers, or in the trainer's own processes to engines; at first before prompts were repeated."""
    if here.value(f"{ROLLOUT}.mode") == "async":
        if here.since("0.5.0"):
            yield _chunk("agents_even", count, here.number(f"{ROLLOUT}.agent.num_workers"))
    elif here.since("0.6.0"):
        engines = gpus_of(here) // engine_ways(here)
        yield _chunk("engines_even", count, engines.value)
    else:
        yield _chunk("generation_even", count if here.since("0.5.0") else prompts, gpus)


def _chunk(check: str, count: int, parts: int | None) -> Deal:
    says = f"only support equal chunk. Got size of DataProto {count} and chunk {parts}."
    return Deal(check, count, parts, says)


def _by_length(count: int, parts: int | None) -> Deal:
    few = f"number of items:[{count}] < k_partitions:[{parts}]"
    return Deal("balance_even", count, parts, few if parts and count < parts else f"{count} % {parts} != 0")


def _to_ranks(here: Reader, count: int, parts: int | None) -> Deal:
    if not here.has_engines:
        return _chunk("ranks_even", count, parts)
    says = f"expecting td with length divisible by chunks, but got {count} and {parts}"
    return Deal("ranks_even", count, parts, says)


def _uneven(check: str, prompts: int, n: int, parts: int, says: str) -> Problem:
    valid = nearest(prompts, lambda one: one * n % parts == 0)
    return error(PROMPTS, check, says, valid, sequences=prompts * n, parts=parts)


# ---------------------------------------------------------------- mini batches and passes


def mini_batches_fill_step(here: Reader) -> Iterator[Problem]:
    """A rank's share of a step is so many whole mini batches. FSDP's own worker takes what is left as one more."""
    if here.strategy != "megatron" and not here.has_engines:
        return
    for section in (CRITIC, ACTOR) if has_critic(here) else (ACTOR,):
        groups = groups_of(here, section)
        mini, n, ranks = here.number(f"{section}.ppo_mini_batch_size"), here.number(N), groups.ranks.value
        prompts = here.number(PROMPTS)
        if mini and n and ranks and prompts:
            yield from _fills(here, section, prompts * n, mini * n, ranks)


def _fills(here: Reader, section: str, sequences: int, mini: int, ranks: int) -> Iterator[Problem]:
    key, n = f"{section}.ppo_mini_batch_size", here.number(N) or 1
    prompts = here.number(key) or 0
    if here.has_engines and mini % ranks:
        says = f"Got mini_batch_size={mini} and self.engine.get_data_parallel_size()={ranks}"
        valid = nearest(prompts, lambda one: one * n % ranks == 0)
        yield error(key, "mini_batch_even", says, valid, sequences=mini, parts=ranks)
    elif mini < ranks:
        yield error(key, "mini_batch_reaches_all", None, mini=prompts, n=n, ranks=ranks)
    elif not pads(here) and (sequences // ranks) % (mini // ranks):
        each, share = sequences // ranks, mini // ranks
        valid = nearest(prompts, lambda one: one * n >= ranks and each % (one * n // ranks) == 0)
        yield error(key, "mini_batches_fill_step", f"{each} % {share} != 0", valid, sequences=each, parts=share)


def passes_divide(here: Reader) -> Iterator[Problem]:
    """Where all strategies have one worker, the log-probs' micro batches must divide a rank's share of a step."""
    if not here.has_engines:
        return
    each = _dealt(here, groups_of(here))
    for phase in phases_of(here):
        micro = here.number(PHASES[phase].sequences[0])
        if PHASES[phase].is_update or phase in CRITICS or is_dynamic(here, phase) or not each or not micro:
            continue
        if each % micro:
            says = "data size must be divisible by force_group_size * micro_batch_size_per_gpu"
            key = PHASES[phase].sequences[0]
            yield error(key, "passes_divide", says, divisors(micro, each), sequences=each, micro=micro)


def _dealt(here: Reader, groups: Groups) -> int | None:
    """A rank's sequences of a step; where the trainer fills the batch up, of that."""
    whole, ranks = filled(here, learning(here), here.figure(PROMPTS) * here.figure(N)).value, groups.ranks.value
    return whole // ranks if whole and ranks else None


def tokens_hold_longest(here: Reader) -> Iterator[Problem]:
    """A dynamic batch holds the longest sequence that is allowed. Engines look at those that come, and stop then."""
    longest = length_of(here).value
    seen = set()
    for phase in phases_of(here):
        key = tokens_key(here, phase)
        most, shares = here.number(key), groups_of(here, CRITIC if phase in CRITICS else ACTOR).shares.value or 1
        if not is_dynamic(here, phase) or not most or not longest or most * shares >= longest or key in seen:
            continue
        seen.add(key)
        says = (
            "max_token_len must be greater than the sequence length. "
            f"Got max_token_len={most * shares} and max_seq_len={longest}"
        )
        least = -(-longest // shares)
        found = warning if here.has_engines else error
        yield found(key, "tokens_hold_longest", says, (least,), tokens=most * shares, longest=longest)
