"""Which cause is named for which facts: one table entry a story."""

from typing import Any

import pytest
from tests.core.story import GIB

from oomwatch import wire
from oomwatch.catalogue import entries, placeholders
from oomwatch.core.cause import CAUSES_MAX, HYPOTHESES, SCORE_MIN, rank
from oomwatch.core.facts import Facts, OomFacts, PhaseFacts
from oomwatch.core.parts import Part
from oomwatch.core.settings import Settings
from oomwatch.core.subject import Topic

CARD = 80.0 * GIB
USUAL = Settings(
    known=True,
    kv_share=0.6,
    log_prob_micro_batch=8,
    update_micro_batch=8,
    prompt_cap_tokens=1024,
    response_cap_tokens=7168,
    dynamic_batches=False,
    chunked_entropy=False,
    fused_kernels=False,
    has_critic=True,
)


def phase(name: str, peak: float, floor: float = 30, peak_rise: float = 0, floor_rise: float = 0) -> PhaseFacts:
    """All in GiB."""
    return PhaseFacts(name, peak * GIB, floor * GIB, peak_rise * GIB, floor_rise * GIB)


def device(**known: Any) -> Facts:
    """A card of 80 GiB, thirty steps in."""
    amounts = {name: value * GIB if name.endswith("_bytes") else value for name, value in known.items()}
    phases = known.get("phases", ())
    risen = {
        "peak_rise_bytes": max((one.peak_rise_bytes for one in phases), default=0.0),
        "floor_rise_bytes": min((one.floor_rise_bytes for one in phases), default=0.0),
        "active_rise_bytes": max((one.peak_rise_bytes - one.floor_rise_bytes for one in phases), default=0.0),
        "peak_bytes": max((one.peak_bytes for one in phases), default=None),
    }
    return Facts(**{"topic": "device", "capacity_bytes": CARD, "steps": 30, "settings": USUAL, **risen, **amounts})


def host(*parts: Part, topic: Topic = "host", **known: Any) -> Facts:
    used = sum(part.used_bytes for part in parts)
    return Facts(
        **{
            "topic": topic,
            "host_parts": parts,
            "host_used_bytes": used,
            "host_limit_bytes": 1000.0 * GIB,
            "settings": USUAL,
            **known,
        }
    )


def part(kind: str, used: float, rise: float = 0, name: str = "") -> Part:
    return Part(kind, used * GIB, rise * GIB, name or kind)


STEADY = (phase("rollout", 60, 48), phase("old_log_prob", 58), phase("update_actor", 57))


def steady(name: str, peak: float = 76) -> tuple[PhaseFacts, ...]:
    """A run in which one phase stands out."""
    return (*(one for one in STEADY if one.phase != name), phase(name, peak))


def grown(by: float = 10) -> tuple[PhaseFacts, ...]:
    """All phases have gained as much, at their lowest and at their highest."""
    return (
        phase("rollout", 60, 48, by, by),
        phase("old_log_prob", 62, 40, by, by),
        phase("update_actor", 70, 40, by, by),
    )


def alone(name: str, by: float) -> tuple[PhaseFacts, ...]:
    """One phase shows a rise; in the others it is lost in the noise of their batches."""
    return tuple(one._replace(peak_rise_bytes=by * GIB) if one.phase == name else one for one in STEADY)


LONGER = (phase("rollout", 60, 48), phase("old_log_prob", 66, 30, 8, 0), phase("update_actor", 74, 30, 14, 0.1))

STORIES: dict[str, tuple[str, Facts]] = {
    "rollout stands out": ("rollout_kv_budget", device(phases=steady("rollout"))),
    "no step is known, and the engine has a large share": ("rollout_kv_budget", device(peak_bytes=70)),
    "log-prob stands out": (
        "log_prob_micro_batch",
        device(phases=(phase("rollout", 60, 48), phase("old_log_prob", 76, 70))),
    ),
    "log-prob stands out by a megabyte a token": ("entropy_logits", device(phases=steady("old_log_prob", 78))),
    "the actor's update stands out": (
        "actor_update",
        device(phases=(phase("rollout", 60, 48), phase("old_log_prob", 50, 45), phase("update_actor", 76))),
    ),
    "the critic's update stands out": ("critic_update", device(phases=steady("update_critic"))),
    "the values stand out": ("critic_update", device(phases=steady("values"))),
    "the reward model stands out": ("reward_model", device(phases=steady("reward"))),
    "the weights' transfer stands out": ("weight_sync", device(phases=steady("update_weights"))),
    "saving stands out": ("checkpoint_spike", device(phases=steady("save_checkpoint"))),
    "it failed in the rollout": (
        "rollout_kv_budget",
        device(phases=STEADY, watched="device_oom", oom=OomFacts("device", phase="rollout", tried_bytes=2.0 * GIB)),
    ),
    "it failed in the critic": (
        "critic_update",
        device(phases=STEADY, watched="device_oom", oom=OomFacts("device", phase="update_critic")),
    ),
    "it failed in log-prob over a request as large as logits": (
        "entropy_logits",
        device(phases=STEADY, oom=OomFacts("device", phase="old_log_prob", tried_bytes=18.6 * GIB)),
    ),
    "it failed in the update over a small request": (
        "actor_update",
        device(phases=STEADY, oom=OomFacts("device", phase="update_actor", tried_bytes=0.5 * GIB)),
    ),
    "it failed when the engine woke up": (
        "weight_sync",
        device(phases=STEADY, oom=OomFacts("device", error="cumem_allocator")),
    ),
    "it failed with enough reserved and unallocated": (
        "fragmentation",
        device(
            phases=(*STEADY, phase("update_weights", 50)),
            oom=OomFacts("device", phase="reward", tried_bytes=2.0 * GIB, slack_bytes=12.0 * GIB),
        ),
    ),
    "the rule names the update while the rollout is as high": (
        "actor_update",
        device(phases=(phase("rollout", 76, 48), phase("update_actor", 75)), phase="update_actor"),
    ),
    "everything rises with what torch has allocated": ("leak", device(phases=grown(), allocated_rise_bytes=10.0)),
    "everything rises and nothing else is known": ("leak", device(phases=grown())),
    "the trainer's process grows": (
        "leak",
        device(phases=grown(), residue_bytes=30.0, residue_before_bytes=20.0, residue_rise_bytes=10.0,
               parts=(part("trainer", 40, 9), part("engine", 20, 0.5))),
    ),
    "the residue grows and torch's figures do not": (
        "sleep_residue",
        device(phases=grown(), residue_bytes=18.0, residue_before_bytes=8.0, residue_rise_bytes=10.0,
               allocated_rise_bytes=0.0),
    ),
    "the residue grows and torch's figures are not known": (
        "sleep_residue",
        device(phases=grown(), residue_bytes=25.0, residue_before_bytes=4.0, residue_rise_bytes=21.0),
    ),
    "the engine's process grows": (
        "sleep_residue",
        device(phases=grown(), parts=(part("trainer", 40, 0.2), part("engine", 20, 9))),
    ),
    "the residue grows with what torch has allocated": (
        "leak",
        device(phases=grown(), residue_bytes=18.0, residue_before_bytes=8.0, residue_rise_bytes=10.0,
               allocated_rise_bytes=10.0),
    ),
    "slack grows and allocated does not": (
        "fragmentation",
        device(phases=grown(), allocated_rise_bytes=0.0, slack_bytes=20.0, slack_rise_bytes=10.0, retry_steps=2),
    ),
    "the rule measures fragmentation": (
        "fragmentation",
        device(phases=STEADY, slack_bytes=14.0, watched="fragmentation"),
    ),
    "the trainer's process grows and what torch has allocated does not": (
        "fragmentation",
        device(
            phases=grown(),
            allocated_rise_bytes=0.0,
            parts=(part("trainer", 40, 9), part("engine", 20, 0.2)),
        ),
    ),
    "one rank's trainer grows, and the lines that tell torch's figures are of another": (
        "leak",
        device(phases=alone("rollout", 3.6), residue_bytes=9.1, residue_before_bytes=5.5, residue_rise_bytes=3.6,
               parts=(part("trainer", 9, 3.6), part("engine", 57))),
    ),
    "the engine's process grows, which shows in the rollout first": (
        "sleep_residue",
        device(phases=alone("rollout", 8.3), residue_bytes=24.4, residue_before_bytes=16.1, residue_rise_bytes=8.3,
               allocated_rise_bytes=0.0, allocated_noise_bytes=9.0,
               parts=(part("trainer", 46), part("engine", 14, 8.3))),
    ),
    "the trainer's process grows while torch's maxima are within their noise": (
        "leak",
        device(phases=alone("rollout", 2.6), residue_bytes=6.8, residue_before_bytes=4.9, residue_rise_bytes=2.6,
               allocated_rise_bytes=0.0, allocated_noise_bytes=5.0,
               parts=(part("trainer", 15, 2.6), part("engine", 9))),
    ),
    "the trainer's process grows by what torch reserves and does not use": (
        "fragmentation",
        device(phases=grown(2), residue_bytes=25.5, residue_before_bytes=22.7, residue_rise_bytes=2.0,
               allocated_rise_bytes=0.0, slack_bytes=3.9, slack_rise_bytes=2.1,
               parts=(part("trainer", 29, 2), part("engine", 7))),
    ),
    "the trainer's process grows by tensors, and a little slack with them": (
        "leak",
        device(phases=grown(5), allocated_rise_bytes=4.5, slack_bytes=0.6, slack_rise_bytes=0.2,
               parts=(part("trainer", 29, 5), part("engine", 7))),
    ),
    "the residue that vLLM tells grows by what somebody else takes": (
        "other_process",
        device(phases=alone("rollout", 3.1), residue_bytes=11.1, residue_before_bytes=8.0, residue_rise_bytes=3.1,
               allocated_rise_bytes=0.0, allocated_noise_bytes=4.1,
               parts=(part("stranger", 3, 2.9), part("trainer", 51), part("engine", 5))),
    ),
    "it failed with some slack, after the engine's residue had grown": (
        "sleep_residue",
        device(phases=grown(), residue_bytes=18.0, residue_before_bytes=8.0, residue_rise_bytes=10.0,
               allocated_rise_bytes=0.0, watched="device_oom", parts=(part("trainer", 46), part("engine", 14, 10)),
               oom=OomFacts("device", phase="update_actor", tried_bytes=0.5 * GIB, slack_bytes=8.0 * GIB)),
    ),
    "the trainer's process grows, and only after checkpoints": (
        "checkpoint_spike",
        device(phases=grown(5), allocated_rise_bytes=5.0, saved_share=0.97,
               parts=(part("trainer", 29, 5), part("engine", 7))),
    ),
    "the weights' transfer alone grows": (
        "weight_sync",
        device(phases=(*STEADY, phase("update_weights", 66, 60, 8, 8))),
    ),
    "the weights' transfer grows, and the phase before it has the same last reading": (
        "weight_sync",
        device(phases=(phase("rollout", 49), phase("old_log_prob", 34), phase("update_actor", 63, 33, 11),
                       phase("update_weights", 63, 49, 11))),
    ),
    "what grows is higher than all phases that can be read": (
        "weight_sync",
        device(phases=STEADY, peak_bytes=66.0, peak_rise_bytes=11.0),
    ),
    "responses get longer and peaks with them": (
        "length_growth",
        device(phases=LONGER, length_before_tokens=2000, length_rise_tokens=2000, length_fit=0.9),
    ),
    "no step is told, and the peaks rise alone": (
        "length_growth",
        device(peak_bytes=72.0, peak_rise_bytes=19.0, parts=(part("trainer", 11), part("engine", 44))),
    ),
    "the longest batch would not fit": (
        "longest_batch",
        device(phases=STEADY, watched="worst_case", phase="update_actor"),
    ),
    "none was as long as is allowed": (
        "longest_batch",
        device(phases=(phase("rollout", 50, 48), phase("update_actor", 60, 40)), length_tokens=2000, length_fit=0.8,
               settings=Settings(response_cap_tokens=8000), watched="worst_case"),
    ),
    "the longest batch would not fit, and responses get longer towards it": (
        "length_growth",
        device(phases=LONGER, length_before_tokens=2000, length_rise_tokens=2000, length_fit=0.9, watched="worst_case",
               phase="update_actor"),
    ),
    "the longest batch would not fit on the one rank that gets the long sequences": (
        "imbalance",
        device(phases=steady("update_actor"), peers_peak_bytes=50.0, watched="worst_case", phase="update_actor"),
    ),
    "one rank's peaks have risen above its peers, and what all its phases hold has not": (
        "imbalance",
        device(phases=alone("update_actor", 12), peak_rise_bytes=12.0, peers_peak_bytes=45.0),
    ),
    "somebody else has come, while responses happen to be longer": (
        "other_process",
        device(phases=(phase("rollout", 60, 48), phase("update_actor", 70, 30, 7, 0)), length_before_tokens=900,
               length_rise_tokens=110, length_fit=0.6, residue_rise_bytes=4.9, residue_bytes=9.0,
               parts=(part("stranger", 4.9, 4.9), part("trainer", 19), part("engine", 46))),
    ),
    "the trainer's process grows, some of that was reserved, and nothing more is allocated": (
        "fragmentation",
        device(phases=grown(6), allocated_rise_bytes=0.0, allocated_noise_bytes=9.0, slack_rise_bytes=2.9,
               parts=(part("trainer", 32, 6.2), part("engine", 8))),
    ),
    "one rank is far above its peers": ("imbalance", device(phases=steady("update_actor"), peers_peak_bytes=50.0)),
    "somebody else grows on the card": (
        "other_process",
        device(phases=grown(), allocated_rise_bytes=0.0, parts=(part("stranger", 12, 10), part("trainer", 50))),
    ),
    "somebody else is on a card that would have room": (
        "other_process",
        device(phases=(phase("rollout", 70, 60), phase("update_actor", 60)), needed_bytes=4.0, settings=Settings(),
               parts=(part("stranger", 16), part("trainer", 50))),
    ),
    "the driver grows": ("driver_process", host(part("driver", 300, 200), part("worker", 400, 5))),
    "the driver is nearly all": ("driver_process", host(part("driver", 880), part("worker", 40))),
    "a worker grows": ("host_leak", host(part("worker", 500, 300), part("driver", 40, 2))),
    "offloading fills the host from the first step": (
        "host_offload",
        host(part("worker", 800), part("driver", 40), settings=Settings(optimizer_offload=True)),
    ),
    "the engine holds its weights on the host": (
        "engine_host_copies",
        host(part("engine", 600), part("worker", 250), settings=Settings(lora_rank=32)),
    ),
    "the store grows": ("object_store", host(part("object_store", 300, 250), part("worker", 300, 4))),
    "the shared memory is too small": (
        "object_store",
        host(topic="disk", watched="shm_small", shm_used_bytes=60.0 * GIB, shm_total_bytes=64.0 * GIB),
    ),
    "the disk fills": (
        "disk_spill",
        host(topic="disk", watched="disk_forecast", disk_used_bytes=900.0 * GIB, disk_total_bytes=1000.0 * GIB),
    ),
    "all that is known is which process is the largest": (
        "driver_process",
        host(watched="host_forecast", verdict={"process": "ray::TaskRunner.run"}),
    ),
    "the KV cache is full": ("kv_pressure", Facts(topic="speed", kv_used_ratio=0.98, requests_waiting=40)),
    "the rollout is long rather than slow": (
        "length_growth",
        Facts(
            topic="speed",
            verdict={
                "response_length_mean_tokens": 6000.0,
                "usual_response_length_mean_tokens": 2000.0,
                "increase_ratio": 2.2,
            },
        ),
    ),
    "scoring is slow": ("reward_model", Facts(topic="speed", reward_seconds=90, reward_before_seconds=20)),
    "it switches too often": ("weight_sync", Facts(topic="switch", watched="reshard_cycles")),
}  # fmt: skip


@pytest.mark.parametrize("story", STORIES)
def test_the_first_cause_is_the_storys(story: str) -> None:
    expected, facts = STORIES[story]
    causes = rank(facts)
    assert causes, "none is named"
    assert causes[0].cause == expected, [(one.cause, one.score) for one in causes]


@pytest.mark.parametrize("story", STORIES)
def test_causes_are_few_in_order_and_weighed_against_each_other(story: str) -> None:
    scores = [one.score for one in rank(STORIES[story][1])]
    assert scores == sorted(scores, reverse=True)
    assert len(scores) <= CAUSES_MAX
    assert all(score >= SCORE_MIN for score in scores)
    assert sum(scores) <= 1.001


@pytest.mark.parametrize("story", STORIES)
def test_evidence_has_its_sentence_and_all_its_figures(story: str) -> None:
    for cause in rank(STORIES[story][1]):
        for one in cause.evidence:
            assert placeholders(entries()[f"evidence.{one.key}"]["en"]) <= set(one.facts), one


def test_every_cause_is_the_first_in_some_story() -> None:
    assert {expected for expected, _ in STORIES.values()} == set(wire.CAUSES)


def test_every_cause_has_a_hypothesis_and_its_words() -> None:
    assert {one.cause for one in HYPOTHESES} == set(wire.CAUSES)
    assert {key for key in entries() if key.startswith("cause.")} == {f"cause.{cause}" for cause in wire.CAUSES}


def test_every_sentence_of_evidence_is_used() -> None:
    used = {one.key for _, facts in STORIES.values() for cause in rank(facts) for one in cause.evidence}
    rest = {key.removeprefix("evidence.") for key in entries() if key.startswith("evidence.")} - used
    assert not rest, f"no story shows {sorted(rest)}"


def test_where_nothing_is_known_no_cause_is_named() -> None:
    assert rank(Facts(topic="device")) == ()
    assert rank(Facts(topic="host")) == ()


def test_a_run_without_a_critic_is_told_nothing_of_one() -> None:
    facts = device(phases=steady("values"), settings=Settings(has_critic=False))
    assert "critic_update" not in [one.cause for one in rank(facts)]


def test_longer_responses_are_a_matter_of_the_phases_that_work_on_them() -> None:
    """The rollout peaks higher, and has a pool of constant size."""
    phases = (phase("rollout", 76, 48), *LONGER[1:])
    facts = device(phases=phases, length_before_tokens=2000, length_rise_tokens=2000, length_fit=0.9)
    assert (rank(facts)[0].cause, rank(facts)[0].phase) == ("length_growth", "update_actor")


def test_while_memory_grows_the_phase_is_only_where_it_will_end() -> None:
    first, *rest = rank(device(phases=grown(), allocated_rise_bytes=10.0))
    assert first.score > 2 * max((one.score for one in rest), default=0.0)


def test_a_phase_that_alone_is_known_is_not_said_to_grow_alone() -> None:
    alone = (phase("rollout", 70, 60, peak_rise=10),)
    causes = rank(device(phases=alone, residue_before_bytes=4, residue_bytes=14, residue_rise_bytes=10))
    assert causes[0].cause == "sleep_residue"
    assert "phase_rises" not in {one.key for cause in causes for one in cause.evidence}
