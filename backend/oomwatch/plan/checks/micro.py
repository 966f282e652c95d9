"""Whether mini batches can be cut into micro batches, and which setting says so."""

from collections.abc import Iterator

from oomwatch.plan.batches import has_critic, has_reference, micro_batch, tokens_key
from oomwatch.plan.groups import gpus_of, groups_of
from oomwatch.plan.nearest import divisors, nearest
from oomwatch.plan.phasekeys import PHASES
from oomwatch.plan.problem import Problem, error, warning
from oomwatch.plan.reader import Reader
from oomwatch.plan.settings import ACTOR, CRITIC, REF, REWARD, ROLLOUT

START = 8  # the micro batch that is suggested where none is set: the articles' own


def one_setting_each(here: Reader) -> Iterator[Problem]:
    """A micro batch is set by one of two settings: a GPU's, or the deprecated one of all GPUs."""
    if not here.is_on(f"{ACTOR}.use_dynamic_bsz"):
        yield from _one_of(here, ACTOR, "ppo_micro_batch_size")
        if has_reference(here):
            yield from _one_of(here, REF, "log_prob_micro_batch_size")
        yield from _one_of(here, ROLLOUT, "log_prob_micro_batch_size")
    if has_critic(here) and not here.is_on(f"{CRITIC}.use_dynamic_bsz"):
        yield from _one_of(here, CRITIC, "ppo_micro_batch_size")
    rewards = here.is_on(f"{REWARD}.enable") and not here.is_on(f"{REWARD}.use_reward_loop")
    if rewards and not here.since("0.7.1") and not here.is_on(f"{REWARD}.use_dynamic_bsz"):
        yield from _one_of(here, REWARD, "micro_batch_size")


def _one_of(here: Reader, section: str, name: str) -> Iterator[Problem]:
    whole, key = f"{section}.{name}", f"{section}.{name}_per_gpu"
    is_whole, is_each = here.value(whole) is not None, here.value(key) is not None
    said, param, unless = _as_said(here, section, name)
    if not is_whole and not is_each:
        says = f"[{said}] Please set at least one of '{said}.{param}' or '{said}.{param}_per_gpu'{unless}."
        yield error(key, "micro_batch_missing", says, suggestion=f"{key}={START}")
    elif is_whole and is_each:
        gap = " " if here.since("0.5.0") else ""
        says = (
            f"[{said}] You have set both '{said}.{param}' AND '{said}.{param}_per_gpu'. Please remove "
            f"'{said}.{param}' because only '*_{param}_per_gpu'{gap}is supported (the former is deprecated)."
        )
        yield error(whole, "micro_batch_twice", says, suggestion=f"~{whole}", other=key)


def _as_said(here: Reader, section: str, name: str) -> tuple[str, str, str]:
    """What verl calls section and setting in its messages: not always what they are called."""
    if section == ACTOR and here.since("0.6.0"):
        return "actor", name, " if use_dynamic_bsz is not enabled"
    return section, name.removeprefix("ppo_"), ""


def deprecated_fits(here: Reader) -> Iterator[Problem]:
    """The deprecated micro batch of all GPUs must divide the mini batch, and leave one sequence for each GPU."""
    for section in (ACTOR, *([CRITIC] if has_critic(here) else [])):
        if not here.is_on(f"{section}.use_dynamic_bsz"):
            yield from _deprecated_fits(here, section)


def _deprecated_fits(here: Reader, section: str) -> Iterator[Problem]:
    key = f"{section}.ppo_micro_batch_size"
    micro, mini, gpus = here.number(key), here.number(f"{section}.ppo_mini_batch_size"), gpus_of(here).value
    if not micro or not mini or not gpus:
        return
    shares = here.number(f"{section}.ulysses_sequence_parallel_size") or 1
    says_names = here.since("0.6.0")
    if mini % micro:
        says = f"ppo_mini_batch_size ({mini}) must be divisible by ppo_micro_batch_size ({micro})"
        says = f"[critic] {says}" if section == CRITIC else says
        valid = tuple(one for one in divisors(micro, mini) if one * shares >= gpus)
        yield error(key, "deprecated_divides", says if says_names else None, valid, mini=mini, micro=micro)
    if micro * shares < gpus:
        name = "critic.ppo_micro_batch_size" if section == CRITIC else "ppo_micro_batch_size"
        says = f"{name} ({micro}) * ulysses_sequence_parallel_size ({shares}) must be >= n_gpus ({gpus})"
        yield error(key, "deprecated_reaches_all", says if says_names else None, micro=micro, gpus=gpus, shares=shares)


def engines_read_no_deprecated(here: Reader) -> Iterator[Problem]:
    """Where all strategies have one worker it reads the settings of a GPU alone, and stops without words."""
    if not here.has_engines or here.is_on(f"{ACTOR}.use_dynamic_bsz"):
        return
    for section, name in ((ROLLOUT, "log_prob_micro_batch_size"), (ACTOR, "ppo_micro_batch_size")):
        whole, key = f"{section}.{name}", f"{section}.{name}_per_gpu"
        if here.value(whole) is not None and here.value(key) is None:
            yield error(whole, "deprecated_not_read", None, suggestion=f"{key}={START}", other=key)


def engines_cut_critics_by_tokens(here: Reader) -> Iterator[Problem]:
    """A critic that is an engine takes its limits of tokens; a micro batch must be set for it, and is not used."""
    key = f"{CRITIC}.ppo_micro_batch_size_per_gpu"
    is_set = key in here.config and here.value(key) is not None
    if is_set and here.has_engines and has_critic(here) and not here.is_on(f"{CRITIC}.use_dynamic_bsz"):
        other = tokens_key(here, "update_critic")
        yield warning(key, "micro_batch_not_used", other=other, tokens=here.number(other) or 0)


def mini_batches_divide(here: Reader) -> Iterator[Problem]:
    """A rank's share of a mini batch holds a sequence at least, and is cut into micro batches of one size.

    Megatron's own worker cuts it as it comes.
    """
    if here.strategy == "megatron" and not here.has_engines:
        return
    yield from _divides(here, ACTOR, "update_actor")
    if has_critic(here) and not here.has_engines:
        yield from _divides(here, CRITIC, "update_critic")


def _divides(here: Reader, section: str, phase: str) -> Iterator[Problem]:
    groups = groups_of(here, section)
    share = here.figure(f"{section}.ppo_mini_batch_size") * here.figure(f"{ROLLOUT}.n")
    mini, micro = (share // groups.ranks).value, micro_batch(here, PHASES[phase], groups).value
    if mini is None:
        return
    key = f"{section}.ppo_micro_batch_size_per_gpu"
    if mini == 0 and not here.has_engines:
        yield _too_small(here, section, micro)
    elif micro and mini % micro and not (here.has_engines and here.is_on(f"{ACTOR}.use_dynamic_bsz")):
        says = f"normalized ppo_mini_batch_size {mini} should be divisible by ppo_micro_batch_size_per_gpu {micro}"
        said = "data size must be divisible by force_group_size * micro_batch_size_per_gpu"
        yield error(
            key,
            "mini_batch_divides",
            said if here.has_engines else says,
            divisors(micro, mini),
            mini=mini,
            micro=micro,
        )


def _too_small(here: Reader, section: str, micro: int | None) -> Problem:
    """Less than one sequence for each rank."""
    says: str | None = "ppo_mini_batch_size 0 should be larger than 0 after normalization"
    if section == CRITIC:
        says = f"normalized ppo_mini_batch_size 0 should be larger than ppo_micro_batch_size_per_gpu {micro}"
    ranks, n = groups_of(here, section).ranks.value or 0, here.number(f"{ROLLOUT}.n") or 1
    key, mini = f"{section}.ppo_mini_batch_size", here.number(f"{section}.ppo_mini_batch_size") or 0
    valid = nearest(mini, lambda one: one * n >= ranks)
    return error(key, "mini_batch_reaches_all", says, valid, mini=mini, n=n, ranks=ranks)


def megatron_needs_both(here: Reader) -> Iterator[Problem]:
    """verl's Megatron workers count with settings that nobody checked: without a number they stop in Python's words."""
    if here.strategy != "megatron":
        return
    key = f"{ACTOR}.ppo_micro_batch_size_per_gpu"
    counts = not here.since("0.6.0") or not here.is_on(f"{ACTOR}.use_dynamic_bsz")
    if counts and here.value(key) is None:
        yield error(key, "megatron_counts_with_it", None, suggestion=f"{key}={START}")
    if here.has_engines:
        return
    whole = f"{ROLLOUT}.log_prob_micro_batch_size"
    if here.number(f"{ACTOR}.ppo_micro_batch_size") and here.value(whole) is None:
        yield error(whole, "megatron_counts_with_it", None, suggestion=f"~{ACTOR}.ppo_micro_batch_size")
    yield from _megatron_reference(here)


def _megatron_reference(here: Reader) -> Iterator[Problem]:
    whole, key = f"{REF}.log_prob_micro_batch_size", f"{REF}.log_prob_micro_batch_size_per_gpu"
    if has_reference(here) and not here.value(whole) and here.value(key) is None:
        says = (
            "Please note that in the ref policy configuration, `log_prob_micro_batch_size_per_gpu` and "
            "`log_prob_micro_batch_size` should not be None at the same time."
        )
        yield error(key, "micro_batch_missing", says, suggestion=f"{key}={START}")
