"""Settings that another one makes void: verl reads neither a micro batch where batches are cut by tokens, nor a
limit of tokens where they are not, nor anything of a model that the run does not have."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from oomwatch.plan.batches import CRITICS, has_critic, has_reference, is_dynamic, phases_of, sequences_keys, tokens_key
from oomwatch.plan.defaults import told
from oomwatch.plan.phasekeys import PHASES
from oomwatch.plan.reader import Reader
from oomwatch.plan.settings import ACTOR, CRITIC, MODEL, REF, ROLLOUT

_DECIDE_ON_CRITIC = (f"{CRITIC}.enable", "algorithm.adv_estimator")
# Key, or section with a dot at its end -> the switch without which it does nothing.
_OF_SWITCHES = {
    f"{ROLLOUT}.multi_stage_wake_up": f"{ROLLOUT}.free_cache_engine",
    f"{ACTOR}.kl_loss_coef": f"{ACTOR}.use_kl_loss",
    f"{ACTOR}.kl_loss_type": f"{ACTOR}.use_kl_loss",
    "algorithm.kl_ctrl.": "algorithm.use_kl_in_reward",
    f"{MODEL}.fused_kernel_options.": f"{MODEL}.use_fused_kernels",
    f"{ACTOR}.entropy_from_logits_chunk_size": f"{ACTOR}.entropy_from_logits_with_chunking",
}


class Idle(NamedTuple):
    key: str  # without effect
    because: str  # the setting that makes it so


def idle_of(here: Reader, keys: Iterable[str]) -> Iterator[Idle]:
    """Those of the keys that have no effect beside the others, each with what makes it so."""
    used, limits = set(_used(here)), _limits(here)
    for key in keys:
        because = _without_model(here, key) or _without_switch(here, key)
        if because is None and key in limits and key not in used:
            because = limits[key]
        if because is not None and because != key:
            yield Idle(key, because)


def _used(here: Reader) -> Iterator[str]:
    """The settings that bound a pass, as far as others follow them. A critic that is an engine needs both kinds."""
    for phase in phases_of(here):
        keys = PHASES[phase]
        dynamic = is_dynamic(here, phase)
        if dynamic:
            yield told(here.config, tokens_key(here, phase), here.release, here.strategy).key
        if not dynamic or _counts_all_the_same(here, phase):
            followed = (*sequences_keys(here, keys), keys.sequences_of_all)
            yield from (told(here.config, key, here.release, here.strategy).key for key in followed)


def _counts_all_the_same(here: Reader, phase: str) -> bool:
    """Whether verl asks for a number though it cuts by tokens: for a critic that is an engine, and in old Megatron."""
    if phase in CRITICS:
        return not here.is_on(PHASES[phase].dynamic)
    return here.strategy == "megatron" and not here.since("0.6.0")


def _limits(here: Reader) -> dict[str, str]:
    """Every setting that may bound a pass -> the one that says whether it does."""
    found: dict[str, str] = {}
    for phase in phases_of(here):
        keys = PHASES[phase]
        decides = told(here.config, keys.dynamic, here.release, here.strategy).key
        bounds = (*keys.sequences, keys.sequences_of_all, *([] if is_dynamic(here, phase) else [keys.tokens_max]))
        found |= dict.fromkeys(bounds, decides)
    return found


def _without_model(here: Reader, key: str) -> str | None:
    if key.startswith(f"{REF}.") and not has_reference(here):
        return f"{ACTOR}.use_kl_loss"
    if key.startswith(f"{CRITIC}.") and key not in _DECIDE_ON_CRITIC and not has_critic(here):
        return next(one for one in _DECIDE_ON_CRITIC if one in here.config or one == _DECIDE_ON_CRITIC[-1])
    return None


def _without_switch(here: Reader, key: str) -> str | None:
    switch = next((to for of, to in _OF_SWITCHES.items() if key == of or (of[-1] == "." and key.startswith(of))), None)
    return switch if switch is not None and here.value(switch) is False else None
