"""Runs that die of something that grows from step to step, on a card or on the host."""

from bench.warnings.draft import Draft
from bench.warnings.nature import Growth
from bench.warnings.settings import ROLLOUT
from bench.warnings.shapes import GIB
from bench.warnings.spec import Spec


def _usual_trend(draft: Draft, low: float, high: float) -> int:
    """A run with room, and the step from which something grows. The fullest phase is the rollout, or the update."""
    rollout = draft.dice.uniform(0.6, 0.84)
    if draft.dice.random() < 0.5:
        usual = draft.number("data.max_response_length") * draft.dice.uniform(0.6, 1.0)
        draft.lengths(start=usual, end=usual)
        rollout = draft.dice.uniform(0.35, 0.6)
    draft.fill_all(draft.dice.uniform(low, high), rollout=rollout)
    return draft.dice.randrange(4, 60)


def leak_slow(draft: Draft) -> Spec:
    """0.2 to 0.5 % of the card a step stays allocated."""
    onset = _usual_trend(draft, 0.72, 0.85)
    rate = draft.dice.uniform(0.002, 0.005) * draft.card.usable_bytes
    draft.set(leak=Growth(rate, onset), leak_gpu=draft.dice.choice((None, None, 0, 1)))
    return draft.spec("trend", "leak", onset=onset)


def leak_fast(draft: Draft) -> Spec:
    """1 to 3 % a step."""
    onset = _usual_trend(draft, 0.45, 0.75)
    rate = draft.dice.uniform(0.01, 0.03) * draft.card.usable_bytes
    draft.set(leak=Growth(rate, onset), leak_gpu=draft.dice.choice((None, None, 0, 1)))
    return draft.spec("trend", "leak", onset=onset)


def leak_when_full(draft: Draft) -> Spec:
    """A slow leak on a card that is full for good reasons: the level says nothing."""
    draft.fill_all(draft.dice.uniform(0.86, 0.93), rollout=draft.dice.uniform(0.84, 0.9))
    onset = draft.dice.randrange(10, 60)
    draft.set(leak=Growth(draft.dice.uniform(0.001, 0.003) * draft.card.usable_bytes, onset))
    return draft.spec("trend", "leak", onset=onset)


def residue_fast(draft: Draft) -> Spec:
    """The sleeping engine keeps 4.1, then 11.6, then 25 GiB."""
    onset = _usual_trend(draft, 0.6, 0.82)
    draft.set(residue=Growth(per_step=draft.dice.uniform(4, 10) * GIB, onset=onset), residue_bytes=4.1 * GIB)
    return draft.spec("trend", "sleep_residue", onset=onset)


def residue_slow(draft: Draft) -> Spec:
    """Each sleep leaves a little more."""
    onset = _usual_trend(draft, 0.6, 0.84)
    draft.set(residue=Growth(per_step=draft.dice.uniform(0.15, 0.6) * GIB, onset=onset))
    return draft.spec("trend", "sleep_residue", onset=onset)


def length_growth(draft: Draft) -> Spec:
    """Responses grow until the update (or the log-probabilities) of such batches does not fit."""
    cap = draft.number("data.max_response_length")
    onset = draft.dice.randrange(3, 40)
    start, end = cap * draft.dice.uniform(0.08, 0.2), cap * draft.dice.uniform(0.7, 1.1)
    draft.lengths(start=start, end=end, onset=onset, over_steps=draft.dice.randrange(60, 150))
    draft.fill_rollout(draft.dice.uniform(0.6, 0.84))
    phase = draft.dice.choice(("update_actor", "update_actor", "old_log_prob"))
    at = start + (end - start) * draft.dice.uniform(0.5, 0.8)
    for other in ("old_log_prob", "ref", "update_actor"):
        draft.fill(other, 1.0 if other == phase else draft.dice.uniform(0.7, 0.85), median=at)
    return draft.spec("trend", "length_growth", alike=("longest_batch",), onset=onset)


def fragmentation(draft: Draft) -> Spec:
    """Holes that no request fits into, and an allocator that flushes its cache ever more often."""
    draft.config |= {"trainer.save_freq": -1}
    draft.lengths(spread=0.5, wobble=0.08)
    onset = _usual_trend(draft, 0.7, 0.85)
    draft.set(stuck=Growth(per_step=draft.dice.uniform(0.008, 0.025), onset=onset), slack=0.05)
    tells = draft.tells
    unseen = not (tells.probe or tells.debug)  # without torch's figures a hole looks like a tensor
    return draft.spec("trend", "fragmentation", alike=("leak",) if unseen else (), onset=onset)


def other_process_grows(draft: Draft) -> Spec:
    """Somebody else's program on one of the cards wants more and more."""
    onset = _usual_trend(draft, 0.65, 0.82)
    each = draft.dice.uniform(0.15, 0.5) * GIB
    draft.set(tenant=Growth(each, onset, jump=draft.dice.uniform(1, 3) * GIB), tenant_gpu=draft.settings.gpus - 1)
    return draft.spec("trend", "other_process", onset=onset)


def checkpoint_kept(draft: Draft) -> Spec:
    """Each checkpoint leaves its buffers behind on rank 0."""
    draft.config |= {"trainer.save_freq": draft.dice.choice((5, 10))}
    onset = int(draft.number("trainer.save_freq"))
    draft.fill_all(draft.dice.uniform(0.6, 0.8), rollout=draft.dice.uniform(0.6, 0.8))
    draft.set(checkpoint_kept=Growth(draft.dice.uniform(0.02, 0.05) * draft.card.usable_bytes))
    return draft.spec("trend", "checkpoint_spike", alike=("leak",), onset=onset)


def sync_kept(draft: Draft) -> Spec:
    """Buffers of the weight transfer pile up, and are seen only while the engine wakes up."""
    draft.config |= {f"{ROLLOUT}.multi_stage_wake_up": draft.dice.random() < 0.5}
    onset = _usual_trend(draft, 0.6, 0.8)
    draft.set(sync_kept=Growth(draft.dice.uniform(0.2, 0.8) * GIB, onset))
    return draft.spec("trend", "weight_sync", onset=onset)


def imbalance(draft: Draft) -> Spec:
    """One rank has the long sequences, and the lengths grow."""
    draft.config |= {"trainer.balance_batch": False}
    cap = draft.number("data.max_response_length")
    onset = draft.dice.randrange(3, 30)
    start, end = cap * draft.dice.uniform(0.1, 0.2), cap * draft.dice.uniform(0.5, 0.8)
    draft.lengths(start=start, end=end, onset=onset, over_steps=draft.dice.randrange(60, 140), spread=0.7)
    draft.fill_rollout(draft.dice.uniform(0.5, 0.75))
    at = start + (end - start) * draft.dice.uniform(0.5, 0.8)
    for phase in ("old_log_prob", "ref", "update_actor"):
        draft.fill(phase, 1.0 if phase == "update_actor" else draft.dice.uniform(0.7, 0.85), median=at)
    return draft.spec("trend", "imbalance", alike=("length_growth", "longest_batch"), onset=onset)


# ---------------------------------------------------------------- on the host


def _host_trend(draft: Draft, share: float) -> int:
    draft.fill_all(draft.dice.uniform(0.6, 0.85), rollout=draft.dice.uniform(0.6, 0.82))
    draft.fit_host(share)
    return draft.dice.randrange(4, 40)


def _a_step(draft: Draft, share: float, steps: tuple[int, int]) -> float:
    """Bytes a step that fill a host from `share` to where Ray kills, in so many steps."""
    return (0.95 - share) * (draft.nature.host.limit_bytes or 0.0) / draft.dice.randrange(*steps)


def _tokens(draft: Draft) -> float:
    """Of a usual step."""
    usual = draft.nature.lengths.start + 0.38 * draft.number("data.max_prompt_length")
    return usual * draft.settings.sequences


def driver_grows(draft: Draft) -> Spec:
    """The TaskRunner holds on to every batch."""
    share = draft.dice.uniform(0.45, 0.7)
    onset = _host_trend(draft, share)
    kept = _a_step(draft, share, (40, 130)) / _tokens(draft)
    draft.set(driver_kept=kept, driver_kept_from=onset)
    return draft.spec("host", "driver_process", onset=onset)


def worker_grows(draft: Draft) -> Spec:
    """One worker's process grows on the host."""
    share = draft.dice.uniform(0.45, 0.7)
    onset = _host_trend(draft, share)
    draft.set(worker_host=Growth(_a_step(draft, share, (40, 130)), onset))
    return draft.spec("host", "host_leak", onset=onset)


def pinned_grows(draft: Draft) -> Spec:
    """What is offloaded leaves pinned buffers behind, more at each step."""
    if not draft.preset.offload:
        draft.config |= {f"actor_rollout_ref.actor.fsdp_config.{key}_offload": True for key in ("param", "optimizer")}
    share = draft.dice.uniform(0.5, 0.7)
    _host_trend(draft, share)
    states = 12 * draft.preset.model.parameters + (2 * draft.preset.model.parameters if draft.settings.ref else 0)
    draft.set(pinned=_a_step(draft, share, (30, 110)) / states)
    return draft.spec("host", "host_offload", alike=("host_leak",))


def engine_copies(draft: Draft) -> Spec:
    """Each sleep copies the weights to the host, and some of the copies stay."""
    share = draft.dice.uniform(0.5, 0.7)
    _host_trend(draft, share)
    copies = draft.settings.gpus // draft.settings.tensor_parallel * 2 * draft.preset.model.parameters
    draft.set(engine_host=_a_step(draft, share, (30, 110)) / copies)
    return draft.spec("host", "engine_host_copies", alike=("host_leak",))


def object_store(draft: Draft) -> Spec:
    """References that nobody drops keep batches in Ray's object store, which is memory too."""
    share = draft.dice.uniform(0.45, 0.65)
    _host_trend(draft, share)
    draft.set(plasma_kept=_a_step(draft, share, (40, 120)) / _tokens(draft))
    return draft.spec("host", "object_store")


def disk_spill(draft: Draft) -> Spec:
    """What Ray spills is never removed."""
    draft.fill_all(draft.dice.uniform(0.6, 0.85), rollout=draft.dice.uniform(0.6, 0.82))
    total = draft.dice.choice((500, 1000)) * GIB
    draft.set(host=draft.nature.host._replace(disk_total_bytes=total))
    draft.set(spill_kept=0.65 * total / draft.dice.randrange(50, 150) / _tokens(draft))
    return draft.spec("host", "disk_spill")
