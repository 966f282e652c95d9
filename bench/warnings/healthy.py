"""Runs that live, each in a way that has fooled a rule of thumb: full, growing, spiking, and well."""

from bench.warnings.draft import Draft
from bench.warnings.nature import Growth
from bench.warnings.settings import ACTOR, MODEL, ROLLOUT
from bench.warnings.shapes import GIB, QWEN_3B
from bench.warnings.spec import Spec


def roomy(draft: Draft) -> Spec:
    """Nothing is above three quarters of the card."""
    draft.fill_all(draft.dice.uniform(0.55, 0.74), rollout=draft.dice.uniform(0.5, 0.75))
    return draft.spec("healthy")


def tight(draft: Draft) -> Spec:
    """A rollout of 85 to 92 %, as verl advises, and updates that come near it."""
    draft.fill_all(draft.dice.uniform(0.86, 0.95), rollout=draft.dice.uniform(0.85, 0.92))
    return draft.spec("healthy")


def packed(draft: Draft) -> Spec:
    """98.5 % of the card exactly at the length cap, which many responses reach."""
    cap = max(4096, draft.number("data.max_response_length"))
    draft.config |= {"data.max_response_length": cap, "data.max_prompt_length": 256}
    usual = cap * draft.dice.uniform(0.8, 2.5)
    draft.lengths(start=usual, end=usual, wobble=0.05)
    draft.fill_all(0.9, rollout=draft.dice.uniform(0.7, 0.9), but=("update_actor",))
    draft.fill("update_actor", 0.985, median=9 * cap)
    return draft.spec("healthy")


def packed_rollout(draft: Draft) -> Spec:
    """The engine takes 95 to 97 % of the card, always the same."""
    draft.fill_all(draft.dice.uniform(0.7, 0.85), rollout=draft.dice.uniform(0.95, 0.97))
    return draft.spec("healthy")


def dynamic(draft: Draft) -> Spec:
    """Batches cut by tokens: the update is as full in every step, and nothing can be longer."""
    draft.config |= {f"{ACTOR}.use_dynamic_bsz": True}
    draft.fill_all(draft.dice.uniform(0.85, 0.96), rollout=draft.dice.uniform(0.6, 0.88))
    return draft.spec("healthy")


def spikes(draft: Draft) -> Spec:
    """Long checkpoints and validations, and a machine whose page cache they fill for a while."""
    draft.config |= {"trainer.save_freq": 10, "trainer.test_freq": 5}
    draft.fill_all(draft.dice.uniform(0.7, 0.85), rollout=draft.dice.uniform(0.7, 0.88))
    draft.set(checkpoint_device=draft.dice.uniform(0.3, 1.0), cache=draft.dice.uniform(0.3, 0.8))
    return draft.spec("healthy")


def plateau(draft: Draft) -> Spec:
    """Responses grow, as they do when a model learns to reason, and level off below the cap, which fits."""
    cap = draft.number("data.max_response_length")
    start = cap * draft.dice.uniform(0.1, 0.2)
    end = cap * draft.dice.uniform(0.4, 0.6)
    draft.lengths(start=start, end=end, onset=draft.dice.randrange(5, 30), over_steps=draft.dice.randrange(40, 90))
    draft.fill_all(draft.dice.uniform(0.86, 0.96), rollout=draft.dice.uniform(0.6, 0.85))
    return draft.spec("healthy")


def restarts(draft: Draft) -> Spec:
    """Started again twice from a checkpoint, so that steps come again, with other peaks after each start."""
    draft.fill_all(draft.dice.uniform(0.7, 0.92), rollout=draft.dice.uniform(0.6, 0.88))
    first = draft.dice.randrange(25, 80)
    second = first + draft.dice.randrange(25, 80)
    back = draft.dice.randrange(2, 12)
    more = tuple(draft.dice.uniform(-0.02, 0.04) * draft.card.usable_bytes for _ in range(2))
    draft.set(restarts=((first, back), (second, back)), after_restart=more)
    return draft.spec("healthy")


def tenant_constant(draft: Draft) -> Spec:
    """Somebody else's program has some of one card, always as much."""
    draft.set(tenant=Growth(jump=draft.dice.uniform(4, 14) * GIB), tenant_gpu=draft.settings.gpus - 1)
    draft.fill_all(draft.dice.uniform(0.8, 0.93), rollout=draft.dice.uniform(0.8, 0.9))
    return draft.spec("healthy")


def noisy_lengths(draft: Draft) -> Spec:
    """Batches differ widely, and now and then one is twice as long; the longest would still fit."""
    draft.lengths(spread=0.6, wobble=0.15, long_batch_every=18, long_batch_times=draft.dice.uniform(1.6, 2.4))
    draft.fill_all(draft.dice.uniform(0.88, 0.96), rollout=draft.dice.uniform(0.6, 0.85))
    return draft.spec("healthy")


def warm_up(draft: Draft) -> Spec:
    """The floor grows for 15 to 45 steps, workspaces and compiled kernels, and then no more."""
    until = draft.dice.randrange(15, 45)
    draft.fill_all(draft.dice.uniform(0.7, 0.8), rollout=draft.dice.uniform(0.6, 0.8))
    gained = draft.dice.uniform(0.03, 0.09) * draft.card.usable_bytes
    draft.set(leak=Growth(per_step=gained / until, until=until))
    return draft.spec("healthy")


def fragmentation_saturates(draft: Draft) -> Spec:
    """Holes grow until every size has its place."""
    until = draft.dice.randrange(20, 60)
    draft.fill_all(draft.dice.uniform(0.65, 0.78), rollout=draft.dice.uniform(0.5, 0.75))
    draft.set(stuck=Growth(per_step=draft.dice.uniform(0.1, 0.25) / until, onset=3, until=until))
    return draft.spec("healthy")


def few_retries(draft: Draft) -> Spec:
    """Now and then the allocator flushes its cache, and all is well."""
    draft.tells = draft.tells._replace(probe=True, steps=True, config=True)
    draft.fill_all(draft.dice.uniform(0.88, 0.95), rollout=draft.dice.uniform(0.7, 0.88))
    draft.set(retries_at=draft.dice.uniform(0.008, 0.025))
    return draft.spec("healthy")


def host_cache(draft: Draft) -> Spec:
    """Host memory climbs with the page cache, and the arenas of the workers fill up and stay."""
    draft.config |= {"trainer.save_freq": 15}
    draft.fill_all(draft.dice.uniform(0.7, 0.9), rollout=draft.dice.uniform(0.6, 0.85))
    until = draft.dice.randrange(20, 50)
    gained = draft.dice.uniform(0.02, 0.06) * draft.nature.host.total_bytes
    draft.set(cache=draft.dice.uniform(0.4, 1.0), worker_host=Growth(per_step=gained / until, until=until))
    return draft.spec("healthy")


def host_full(draft: Draft) -> Spec:
    """Offloaded states fill 80 to 87 % of the container, and no more."""
    draft.fill_all(draft.dice.uniform(0.7, 0.9), rollout=draft.dice.uniform(0.6, 0.85))
    draft.fit_host(draft.dice.uniform(0.78, 0.86))
    return draft.spec("healthy")


def kv_pressure(draft: Draft) -> Spec:
    """The engine preempts: slow, and alive."""
    draft.tells = draft.tells._replace(engine_metrics=True, steps=True, config=True)
    draft.lengths(start=draft.number("data.max_response_length") * 0.55)
    draft.lengths(end=draft.nature.lengths.start)
    draft.fill_all(draft.dice.uniform(0.8, 0.92), rollout=draft.dice.uniform(0.6, 0.8))
    return draft.spec("healthy")


def awake(draft: Draft) -> Spec:
    """An engine that never sleeps, and a trainer that fits beside it."""
    draft.config |= {f"{ROLLOUT}.free_cache_engine": False}
    draft.config |= {f"{ROLLOUT}.gpu_memory_utilization": draft.dice.choice((0.25, 0.3, 0.35))}
    share = draft.dice.uniform(0.8, 0.92)
    for phase in ("old_log_prob", "ref", "update_actor"):
        draft.fill(phase, share * draft.dice.uniform(0.93, 1.0))
    return draft.spec("healthy")


def critic(draft: Draft) -> Spec:
    """PPO: a critic of the actor's size is trained too."""
    draft.with_critic()
    draft.fill_all(draft.dice.uniform(0.75, 0.93), rollout=draft.dice.uniform(0.6, 0.85))
    return draft.spec("healthy")


def lora(draft: Draft) -> Spec:
    """Adapters alone are trained."""
    draft.config |= {f"{MODEL}.lora_rank": draft.dice.choice((32, 64)), f"{MODEL}.lora_alpha": 32}
    draft.fill_all(draft.dice.uniform(0.6, 0.92), rollout=draft.dice.uniform(0.6, 0.88))
    return draft.spec("healthy")


def reward_model(draft: Draft) -> Spec:
    """A reward model lives on the same cards."""
    draft.with_reward_model(QWEN_3B)
    draft.fill_all(draft.dice.uniform(0.75, 0.92), rollout=draft.dice.uniform(0.7, 0.88))
    return draft.spec("healthy")


def cap_far_off(draft: Draft) -> Spec:
    """The cap is set far beyond what the model ever says: a batch of the longest would not fit, and never comes."""
    cap = draft.number("data.max_response_length")
    usual = cap * draft.dice.uniform(0.06, 0.12)
    draft.lengths(start=usual, end=usual, spread=0.35)
    draft.fill_all(draft.dice.uniform(0.6, 0.8), rollout=draft.dice.uniform(0.6, 0.85), but=("update_actor",))
    draft.fill("update_actor", draft.dice.uniform(0.6, 0.7), median=usual)
    return draft.spec("healthy")
